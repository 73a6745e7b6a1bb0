#include "cost_models/documents/strict_json.h"

#include <gtest/gtest.h>

#include <cmath>

#include <string>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

struct Malformed {
  const char* text;
  const char* place;
  const char* found;     // a part of Problem::found
  const char* expected;  // a part of Problem::expected
};

TEST(StrictJson, RefusesEveryMalformedTextWithItsPlaceAndReason) {
  const Malformed cases[] = {
      {"", "1:1", "the end of the text", "JSON"},
      {"   ", "1:4", "the end of the text", "JSON"},
      {"{", "1:2", "the end of the text", "JSON"},
      {"{\"a\": 1", "1:8 (/a)", "the end of the text", "JSON"},
      {"{\"a\": 1,}", "1:9 (/a)", "}", "JSON"},
      {"[1, 2", "1:6 (/1)", "the end of the text", "JSON"},
      {"[1 2]", "1:4 (/0)", "2", "JSON"},
      {"{'a': 1}", "1:2", "'", "JSON"},
      {"{\"a\" 1}", "1:6 (/a)", "1", "JSON"},
      {"// note\n{}", "1:1", "/", "JSON"},
      {"{} {}", "1:4", "{", "JSON"},
      {"[NaN]", "1:2", "N", "JSON"},
      {"[Infinity]", "1:2", "I", "JSON"},
      {"[1e400]", "1:2 (/0)", "1e400", "a double can hold"},
      {"1e999", "1:1", "1e999", "a double can hold"},
      {"{\"a\": 1,\n \"b\": {\"c\" :  -1e999}}", "2:15 (/b/c)", "-1e999", "a double can hold"},
      {"{\"a\": [1, {}, 1e999]}", "1:15 (/a/2)", "1e999", "a double can hold"},
      {"{\"a\": 1, \"b\": tru}", "1:18 (/b)", "tru", "JSON"},
      {"{\"a\":\n 9223372036854775808}", "2:2 (/a)", "9223372036854775808", "64 bits"},
      {"[-9223372036854775809]", "1:2 (/0)", "-9223372036854775809", "64 bits"},
      {"[184467440737095516150]", "1:2 (/0)", "184467440737095516150", "64 bits"},
      {"{\"a\": 1,\n  \"a\": 2}", "2:3 (/a)", "the key 'a' again", "every key once"},
      {"[{\"b\": {\"x\": 1, \"x\": 1}}]", "1:17 (/0/b/x)", "the key 'x' again", "every key once"},
      {"\xEF\xBB\xBF{}", "1:1", "a byte-order mark", "plain UTF-8"},
      {"{\"a\": \"\xC0\xAF\"}", "1:8", "not UTF-8", "UTF-8"},
      {"[\"\xED\xA0\x80\"]", "1:3", "not UTF-8", "UTF-8"},
      {"[\"\xF4\x90\x80\x80\"]", "1:3", "not UTF-8", "UTF-8"},
      {"[\"\xE2\x82\"]", "1:3", "not UTF-8", "UTF-8"},
      {"[\"\\ud800\"]", "1:9", "", "JSON"},
      {"[\"a\tb\"]", "1:4", "", "JSON"},
      {"[01]", "1:3 (/0)", "1", "JSON"},
      {"[.5]", "1:2", ".", "JSON"},
      {"tru", "1:4", "the end of the text", "JSON"},
      {"{\"a\": \"b\n", "1:9 (/a)", "the end of the text", "JSON"},
      {"{\"a\": \"b", "1:9 (/a)", "the end of the text", "JSON"},
  };
  for (const Malformed& malformed : cases) {
    SCOPED_TRACE(malformed.text);
    Problems problems;
    EXPECT_FALSE(parse_json(malformed.text, "f.json", problems));
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].file, "f.json");
    EXPECT_EQ(problems[0].place, malformed.place);
    EXPECT_NE(problems[0].found.find(malformed.found), std::string::npos) << problems[0].found;
    EXPECT_NE(problems[0].expected.find(malformed.expected), std::string::npos)
        << problems[0].expected;
  }
}

// Whether its last line has an end or not; a line's end with more behind it is another fault.
TEST(StrictJson, AFileThatWasCutOffWithinAStringIsSaidToBe) {
  const auto hint_of = [](const char* text) {
    Problems problems;
    EXPECT_FALSE(parse_json(text, "f.json", problems));
    return problems.empty() ? "" : problems.front().hint;
  };
  EXPECT_EQ(hint_of("{\"a\": 1,\n \"b"), "the file ends within a string");
  EXPECT_EQ(hint_of("{\"a\": 1,\n \"b\n\n "), "the file ends within a string");
  EXPECT_NE(hint_of("{\"a\": \"b\n \"c\": 2}").find("must be escaped"), std::string::npos);
}

TEST(StrictJson, ReportsAllDuplicateKeysOfAFileAtOnce) {
  Problems problems;
  EXPECT_FALSE(parse_json("{\"a\":1,\"a\":2,\"b\":{\"c\":0,\"c\":0}}", "f", problems));
  EXPECT_EQ(problems.size(), 2u);
}

TEST(StrictJson, StopsAtTheDepthLimitHoweverDeepTheTextIs) {
  const std::string fits = std::string(64, '[') + std::string(64, ']');
  Problems problems;
  EXPECT_TRUE(parse_json(fits, "f", problems));
  EXPECT_TRUE(problems.empty());
  for (const int depth : {65, 1'000'000}) {
    const std::string deep = std::string(depth, '[') + std::string(depth, ']');
    problems.clear();
    EXPECT_FALSE(parse_json(deep, "f", problems));
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].found, "more than 64 levels");
    EXPECT_TRUE(problems[0].place.starts_with("1:65 (/0/0")) << problems[0].place;
  }
}

