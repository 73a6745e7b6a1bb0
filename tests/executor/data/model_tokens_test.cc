#include "executor/data/model_tokens.h"

#include <gtest/gtest.h>

#include <fstream>

#include "cost_models/documents/problem.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(EndTokens, AreAllThatGenerationConfigNames) {
  TemporaryFolder folder;
  Problems problems;
  const auto file = folder.path / "generation_config.json";
  EXPECT_EQ(end_tokens(folder.path, problems), Ids{}) << "no file";
  const auto of = [&](const std::string& text) {
    std::ofstream(file) << text;
    return end_tokens(folder.path, problems);
  };
  EXPECT_EQ(of(R"({"eos_token_id": [151645, 151643], "temperature": 0.7})"), (Ids{151645, 151643}));
  EXPECT_EQ(of(R"({"eos_token_id": 2})"), Ids{2});
  EXPECT_EQ(of(R"({"eos_token_id": null})"), Ids{});
  EXPECT_EQ(of(R"({"max_length": 20})"), Ids{});
  EXPECT_TRUE(problems.empty());
  of(R"({"eos_token_id": ["<e>"]})");
  EXPECT_EQ(problems.size(), 1u);
  of(R"({"eos_token_id": -1})");
  of("{");
  EXPECT_EQ(problems.size(), 3u);
}

TEST(Vocabulary, HoldsEveryTokenOfPromptsAndEnds) {
  Problems problems;
  const auto place = [](std::size_t i) { return "p.jsonl:" + std::to_string(10 * i); };
  check_vocabulary({{0, 9}, {}, {3}}, {9}, 10, "model", place, problems);
  EXPECT_TRUE(problems.empty());
  check_vocabulary({{0, 9}, {10}}, {11}, 10, "model", place, problems);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(to_string(problems[0]).find("model/generation_config.json"), std::string::npos);
  EXPECT_NE(to_string(problems[1]).find("token 10 in the prompt of p.jsonl:10"), std::string::npos);
  EXPECT_NE(to_string(problems[1]).find("ids below 10"), std::string::npos);
}

}  // namespace
}  // namespace tessera
