#include "cost_models/documents/yaml_overrides.h"

#include <gtest/gtest.h>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_yaml.h"

namespace tessera {
namespace {

constexpr const char* kText = "version: 1\ndata: {train_files: [a]}\n";

/// The words of the refusal, and its code.
std::pair<std::string, ExitCode> refused(const std::string& word, const char* text = kText) {
  try {
    const std::string merged = with_overrides(text, {word}, "run.yaml");
    ADD_FAILURE() << merged;
  } catch (const Error& error) {
    return {to_string(error.problems().at(0)), error.code()};
  }
  return {};
}

TEST(YamlOverrides, AWordSetsAKeyAndMakesTheMapsOnItsWay) {
  const std::string merged =
      with_overrides(kText, {"data.train_files=[b, c]", "trainer.a.b=2", "version=3"}, "run.yaml");
  Problems problems;
  const auto document = parse_yaml(merged, "", problems);
  ASSERT_TRUE(document);
  EXPECT_EQ(document->root.find("data")->find("train_files")->items.size(), 2u);
  EXPECT_EQ(document->root.find("trainer")->find("a")->find("b")->integer, 2);
  EXPECT_EQ(document->root.find("version")->integer, 3);
}

/// A text in quotes is a text, whether or not another key is set.
TEST(YamlOverrides, WhatIsQuotedStaysQuoted) {
  const std::string text =
      "a: '1e-3'\nb: \"true\"\nc: [ '2', 3 ]\nd: {e: 'null', f: null, g: ~}\nh: |\n  yes\n  no\n"
      "i: 'it''s: \\n'\n'7': x\n";
  const std::string merged = with_overrides(text, {"j='4'", "k=5", "d.l=\"6\""}, "run.yaml");
  Problems problems;
  const auto before = parse_yaml(text, "", problems), after = parse_yaml(merged, "", problems);
  ASSERT_TRUE(before && after) << merged;
  for (std::size_t i = 0; i < before->root.keys.size(); ++i) {
    const Node* const found = after->root.find(before->root.keys[i]);
    ASSERT_NE(found, nullptr) << before->root.keys[i] << " in " << merged;
    if (before->root.keys[i] == "d") continue;
    EXPECT_EQ(describe(*found), describe(before->root.items[i]));
  }
  EXPECT_TRUE(after->root.find("a")->is(Node::Kind::string)) << merged;
  EXPECT_TRUE(after->root.find("c")->items[0].is(Node::Kind::string));
  EXPECT_TRUE(after->root.find("c")->items[1].is(Node::Kind::integer));
  EXPECT_TRUE(after->root.find("d")->find("e")->is(Node::Kind::string));
  EXPECT_TRUE(after->root.find("d")->find("f")->is(Node::Kind::null));
  EXPECT_TRUE(after->root.find("d")->find("l")->is(Node::Kind::string));
  EXPECT_EQ(after->root.find("h")->text, "yes\nno\n");
  EXPECT_TRUE(after->root.find("j")->is(Node::Kind::string));
  EXPECT_EQ(after->root.find("k")->integer, 5);
}

TEST(YamlOverrides, AWordThatCannotBeReadIsNamedAsItWasGiven) {
  EXPECT_EQ(refused("data.train_files=[a"),
            std::pair(std::string("--set data.train_files=[a: found '[a', a list without its ], "
                                  "expected a value as in the file: 3, text, [a, b], {a: 1}"),
                      ExitCode::usage));
  EXPECT_NE(refused("a={b: 1").first.find("'{b: 1', a map without its }"), std::string::npos);
  EXPECT_NE(refused("a").first.find("found 'a', expected KEY=VALUE"), std::string::npos);
  EXPECT_NE(refused("a..b=1").first.find("--set a..b=1: found 'a..b'"), std::string::npos);
  EXPECT_EQ(refused("a=\"x").first.find("yaml-cpp"), std::string::npos);
}

TEST(YamlOverrides, AFileThatIsNoMapIsNamedWithItsPlace) {
  EXPECT_EQ(refused("a=1", "- 1\n").first,
            "run.yaml: found a list of 1 items, expected a map of keys");
  const auto [words, code] = refused("a=1", "a: [1\n");
  EXPECT_TRUE(words.starts_with("run.yaml:")) << words;
  EXPECT_EQ(words.find("yaml-cpp"), std::string::npos) << words;
  EXPECT_EQ(code, ExitCode::bad_input);
}

/// Where a reader finds a value of the merged text, as it is told.
std::string told(const std::string& place, const std::vector<std::string>& words) {
  const std::string text =
      "# a comment\n\ndata:\n  # another\n  train_files: [a]\n\ntrainer: {seed: 1}\n";
  Problems problems;
  const auto original = parse_yaml(text, "run.yaml", problems);
  EXPECT_TRUE(original);
  problems = {{.file = "run.yaml", .place = place, .found = "x"},
              {.file = "other", .place = place, .found = "x"}};
  place_overridden(*original, words, problems);
  EXPECT_EQ(problems[1].file + ":" + problems[1].place, "other:" + place);
  return problems[0].file + ":" + problems[0].place;
}

TEST(YamlOverrides, ProblemsHaveThePlaceThatTheirReaderKnows) {
  const std::vector<std::string> words{"trainer.seed=2", "algorithm.kl.coef=x", "reward={a: 1}",
                                       "trainer.seed=3"};
  EXPECT_EQ(told("2:9 (data.train_files)", words), "run.yaml:5:16 (data.train_files)");
  EXPECT_EQ(told("data.train_files.0", words), "run.yaml:5:17 (data.train_files.0)");
  EXPECT_EQ(told("3:3 (trainer.seed)", words), "--set trainer.seed=3:");
  EXPECT_EQ(told("3:3 (trainer.seed)", {}), "run.yaml:7:17 (trainer.seed)");
  EXPECT_EQ(told("4:3 (reward.a)", words), "--set reward={a: 1}:reward.a");
  EXPECT_EQ(told("4:3 (algorithm)", words), "--set algorithm.kl.coef=x:algorithm");
  // What is absent is told of the map that lacks it, or by its name alone.
  EXPECT_EQ(told("3:3 (trainer.steps)", words), "run.yaml:7:10 (trainer.steps)");
  EXPECT_EQ(told("1:1 (critic)", words), "run.yaml:3:1 (critic)");
  EXPECT_EQ(told("critic", words), "run.yaml:critic");
  EXPECT_EQ(told("5:1", words), "run.yaml:5:1");
}

TEST(YamlOverrides, AValueThatNoFileMayHoldIsOfItsWord) {
  const auto [text, code] = refused("trainer.lr=1e999");
  EXPECT_EQ(code, ExitCode::usage);
  EXPECT_EQ(text, "--set trainer.lr=1e999: found 1e999, expected a number that a double can hold");
}

}  // namespace
}  // namespace tessera
