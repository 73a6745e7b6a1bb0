#include "executor/data/prompts.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  EXPECT_EQ((*prompts)[0].extra_info, R"({"split":"train","index":3,"answer":"ignored"})");
  EXPECT_EQ((*prompts)[1].messages, (std::vector<ChatMessage>{{"", "r417="}}));
  EXPECT_EQ((*prompts)[1].ground_truth, "714");
  EXPECT_EQ(truth_json((*prompts)[0]), "\"4\"");
  EXPECT_EQ(truth_json((*prompts)[1]), "714");
}

TEST(Prompts, TakesWhatVerlTakes) {
  // verl reads neither ability nor style nor extra_info itself, and truths of any kind.
  Problems problems;
  const auto prompts = parse_prompts(
      R"({"data_source":"d","prompt":"p","reward_model":{"ground_truth":{"target":["a"]}}})"
      "\n"
      R"({"data_source":"d","prompt":"p","ability":null,"extra_info":null,)"
      R"("reward_model":{"style":null,"ground_truth":true}})",
      "p.jsonl", problems);
  ASSERT_TRUE(prompts) << to_string(problems.at(0));
  EXPECT_EQ((*prompts)[0].ground_truth, R"({"target":["a"]})");
  EXPECT_EQ(truth_json((*prompts)[0]), R"({"target":["a"]})");
  EXPECT_EQ((*prompts)[0].extra_info, "{}");
  EXPECT_EQ((*prompts)[1].ground_truth, "true");
}

/// What datasets' reader of JSON, which verl calls, takes as well: one array in the file.
TEST(Prompts, AnArrayIsAsManyLines) {
  const std::string other = R"({"data_source":"],[","prompt":"\\\"}","reward_model":)"
                            R"({"ground_truth":[1,{"a":"]"}]}})";
  Problems problems;
  const auto lines = parse_prompts(kGood + "\n" + other + "\n", "p.jsonl", problems);
  ASSERT_TRUE(lines) << to_string(problems.at(0));
  for (const std::string& text :
       {"[" + kGood + "," + other + "]", "\n [\r\n  " + kGood + " ,\n\n" + other + "\n] \n"}) {
    const auto prompts = parse_prompts(text, "p.json", problems);
    ASSERT_TRUE(prompts) << to_string(problems.at(0));
    EXPECT_EQ(*prompts, *lines);
  }
}

TEST(Prompts, WhatIsWrongInAnArrayIsNamedWithFileAndLine) {
  const auto told = [](const std::string& text) {
    Problems problems;
    EXPECT_FALSE(parse_prompts(text, "p.json", problems));
    return problems.empty() ? "" : to_string(problems[0]);
  };
  const auto has = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(told(text).find(part), std::string::npos) << told(text);
  };
  has("[" + kGood + ",\n  {\n \"data_source\": 7}]", "p.json:3:17 (/data_source)");
  has("[" + kGood + ",\n {\"prompt\": 7}]", "p.json:2:2 (/data_source)");
  has("[" + kGood + ",\n 7]", "p.json:2:2: found 7, expected an object");
  has("[" + kGood + ",\n {\"a\": tru}]", "p.json:2:");
  has("[" + kGood + ",\n]", "p.json:2:1: found ']', expected an object");
  has("[" + kGood + "\n", "p.json:2:1: found the end of the text, expected ',' or ']'");
  has("[" + kGood + "]\n" + kGood, "p.json:2:1: found '{', expected nothing after the array");
  has("[]", "no prompt");
}

TEST(Prompts, OtherMembersOfAMessageAreKeptForTheTemplate) {
  Problems problems;
  const std::string text =
      R"({"data_source":"d","prompt":[{"content":"a","thinking":"T","role":"assistant","name":null},)"
      R"({"role":"user","content":"b","name":null}],"ability":"","reward_model":{"style":"",)"
      R"("ground_truth":"t"},"extra_info":{}})";
  const auto prompts = parse_prompts(text, "p.jsonl", problems);
  ASSERT_TRUE(prompts) << to_string(problems.at(0));
  const std::vector<ChatMessage>& messages = (*prompts)[0].messages;
  EXPECT_EQ(messages[0].object, R"({"content":"a","thinking":"T","role":"assistant"})");
  EXPECT_EQ(messages[1].object, "");
  EXPECT_EQ(parse_prompts(to_json_line((*prompts)[0]), "p", problems)->at(0), (*prompts)[0]);
}

