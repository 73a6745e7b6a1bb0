#include "executor/data/prompts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "cost_models/documents/problem.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

const std::string kGood =
    R"({"data_source":"d","prompt":[{"role":"user","content":"2+2?"}],"ability":"math",)"
    R"("reward_model":{"style":"rule","ground_truth":"4"},)"
    R"("extra_info":{"split":"train","index":3,"answer":"ignored"}})";

TEST(Prompts, ReadsVerlsFieldsFromChatListsAndStrings) {
  Problems problems;
  const std::string text = kGood + "\r\n\n" +
                           R"({"data_source":"d","prompt":"r417=","ability":"a","more":[1],)"
                           R"("reward_model":{"style":"rule","ground_truth":714},)"
                           R"("extra_info":{"split":"test","index":0}})";
  const auto prompts = parse_prompts(text, "p.jsonl", problems);
  ASSERT_TRUE(prompts) << to_string(problems.at(0));
  ASSERT_EQ(prompts->size(), 2u);
  EXPECT_EQ((*prompts)[0].messages, (std::vector<ChatMessage>{{"user", "2+2?"}}));
  EXPECT_EQ((*prompts)[0].index, 3);
  EXPECT_EQ((*prompts)[1].messages, (std::vector<ChatMessage>{{"", "r417="}}));
  EXPECT_EQ((*prompts)[1].ground_truth, "714");
  EXPECT_EQ((*prompts)[1].split, "test");
}

