#include "cost_models/documents/object_reader.h"

#include <gtest/gtest.h>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/documents/strict_yaml.h"

namespace tessera {
namespace {

enum class Colour { red, green };
std::string_view name_of(Colour colour) { return colour == Colour::red ? "red" : "green"; }
constexpr std::array kColours{Colour::red, Colour::green};

struct Shape {
  std::int64_t sides = 0;
  double size = 0;
  bool closed = false;
  std::string name = "none";
  Colour colour = Colour::red;
  std::vector<std::int64_t> points;
};

Shape read(const Document& document, Problems& problems) {
  Shape shape;
  ObjectReader reader(document, problems);
  reader.required("sides", shape.sides, kPositive);
  reader.required("size", shape.size, kAboveZero);
  reader.optional("closed", shape.closed);
  reader.optional("name", shape.name);
  reader.optional("colour", shape.colour, kColours);
  if (auto inner = reader.object("inner", false)) {
    inner->list("points", shape.points, kNotNegative);
    inner->refuse_unknown_keys();
  }
  reader.refuse_unknown_keys();
  return shape;
}

// As JSON Schema's "integer" has it, whose validators read the same files.
TEST(ObjectReader, TakesAWholeNumberHoweverItIsWritten) {
  for (const char* const sides : {"1000.0", "1e3", "1.0E+3"}) {
    Problems problems;
    const std::string text = std::string("{\"sides\": ") + sides + ", \"size\": 2}";
    EXPECT_EQ(read(*parse_json(text, "f", problems), problems).sides, 1000) << sides;
    const std::string yaml = std::string("sides: ") + sides + "\nsize: 2\n";
    EXPECT_EQ(read(*parse_yaml(yaml, "f", problems), problems).sides, 1000) << sides;
    EXPECT_TRUE(problems.empty()) << to_string(problems[0]);
  }
  for (const char* const sides : {"2.5", "1e300", "-1.0", "9007199254740994.0"}) {
    Problems problems;
    const std::string text = std::string("{\"sides\": ") + sides + ", \"size\": 2}";
    EXPECT_EQ(read(*parse_json(text, "f", problems), problems).sides, 0) << sides;
    EXPECT_EQ(problems.size(), 1U) << sides;
  }
}

TEST(ObjectReader, ReadsTheSameValuesFromJsonAndYaml) {
  Problems problems;
  const auto json = parse_json(
      R"({"sides": 3, "size": 2, "closed": true, "name": null, "colour": "green",
          "inner": {"points": [1, 2]}})",
      "f", problems);
  const auto yaml =
      parse_yaml("sides: 3\nsize: 2\nclosed: true\nname:\ncolour: green\ninner: {points: [1, 2]}\n",
                 "f", problems);
  for (const auto& document : {json, yaml}) {
    const Shape shape = read(*document, problems);
    EXPECT_EQ(shape.sides, 3);
    EXPECT_EQ(shape.size, 2.0);
    EXPECT_TRUE(shape.closed);
    EXPECT_EQ(shape.name, "none");
    EXPECT_EQ(shape.colour, Colour::green);
    EXPECT_EQ(shape.points, (std::vector<std::int64_t>{1, 2}));
  }
  EXPECT_TRUE(problems.empty());
}

TEST(ObjectReader, ReportsEveryDefectOfAFileWithItsPlace) {
  Problems problems;
  const auto document = parse_yaml(
      "sides: 0\nclosed: yes\ncolour: gren\ninner:\n  points: [1, -2, x]\n  pionts: []\n", "f.yaml",
      problems);
  read(*document, problems);
  std::vector<std::string> lines;
  for (const Problem& problem : problems) lines.push_back(to_string(problem));
  EXPECT_EQ(lines,
            (std::vector<std::string>{
                "f.yaml:1:8 (sides): found 0, expected a positive integer",
                "f.yaml:1:1 (size): found no 'size', expected a value",
                ("f.yaml:2:9 (closed): found \"yes\", expected true or false (write true or false, "
                 "unquoted)"),
                ("f.yaml:3:9 (colour): found \"gren\", expected one of red, green (did you mean "
                 "'green'?)"),
                "f.yaml:5:15 (inner.points): found -2, expected an integer of at least 0",
                "f.yaml:5:19 (inner.points): found \"x\", expected an integer of at least 0",
                ("f.yaml:6:11 (inner.pionts): found the unknown key 'pionts', expected a known key "
                 "(did you mean 'points'?)"),
            }));
}

TEST(ObjectReader, NamesJsonPlacesByPointer) {
  Problems problems;
  const auto document = parse_json(R"({"sides": 3.5, "size": "2", "a/b": 1})", "f.json", problems);
  read(*document, problems);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].place, "1:11 (/sides)");
  EXPECT_EQ(problems[1].place, "1:24 (/size)");
  EXPECT_NE(problems[1].hint, "");
  EXPECT_EQ(problems[2].place, "1:36 (/a~1b)");
}

TEST(ObjectReader, AnUnknownKeyOfAKnownOnesInitialsIsMeantByIt) {
  Problems problems;
  const auto yaml = parse_yaml("learning_rate: 1\nlast_step: 2\n", "f.yaml", problems);
  ASSERT_TRUE(yaml);
  ObjectReader reader(*yaml, problems);
  double lr = 0;
  reader.optional("lr", lr);
  reader.refuse_unknown_keys();
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].hint, "did you mean 'lr'?");
  EXPECT_EQ(problems[1].hint, "");
}

TEST(ObjectReader, AKeyByItsPathHasThePlaceOfItsValue) {
  Problems problems;
  const auto yaml = parse_yaml("a:\n  b: [x, {c: 3}]\nd: 1\n", "f.yaml", problems);
  ASSERT_TRUE(yaml);
  EXPECT_EQ(place_of_key(*yaml, "a.b.1.c"), "2:14 (a.b.1.c)");
  EXPECT_EQ(place_of_key(*yaml, "d"), "3:4 (d)");
  for (const char* absent : {"a.b.2", "a.b.x", "a.b.1.e", "d.e", "e", "a.b (x)"}) {
    EXPECT_EQ(place_of_key(*yaml, absent), absent);
  }
}

TEST(ObjectReader, RefusesARootThatIsNotAMapOnceAndNothingElse) {
  Problems problems;
  const auto document = parse_json("[1]", "f.json", problems);
  read(*document, problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].found, "a list of 1 items");
}

// A path of megabytes would hold up whoever measures or prints it.
TEST(ObjectReader, ATextIsNoLongerThanAnybodyReads) {
  const auto read_name = [](std::size_t length) {
    Problems problems;
    const std::string text =
        R"({"sides": 3, "size": 1, "name": ")" + std::string(length, 'x') + "\"}";
    read(*parse_json(text, "shape.json", problems), problems);
    return problems;
  };
  EXPECT_TRUE(read_name(1 << 16).empty());
  const Problems problems = read_name((1 << 16) + 1);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].expected, "text of at most 65536 bytes");
  EXPECT_LT(problems[0].found.size(), 200u);
}

}  // namespace
}  // namespace tessera