TEST(Prompts, ALineReadsBackAsTheSameValue) {
  const Prompt prompt{.data_source = "d\"\n\u4f60",
                      .messages = {{"system", "s"}, {"user", "u\t"}},
                      .ability = "a",
                      .reward_style = "rule",
                      .ground_truth = "\x01",
                      .extra_info = R"({"split":"train","index":-4})"};
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
      {with(R"("user")", R"("")"), "/prompt/0/role"},
      {with(R"("content":"2+2?")", R"("content":null)"), "/prompt/0/content"},
      {with(R"("style":"rule")", R"("style":1)"), "/reward_model/style"},
      {with(R"("ground_truth":"4")", R"("ground_truth":null)"), "/reward_model/ground_truth"},
      {with(R"("ability":"math")", R"("ability":[])"), "/ability"},
      {with(R"({"style":"rule","ground_truth":"4"})", "\"rule\""), "/reward_model"},
      {with(R"("reward_model":{"style":"rule","ground_truth":"4"},)", ""), "/reward_model"},
      {with(R"(,"ground_truth":"4")", ""), "/reward_model/ground_truth"},
      {with(R"("extra_info":{"split":"train","index":3,"answer":"ignored"})", R"("extra_info":1)"),
       "/extra_info"},
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

/// What all lines lack is told of the first ones and counted, and hides no other fault.
TEST(Prompts, WhatManyLinesLackIsToldOfAFewAndCounted) {
  std::string text;
  for (int i = 0; i < 500; ++i) {
    text += with(R"([{"role":"user","content":"2+2?"}])", R"([{"role":"user","content":"a"},)"
                                                          R"({"content":"b"},{"content":"c"}])") +
            "\n";
  }
  Problems problems;
  EXPECT_FALSE(parse_prompts(text + "{\n", "p.jsonl", problems));
  ASSERT_EQ(problems.size(), 7u);
  EXPECT_TRUE(problems[0].place.starts_with("1:")) << to_string(problems[0]);
  EXPECT_NE(problems[1].place.find("(/prompt/2/role)"), std::string::npos);
  EXPECT_TRUE(problems[5].place.starts_with("501")) << to_string(problems[5]);
  EXPECT_EQ(to_string(problems[6]),
            "p.jsonl:/prompt/N/role: found the same in 995 more places, expected a string");
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

TEST(PromptSource, MayBeginWhereAnotherRunHasEnded) {
  for (const bool mixed : {false, true}) {
    PromptSource source = mixed ? PromptSource({6, 4}, {1, 3}, 4, 7) : PromptSource(10, 4, 7);
    const std::vector<std::int64_t> whole = source.at(0, 40);
    source.begin_at(13);
    EXPECT_EQ(source.begin(), 13);
    EXPECT_EQ(source.at(0, 27), std::vector<std::int64_t>(whole.begin() + 13, whole.end()));
    EXPECT_EQ(source.step(1), std::vector<std::int64_t>(whole.begin() + 17, whole.begin() + 21));
  }
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

/// How often each file comes among the prompts of `places`.
std::vector<int> by_file(const std::vector<std::int64_t>& places,
                         const std::vector<std::int64_t>& counts) {
  std::vector<int> seen(counts.size(), 0);
  for (std::int64_t place : places) {
    std::size_t file = 0;
    for (; place >= counts[file]; ++file) place -= counts[file];
    ++seen[file];
  }
  return seen;
}

TEST(PromptSource, FilesComeInTheProportionOfTheirWeights) {
  const std::vector<std::int64_t> counts = {100, 7, 1000};
  const PromptSource source(counts, {3, 1, 6}, 10, 5);
  EXPECT_EQ(by_file(source.at(0, 1000), counts), (std::vector<int>{300, 100, 600}));
  EXPECT_EQ(by_file(source.at(123, 1000), counts), (std::vector<int>{300, 100, 600}));
  for (std::int64_t step = 0; step < 30; ++step) {
    const std::vector<int> seen = by_file(source.step(step), counts);
    EXPECT_NEAR(seen[0], 3, 1);
    EXPECT_NEAR(seen[1], 1, 1);
  }
}

TEST(PromptSource, EachFileGoesThroughEpochsOfItsOwn) {
  const PromptSource source({4, 50}, {1, 1}, 2, 9);
  std::vector<std::int64_t> small;
  for (const std::int64_t place : source.at(0, 24)) {
    if (place < 4) small.push_back(place);
  }
  ASSERT_EQ(small.size(), 12u);
  for (std::ptrdiff_t epoch = 0; epoch < 3; ++epoch) {
    const std::set<std::int64_t> distinct(small.begin() + 4 * epoch, small.begin() + 4 * epoch + 4);
    EXPECT_EQ(distinct.size(), 4u) << epoch;
  }
  const auto whole = source.at(0, 3000);
  EXPECT_EQ(source.at(1234, 777),
            std::vector<std::int64_t>(whole.begin() + 1234, whole.begin() + 1234 + 777));
  const PromptSource plain({2, 2}, {1, 1}, 2, 9, false);
  EXPECT_EQ(plain.at(0, 6), (std::vector<std::int64_t>{0, 2, 1, 3, 0, 2}));
}

}  // namespace
}  // namespace tessera