TEST(Prompts, ALineReadsBackAsTheSameValue) {
  const Prompt prompt{.data_source = "d\"\n\u4f60",
                      .messages = {{"system", "s"}, {"user", "u\t"}},
                      .ability = "a",
                      .reward_style = "rule",
                      .ground_truth = "\x01",
                      .split = "train",
                      .index = -4};
  Problems problems;
  const auto read = parse_prompts(to_json_line(prompt) + "\n", "p", problems);
  ASSERT_TRUE(read) << to_string(problems.at(0));
  EXPECT_EQ(read->at(0), prompt);
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(Prompts, EveryMalformedLineIsNamedWithFileAndLine) {
  const std::string user = R"([{"role":"user","content":"2+2?"}])";
  const std::pair<std::string, std::string> bad[] = {
      {"{", "JSON"},
      {"[1]", "an object per line"},
      {"\"text\"", "an object per line"},
      {"nul", "JSON"},
      {kGood + kGood, "JSON"},
      {with("\"ability\"", "\"data_source\""), "again"},
      {with("\"d\"", "\"\xff\""), ""},
      {with("\"d\"", "\"\\ud800\""), "JSON"},
      {with(R"("data_source":"d",)", ""), "/data_source"},
      {with("\"d\"", "7"), "/data_source"},
      {with(R"("prompt":)" + user + ",", ""), "/prompt"},
      {with(user, "{}"), "/prompt"},
      {with(user, "[]"), "not empty"},
      {with(user, "[1]"), "/prompt/0"},
      {with(R"("role":"user",)", ""), "/prompt/0/role"},
      {with(R"("user")", R"("robot")"), "system, user, assistant"},
      {with(R"("content":"2+2?")", R"("content":null)"), "/prompt/0/content"},
      {with(R"("ability":"math",)", ""), "/ability"},
      {with(R"("ability":"math")", R"("ability":[])"), "/ability"},
      {with(R"({"style":"rule","ground_truth":"4"})", "\"rule\""), "/reward_model"},
      {with(R"("reward_model":{"style":"rule","ground_truth":"4"},)", ""), "/reward_model"},
      {with(R"("style":"rule",)", ""), "/reward_model/style"},
      {with(R"(,"ground_truth":"4")", ""), "/reward_model/ground_truth"},
      {with(R"("ground_truth":"4")", R"("ground_truth":[4])"), "/reward_model/ground_truth"},
      {with(R"("extra_info":{"split":"train","index":3,"answer":"ignored"})", R"("extra_info":1)"),
       "/extra_info"},
      {with(R"("split":"train",)", ""), "/extra_info/split"},
      {with(R"("index":3,)", ""), "/extra_info/index"},
      {with(R"("index":3)", R"("index":"3")"), "/extra_info/index"},
      {with(R"("index":3)", R"("index":99999999999999999999)"), "64 bits"},
  };
  ASSERT_GE(std::size(bad), 20u);
  for (const auto& [line, says] : bad) {
    Problems problems;
    EXPECT_FALSE(parse_prompts(kGood + "\n\n" + line + "\n" + kGood, "p.jsonl", problems)) << line;
    ASSERT_FALSE(problems.empty()) << line;
    EXPECT_EQ(problems[0].file, "p.jsonl");
    EXPECT_TRUE(problems[0].place.starts_with("3:")) << line << ": " << to_string(problems[0]);
    EXPECT_NE(to_string(problems[0]).find(says), std::string::npos)
        << line << ": " << to_string(problems[0]);
  }
}

TEST(Prompts, AllBadLinesComeAtOnceAndAnEmptyFileIsRefused) {
  Problems problems;
  EXPECT_FALSE(parse_prompts("1\n2\n" + kGood + "\n3\n", "p", problems));
  EXPECT_EQ(problems.size(), 3u);
  problems.clear();
  EXPECT_FALSE(parse_prompts("\n \n", "p", problems));
  EXPECT_EQ(problems.size(), 1u);
  EXPECT_FALSE(read_prompts("/nonexistent.jsonl", problems));
}

TEST(ChatFormat, ChatMlIsFoundWithItsOwnSystemMessage) {
  // The two ways in which Qwen2 and Qwen2.5 write their default system message.
  const ChatFormat qwen2 = chat_format_of(
      R"({% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %})"
      R"({{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %})"
      R"({{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}})");
  EXPECT_TRUE(qwen2.chat_ml);
  EXPECT_EQ(qwen2.default_system, "You are a helpful assistant.");
  const ChatFormat qwen25 = chat_format_of(
      R"({{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}{%- else %})"
      R"({{- '<|im_start|>system\nYou are Qwen.<|im_end|>\n' }}{%- endif %})");
  EXPECT_EQ(qwen25.default_system, "You are Qwen.");
  const ChatFormat qwen3 =
      chat_format_of(R"({{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>' }})");
  EXPECT_TRUE(qwen3.chat_ml);
  EXPECT_EQ(qwen3.default_system, "");
  EXPECT_FALSE(chat_format_of("{{ bos_token }}[INST] {{ content }} [/INST]").chat_ml);
}

TEST(ChatFormat, RendersMessagesAndLeavesStringsAlone) {
  const ChatFormat format{.chat_ml = true, .default_system = "S"};
  Prompt prompt;
  prompt.messages = {{"user", "hi"}};
  EXPECT_EQ(render(prompt, format),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
            "<|im_start|>assistant\n");
  prompt.messages = {{"system", "T"}, {"user", "hi"}};
  EXPECT_EQ(render(prompt, format).find("S<"), std::string::npos);
  EXPECT_EQ(render(prompt, {}), "Thi");
  prompt.messages = {{"", "r417="}};
  EXPECT_EQ(render(prompt, format), "r417=");
}

TEST(ChatFormat, ComesFromTheFolder) {
  TemporaryFolder folder;
  Problems problems;
  EXPECT_FALSE(chat_format(folder.path, problems).chat_ml) << "no template at all";
  std::ofstream(folder.path / "tokenizer_config.json")
      << R"({"chat_template": "{{ '<|im_start|>system\\nYou.<|im_end|>\\n' }}"})";
  const ChatFormat format = chat_format(folder.path, problems);
  EXPECT_TRUE(format.chat_ml);
  EXPECT_EQ(format.default_system, "You.");
  EXPECT_TRUE(problems.empty());
  std::ofstream(folder.path / "tokenizer_config.json") << "{";
  chat_format(folder.path, problems);
  EXPECT_FALSE(problems.empty());
}

TEST(PromptSource, AnEpochTakesEveryPromptAtMostOnceAndInANewOrder) {
  const PromptSource source(100, 7, 42);
  EXPECT_EQ(source.steps_per_epoch(), 14);
  std::vector<std::int64_t> epochs[3];
  for (int epoch = 0; epoch < 3; ++epoch) {
    const std::int64_t first = std::int64_t{14} * epoch;
    for (std::int64_t k = 0; k < 14; ++k) {
      const auto step = source.step(first + k);
      ASSERT_EQ(step.size(), 7u);
      epochs[epoch].insert(epochs[epoch].end(), step.begin(), step.end());
    }
    const std::set<std::int64_t> distinct(epochs[epoch].begin(), epochs[epoch].end());
    EXPECT_EQ(distinct.size(), 98u);
    EXPECT_GE(*distinct.begin(), 0);
    EXPECT_LT(*distinct.rbegin(), 100);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST(PromptSource, DependsOnSeedAndStepOnly) {
  const PromptSource a(50, 5, 1), b(50, 5, 1), c(50, 5, 2);
  EXPECT_EQ(a.step(123), b.step(123)) << "no state: any step, in any order";
  EXPECT_NE(a.step(0), c.step(0));
  const PromptSource plain(6, 3, 1, false);
  EXPECT_EQ(plain.step(1), (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_EQ(plain.step(2), (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(PromptSource, PositionsGoOnFromStepToStepAndEpochToEpoch) {
  const PromptSource source(10, 4, 7);  // two steps an epoch, two prompts left over
  std::vector<std::int64_t> steps;
  for (std::int64_t k = 0; k < 5; ++k) {
    const std::vector<std::int64_t> step = source.step(k);
    steps.insert(steps.end(), step.begin(), step.end());
  }
  EXPECT_EQ(source.at(0, 20), steps);
  EXPECT_EQ(source.at(3, 9), std::vector<std::int64_t>(steps.begin() + 3, steps.begin() + 12));
  EXPECT_TRUE(source.at(3, 0).empty());
}

TEST(PromptSource, EveryPlaceSeesEveryPromptAboutEquallyOften) {
  // 2,000 epochs of 5 prompts: 400 per place and prompt, deviation 17.9; five are allowed.
  const PromptSource source(5, 5, 9);
  int count[5][5] = {};
  for (std::int64_t epoch = 0; epoch < 2000; ++epoch) {
    const auto order = source.step(epoch);
    for (int place = 0; place < 5; ++place) ++count[place][order[static_cast<std::size_t>(place)]];
  }
  for (const auto& row : count) {
    for (const int n : row) EXPECT_NEAR(n, 400, 90);
  }
}

}  // namespace
}  // namespace tessera
