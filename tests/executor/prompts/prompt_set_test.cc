// The prompts of a run: lengths, vocabulary, chat templates, data sources, files with weights.
#include "executor/prompts/prompt_set.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "cost_models/documents/problem.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

using Ids = std::vector<std::int32_t>;

/// A folder with a small tokenizer, and prompts in files.
class PromptSetTest : public testing::Test {
 protected:
  PromptSetTest() {
    fs::copy(TESSERA_SOURCE_DIR "/tests/executor/data/fixtures/llama3/tokenizer.json",
             folder_.path / "tokenizer.json");
    options_ = {.files = {folder_.path / "p.jsonl"}, .model = folder_.path, .per_step = 1};
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path / name) << text;
  }
  static std::string line(const std::string& prompt, const std::string& source = "d") {
    return R"({"data_source":")" + source + R"(","prompt":)" + prompt +
           R"(,"reward_model":{"ground_truth":"1"}})" + "\n";
  }

  PromptSet read() { return read_prompt_set(options_); }
  std::string refusal() {
    try {
      read();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  PromptSetOptions options_;
};

// As verl's geo3k has them, whose pictures stand in a column of their own.
TEST_F(PromptSetTest, PlacesForPicturesAreTold) {
  write("p.jsonl", line("\"<image> how long is AB?\"") + line("\"hello\""));
  ASSERT_EQ(read().notes.size(), 1U);
  EXPECT_EQ(read().notes.front(),
            "[Data] 1 of 2 prompts have places for pictures (<image>, <video>): they are texts "
            "here, and no picture is read");
  write("p.jsonl", line("\"hello\""));
  EXPECT_TRUE(read().notes.empty());
}

// As verl: of the first three prompts those that are short enough.
TEST_F(PromptSetTest, TheFirstPromptsAreCountedBeforeLongOnesAreLeftOut) {
  const std::string longer = line("\"hello hello hello hello hello hello\"");
  write("p.jsonl", line("\"hello\"") + longer);
  write("q.jsonl", longer + line("\"hello\"") + line("\"hello\""));
  options_.files.push_back(folder_.path / "q.jsonl");
  options_.max_tokens = 12;
  options_.filter_overlong = true;
  EXPECT_EQ(read().prompts.size(), 3U);
  options_.most = 4;
  EXPECT_EQ(read().prompts.size(), 2U);
  options_.most = 1;
  EXPECT_EQ(read().prompts.size(), 1U);
}

// Files with weights bring a prompt twice into a step: verl draws an id for every row.
TEST_F(PromptSetTest, APromptThatAStepDrawsTwiceIsTwoGroups) {
  write("p.jsonl", line("\"hello\""));
  write("q.jsonl", line("\"hello\"") + line("\"hello\"") + line("\"hello\""));
  options_.files.push_back(folder_.path / "q.jsonl");
  options_.weights = {0.75, 0.25};
  options_.per_step = 4;
  const PromptSet set = read();
  std::set<std::string> uids;
  for (const TokenPrompt& prompt : prompts_at(set, 0, 4, 2, 0)) {
    uids.insert(prompt.uid);
    EXPECT_NO_THROW(prompt_of(set, {.uid = prompt.uid}));
  }
  EXPECT_EQ(uids.size(), 4U);
}

TEST_F(PromptSetTest, PlainTextsHaveTheTokenizersBeginningAndMessagesTheTemplates) {
  write("tokenizer_config.json", R"({"bos_token": "<|begin|>", "chat_template":)"
                                 R"("{{ bos_token }}{{ messages[0].content }}{{ mood }}<|end|>"})");
  write("p.jsonl", line("\"hello\"") + line(R"([{"role":"user","content":"hello"}])"));
  options_.chat_options = R"({"mood":"!"})";
  const PromptSet set = read();
  const Ids hello = set.tokenizer.encode("hello"), happy = set.tokenizer.encode("hello!");
  Ids plain{421}, chat{421};
  plain.insert(plain.end(), hello.begin(), hello.end());
  chat.insert(chat.end(), happy.begin(), happy.end());
  chat.push_back(422);
  ASSERT_EQ(set.tokens.size(), 2u);
  EXPECT_EQ(Ids(set.tokens[0].begin(), set.tokens[0].begin() + 1), Ids{421});
  EXPECT_EQ(set.tokens[0], plain);
  EXPECT_EQ(set.tokens[1], chat) << "one beginning of sequence, the template's";
}

TEST_F(PromptSetTest, MessagesWithoutATemplateOrThatItRefusesAreNamed) {
  write("p.jsonl", line("\"x\"") + line(R"([{"role":"user","content":"hello"}])"));
  EXPECT_NE(refusal().find("/p.jsonl:2 (/prompt): found messages"), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("no chat template"), std::string::npos);
  write("chat_template.jinja", "{{ raise_exception('no ' + messages[0].role) }}");
  EXPECT_NE(refusal().find("no user"), std::string::npos) << refusal();
}

TEST_F(PromptSetTest, LongPromptsAreRefusedLeftOutOrCut) {
  write("p.jsonl", line("\"1 2\"") + line("\"1 2 3 4 5 6 7 8 9\"") + line("\"5 6\""));
  const PromptSet all = read();
  ASSERT_EQ(all.prompts.size(), 3u);
  EXPECT_TRUE(all.notes.empty());
  const auto longest = static_cast<std::int64_t>(all.tokens[1].size());
  options_.max_tokens = longest - 3;
  EXPECT_NE(refusal().find("1 of 3 prompts"), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("/p.jsonl:2 (/prompt): found 1 of 3"), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("filter_overlong_prompts"), std::string::npos);
  options_.filter_overlong = true;
  const PromptSet kept = read();
  ASSERT_EQ(kept.tokens.size(), 2u);
  EXPECT_EQ(kept.tokens[1], all.tokens[2]);
  EXPECT_EQ(kept.prompts[1], all.prompts[2]);
  ASSERT_EQ(kept.notes.size(), 1u);
  EXPECT_EQ(kept.notes[0], "[Data] 1 of 3 prompts have more than " + std::to_string(longest - 3) +
                               " tokens (the longest " + std::to_string(longest) + "): left out");
  options_.filter_overlong = false;
  const Ids& whole = all.tokens[1];
  const auto cut = [&](Truncation truncation) {
    options_.truncation = truncation;
    const PromptSet set = read();
    EXPECT_EQ(set.tokens[0], all.tokens[0]);
    EXPECT_NE(set.notes.at(0).find("cut (" + std::string(name_of(truncation))), std::string::npos);
    return set.tokens.at(1);
  };
  EXPECT_EQ(cut(Truncation::right), Ids(whole.begin(), whole.end() - 3));
  EXPECT_EQ(cut(Truncation::left), Ids(whole.begin() + 3, whole.end()));
  // verl's utils/torch_functional.py: the first half of the limit, and the rest from the end.
  const auto half = (longest - 3) / 2;
  Ids middle(whole.begin(), whole.begin() + half);
  middle.insert(middle.end(), whole.end() - (longest - 3 - half), whole.end());
  EXPECT_EQ(cut(Truncation::middle), middle);
}

TEST_F(PromptSetTest, TheModelHasEveryTokenAndItsEndsAreKnown) {
  write("p.jsonl", line("\"hello\""));
  write("generation_config.json", R"({"eos_token_id": [422, 3]})");
  options_.vocabulary = 423;
  EXPECT_EQ(read().end_tokens, (Ids{422, 3}));
  options_.vocabulary = 422;
  EXPECT_NE(refusal().find("token 422 as the end of a response"), std::string::npos) << refusal();
  options_.vocabulary = 100;
  EXPECT_NE(refusal().find("in the prompt of " + (folder_.path / "p.jsonl:1").string()),
            std::string::npos)
      << refusal();
}

/// generation_config.json before config.json as transformers' GenerationConfig, and the tokenizer's
/// as vLLM's; an id that the model cannot draw is none.
TEST_F(PromptSetTest, TheEndIsTheModelsOrTheTokenizersOrNone) {
  write("p.jsonl", line("\"hello\""));
  EXPECT_EQ(read().end_tokens, Ids{});
  const std::string token = "a";
  const Ids id = {*read().tokenizer.id_of(token)};
  write("tokenizer_config.json", R"({"eos_token": ")" + token + "\"}");
  EXPECT_EQ(read().end_tokens, id);
  write("tokenizer_config.json", R"({"eos_token": {"content": ")" + token + "\"}}");
  EXPECT_EQ(read().end_tokens, id);
  write("tokenizer_config.json", R"({"eos_token": "no token of it"})");
  EXPECT_EQ(read().end_tokens, Ids{});
  write("tokenizer_config.json", R"({"eos_token": null})");
  EXPECT_EQ(read().end_tokens, Ids{});
  write("tokenizer_config.json", R"({"eos_token": ")" + token + "\"}");
  options_.end_token = 5;
  EXPECT_EQ(read().end_tokens, Ids{5});
  write("generation_config.json", R"({"eos_token_id": [7, 3]})");
  EXPECT_EQ(read().end_tokens, (Ids{7, 3}));
}

