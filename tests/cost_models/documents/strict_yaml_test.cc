#include "cost_models/documents/strict_yaml.h"

#include <gtest/gtest.h>

#include <string>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

struct Malformed {
  const char* text;
  const char* place;
  const char* found;
  const char* expected;
};

TEST(StrictYaml, RefusesEveryMalformedTextWithItsPlaceAndReason) {
  const Malformed cases[] = {
      {"", "1:1", "an empty document", "a map"},
      {"# only a comment\n", "1:1", "an empty document", "a map"},
      {"a: 1\nb: [1, 2\n", "3:1", "malformed text", "YAML"},
      {"a: \"open\n", "1:4", "never closed", "a closing quote"},
      {"a: \"x\\\"\n", "1:4", "never closed", "a closing quote"},
      {"\xC3\xA9: 1\r\na: 'it''s\n", "2:4", "never closed", "a closing quote"},
      {"a: {b: 1\nc: 2\n", "2:2", "malformed text", "YAML"},
      {"a: 1\n  b: 2\n", "2:4", "malformed text", "YAML"},
      {"a: b: c\n", "1:5", "malformed text", "YAML"},
      {"a: 1\n\tb: 2\n", "2:1", "malformed text", "YAML"},
      {"a: 1\na: 2\n", "2:1", "the key 'a' again", "every key once"},
      {"x:\n  a: 1\n  b: 2\n  a: 3\n", "4:3", "the key 'a' again", "every key once"},
      {"{a: 1, a: 2}\n", "1:8", "the key 'a' again", "every key once"},
      {"a: *b\n", "1:4", "malformed text", "YAML"},
      {"a: !!int 3\n", "1:4", "the tag 'tag:yaml.org,2002:int'", "without tags"},
      {"a: !python/object:os.system x\n", "1:4", "the tag '!python/object:os.system'", "tags"},
      {"? [1, 2]\n: 3\n", "1:3", "a list as a key", "a name"},
      {"? {a: 1}\n: 3\n", "1:3", "a map as a key", "a name"},
      {"a: 1\n---\nb: 2\n", "2:1", "a second document", "one document"},
      {"a: .nan\n", "1:4", ".nan", "a finite number"},
      {"a: -.inf\n", "1:4", "-.inf", "a finite number"},
      {"a: 9223372036854775808\n", "1:4", "9223372036854775808", "64 bits"},
      {"a: -9223372036854775809\n", "1:4", "-9223372036854775809", "64 bits"},
      {"a: 1e400\n", "1:4", "1e400", "a double can hold"},
      {"\xEF\xBB\xBF"
       "a: 1\n",
       "1:1", "a byte-order mark", "plain UTF-8"},
      {"a: \xFF\n", "1:4", "not UTF-8", "UTF-8"},
      {": 1\n", "1:1", "an empty key", "a name"},
  };
  for (const Malformed& malformed : cases) {
    SCOPED_TRACE(malformed.text);
    Problems problems;
    EXPECT_FALSE(parse_yaml(malformed.text, "f.yaml", problems));
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].file, "f.yaml");
    EXPECT_EQ(problems[0].place, malformed.place) << to_string(problems[0]);
    EXPECT_NE(problems[0].found.find(malformed.found), std::string::npos) << problems[0].found;
    EXPECT_NE(problems[0].expected.find(malformed.expected), std::string::npos)
        << problems[0].expected;
  }
}

TEST(StrictYaml, RefusesAnAliasBombWithoutExpandingIt) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before +
            ", " + before + "]\n";
  }
  Problems problems;
  EXPECT_FALSE(parse_yaml(bomb, "f", problems));
  ASSERT_FALSE(problems.empty());
  EXPECT_LE(problems.size(), 20u);
  EXPECT_EQ(problems[0].place, "1:5");
  EXPECT_NE(problems[0].found.find("anchor"), std::string::npos);
}

TEST(StrictYaml, StopsAtTheDepthLimitInFlowAndBlockStyle) {
  const std::string flow = std::string(10'000, '[') + std::string(10'000, ']');
  std::string block;
  for (int i = 0; i < 400; ++i) block += std::string(i, ' ') + "a:\n";
  for (const std::string& text : {flow, block}) {
    Problems problems;
    EXPECT_FALSE(parse_yaml(text, "f", problems));
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].found, "more than 64 levels");
  }
}

