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

}  // namespace
}  // namespace tessera