TEST_F(PromptSetTest, EveryDataSourceHasARule) {
  write("p.jsonl", line("\"a\"", "openai/gsm8k") + line("\"b\"", "numina_cn_k12"));
  options_.rewards.functions = {{.name = "by_data_source", .rule = reward_rule("by_data_source")}};
  EXPECT_NE(refusal().find("numina_cn_k12"), std::string::npos) << refusal();
  EXPECT_EQ(refusal().find("openai/gsm8k'"), std::string::npos);
  options_.rewards.programs.run_file = "mine.yaml";
  EXPECT_EQ(refusal().find("mine.yaml:reward.function: found by_data_source"), 0u) << refusal();
}

TEST_F(PromptSetTest, AFaultIsPlacedInItsOwnFileByItsOwnLine) {
  write("p.jsonl", line("\"1\"") + line("\"2\""));
  write("q.jsonl", "\n" + line("\"3\"") + "\n" + line("\"1 2 3 4 5 6 7 8 9\""));
  options_.files.push_back(folder_.path / "q.jsonl");
  options_.max_tokens = 4;
  EXPECT_NE(refusal().find("/q.jsonl:4 (/prompt): found 1 of 4 prompts"), std::string::npos)
      << refusal();
  options_.max_tokens = 0;
  options_.per_step = 5;
  options_.rewards.programs.run_file = "mine.yaml";
  EXPECT_EQ(refusal().find("mine.yaml:data.train_files: found 4 prompts"), 0u) << refusal();
  EXPECT_EQ(place_of({.line = 7}, "rows.parquet"), "row 7");
  EXPECT_EQ(place_of({.line = 7}, "lines.jsonl"), "7");
}