TEST(StrictJson, RefusesTextBeyondTheSizeLimit) {
  Problems problems;
  EXPECT_FALSE(parse_json("[1, 2, 3]", "f", problems, {.bytes = 8}));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].found, "9 bytes");
}

TEST(StrictJson, EveryPrefixOfAGoodTextIsRefusedWithoutACrash) {
  const std::string text =
      R"({"a": [1, -2.5e-3, true, null], "b": {"c": "x\u00e9\ud83d\ude00\n", "d": {}}})";
  Problems problems;
  ASSERT_TRUE(parse_json(text, "f", problems));
  for (std::size_t length = 0; length < text.size(); ++length) {
    problems.clear();
    EXPECT_FALSE(parse_json(text.substr(0, length), "f", problems)) << length;
    EXPECT_FALSE(problems.empty());
  }
}

TEST(StrictJson, KeepsWhatStandsAroundANumberBeyond64Bits) {
  const std::string text = R"({"a": 9223372036854775808, "b": [1, -99999999999999999999, 2]})";
  Problems problems;
  EXPECT_FALSE(parse_json(text, "f", problems));
  EXPECT_EQ(problems.size(), 2u);
  problems.clear();
  const auto document = parse_json_as_far(text, "f", problems);
  ASSERT_TRUE(document);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[1].place, "1:37 (/b/1)");
  EXPECT_TRUE(document->root.find("a")->refused);
  const Node& list = *document->root.find("b");
  EXPECT_TRUE(list.items[1].refused);
  EXPECT_EQ(list.items[2].integer, 2);
  EXPECT_FALSE(parse_json_as_far("{\"a\": 99999999999999999999, \"a\": 1}", "f", problems));
  EXPECT_FALSE(parse_json_as_far("{\"a\": 99999999999999999999", "f", problems));
}

TEST(StrictJson, NumbersBeyond64BitsOfPythonsFilesAreDoubles) {
  const std::string text =
      R"({"a": 9223372036854775808, "b": -99999999999999999999, "c": 9223372036854775807})";
  Problems problems;
  const auto document = parse_python_json(text, "f", problems);
  ASSERT_TRUE(document);
  EXPECT_EQ(document->root.find("a")->number, 9223372036854775808.0);
  EXPECT_TRUE(document->root.find("b")->is(Node::Kind::number));
  EXPECT_EQ(document->root.find("c")->integer, 9223372036854775807);
  EXPECT_FALSE(parse_python_json("{\"a\": 1, \"a\": 2}", "f", problems));
}

TEST(StrictJson, ReadsValuesWithTheirLinesAndColumns) {
  Problems problems;
  const auto document = parse_json(
      "{\n  \"n\": -7,\n  \"x\": [0.5, 1e3, 9223372036854775807, \"\\u00e9\"],\n  \"t\": true\n}",
      "f", problems);
  ASSERT_TRUE(document);
  const Node& root = document->root;
  EXPECT_EQ(root.keys, (std::vector<std::string>{"n", "x", "t"}));
  EXPECT_EQ(root.find("n")->integer, -7);
  EXPECT_EQ(root.find("n")->line, 2);
  EXPECT_EQ(root.find("n")->column, 8);
  const Node& list = *root.find("x");
  ASSERT_EQ(list.items.size(), 4u);
  EXPECT_EQ(list.items[0].number, 0.5);
  EXPECT_TRUE(list.items[1].is(Node::Kind::number));
  EXPECT_EQ(list.items[2].integer, 9223372036854775807);
  EXPECT_EQ(list.items[2].number, 9223372036854775807.0);
  EXPECT_EQ(list.items[3].text, "\xC3\xA9");
  EXPECT_EQ(list.items[3].column, 40);
  EXPECT_EQ(root.find("t")->line, 4);
  EXPECT_EQ(root.find("absent"), nullptr);
}

TEST(StrictJson, WritesTextThatReadsBackAsTheSameValues) {
  Node root = map_node();
  add(root, "tenth", node_of(0.1));
  add(root, "whole", node_of(3.0));
  add(root, "tiny", node_of(5e-324));
  add(root, "large", node_of(1e22));
  add(root, "negative zero", node_of(-0.0));
  add(root, "text", node_of(std::string_view("quote \" slash \\ line\nbell\x07 \xC3\xA9")));
  Node list = list_node();
  list.items.push_back(node_of(std::int64_t{-1}));
  list.items.push_back(Node{});
  list.items.push_back(map_node());
  add(root, "list", list);
  for (const std::string& text : {json_text(root), json_line(root)}) {
    Problems problems;
    const auto document = parse_json(text, "f", problems);
    ASSERT_TRUE(document) << text;
    EXPECT_EQ(json_text(document->root), json_text(root));
    EXPECT_EQ(document->root.find("tenth")->number, 0.1);
    EXPECT_TRUE(document->root.find("whole")->is(Node::Kind::number));
    EXPECT_EQ(document->root.find("tiny")->number, 5e-324);
    EXPECT_TRUE(std::signbit(document->root.find("negative zero")->number));
    EXPECT_EQ(document->root.find("text")->text, root.find("text")->text);
  }
  EXPECT_EQ(json_line(list), "[-1,null,{}]");
}

TEST(StrictJson, NeverWritesANumberThatIsNotFinite) {
  EXPECT_THROW(json_text(node_of(0.0 / 0.0)), Error);
  EXPECT_THROW(json_line(node_of(1e308 * 10)), Error);
}

}  // namespace
}  // namespace tessera
