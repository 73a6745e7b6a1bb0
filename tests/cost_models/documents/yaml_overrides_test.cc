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