TEST_F(PromptSetTest, RewardKeysNameFunctionsOrRules) {
  write("p.jsonl", line("\"a\""));
  options_.rewards.functions = {{.name = "math", .rule = reward_rule("math")},
                                {.name = "format", .weight = 0.5, .rule = reward_rule("format")}};
  options_.components = {"format", "exact"};
  const PromptSet set = read();
  ASSERT_EQ(set.rewards.size(), 3u);
  EXPECT_EQ(set.rewards[2].rule, reward_rule("exact"));
  EXPECT_EQ(set.rewards[2].weight, 0);
  EXPECT_EQ(set.components, (std::vector<std::size_t>{1, 2}));
  options_.components = {"exat"};
  EXPECT_NE(refusal().find("exact"), std::string::npos);
}

TEST_F(PromptSetTest, FilesWithWeightsKeepThemWhereLongPromptsAreLeftOut) {
  write("p.jsonl", line("\"1\"") + line("\"1 2 3 4 5 6 7 8 9\""));
  write("q.jsonl", line("\"1 2 3 4 5 6 7 8 9\"") + line("\"2\"") + line("\"3\""));
  options_.files.push_back(folder_.path / "q.jsonl");
  options_.weights = {1, 3};
  options_.max_tokens = 4;
  options_.filter_overlong = true;
  const PromptSet set = read();
  ASSERT_EQ(set.prompts.size(), 3u);
  int first = 0;
  for (const std::int64_t place : set.source.at(0, 1000)) first += place == 0 ? 1 : 0;
  EXPECT_EQ(first, 250);
  write("p.jsonl", line("\"1 2 3 4 5 6 7 8 9\""));
  EXPECT_NE(refusal().find("p.jsonl"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace tessera