// A million open brackets are told as depth, not kept; brackets in text and comments are none.
TEST(StrictYaml, TellsTheDepthOfBracketsThatAreNeverClosed) {
  Problems problems;
  EXPECT_FALSE(parse_yaml(std::string(1'000'000, '['), "f", problems, {.bytes = 1 << 21}));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].place, "1:65");
  EXPECT_EQ(problems[0].found, "more than 64 levels");
  const std::string many(100, '[');
  Problems none;
  EXPECT_TRUE(parse_yaml("a: \"" + many + "\"\n# " + many + "\nb: '" + many + "'\n", "f", none))
      << to_string(none.at(0));
}

TEST(StrictYaml, TellsAnAnchorOnce) {
  Problems problems;
  EXPECT_FALSE(parse_yaml("a: &x 1\nb: &y [1]\n", "f", problems));
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].place, "1:4");
  EXPECT_EQ(problems[0].found, "the anchor '&x'");
  EXPECT_EQ(problems[1].found, "the anchor '&y'");
}

TEST(StrictYaml, KeepsWhatStandsAroundAKeyOrValueThatIsRefused) {
  const std::string text = "a: 1\na: 2\nb: &x 3\nc: *x\nd: !!int 4\ne: .inf\nf: 5\n";
  Problems problems;
  const auto document = parse_yaml_as_far(text, "f", problems);
  ASSERT_TRUE(document);
  EXPECT_EQ(problems.size(), 5u);
  EXPECT_EQ(document->root.find("a")->integer, 1);
  EXPECT_TRUE(document->root.find("c")->refused);
  EXPECT_EQ(document->root.find("f")->integer, 5);
  EXPECT_FALSE(parse_yaml(text, "f", problems));
  EXPECT_FALSE(parse_yaml_as_far("a: 1\n---\nb: 2\n", "f", problems));
  EXPECT_FALSE(parse_yaml_as_far("a: 1\na: [2\n", "f", problems));
}

TEST(StrictYaml, ResolvesScalarsByTheCoreSchema) {
  Problems problems;
  const auto document = parse_yaml(
      "integer: 12\nnegative: -3\nplus: +4\nfraction: 1.5\nexponent: 1e-3\nword: no\n"
      "quoted: \"12\"\noctal: 0123\nversion: 1.2.3\ntruth: true\nnothing:\ntilde: ~\n"
      "list: [a, 1, .5, 'it''s', \"\\\"\"]\nfolded: >\n  one\n  two\n",
      "f", problems);
  ASSERT_TRUE(document) << to_string(problems.at(0));
  const Node& root = document->root;
  EXPECT_EQ(root.find("integer")->integer, 12);
  EXPECT_EQ(root.find("negative")->integer, -3);
  EXPECT_EQ(root.find("plus")->integer, 4);
  EXPECT_EQ(root.find("fraction")->number, 1.5);
  EXPECT_EQ(root.find("exponent")->number, 1e-3);
  EXPECT_EQ(root.find("word")->text, "no");
  EXPECT_EQ(root.find("quoted")->text, "12");
  EXPECT_EQ(root.find("octal")->text, "0123");
  EXPECT_EQ(root.find("version")->text, "1.2.3");
  EXPECT_TRUE(root.find("truth")->boolean);
  EXPECT_TRUE(root.find("nothing")->is(Node::Kind::null));
  EXPECT_TRUE(root.find("tilde")->is(Node::Kind::null));
  EXPECT_EQ(root.find("list")->items[2].number, 0.5);
  EXPECT_EQ(root.find("list")->items[3].text, "it's");
  EXPECT_EQ(root.find("list")->items[4].text, "\"");
  EXPECT_EQ(root.find("folded")->text, "one two\n");
  EXPECT_EQ(root.find("exponent")->line, 5);
  EXPECT_EQ(root.find("exponent")->column, 11);
}

}  // namespace
}  // namespace tessera
