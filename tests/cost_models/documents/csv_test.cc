#include "cost_models/documents/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CsvTable parsed(std::string_view text) {
  Problems problems;
  const auto table = parse_csv(text, "t.csv", problems);
  EXPECT_TRUE(problems.empty()) << (problems.empty() ? "" : to_string(problems[0]));
  return table.value_or(CsvTable{});
}

std::vector<std::string> refusals(std::string_view text) {
  Problems problems;
  EXPECT_FALSE(parse_csv(text, "t.csv", problems).has_value());
  std::vector<std::string> lines;
  for (const Problem& problem : problems) lines.push_back(to_string(problem));
  return lines;
}

TEST(Csv, RefusesTablesWithoutEndAndControlCharacters) {
  std::string wide = "a", many = "a,b\n";
  for (int i = 0; i < 1024; ++i) wide += ",c" + std::to_string(i);
  EXPECT_THAT(refusals(wide + "\n"), ElementsAre(HasSubstr("at most 1024 columns")));
  EXPECT_EQ(parsed(wide.substr(0, wide.rfind(',')) + "\n").header.size(), 1024U);
  EXPECT_THAT(refusals("a,b\n" + wide + "\n"), ElementsAre(HasSubstr("at most 1024 columns")));
  for (int i = 0; i < 1 << 20; ++i) many += ",\n";
  EXPECT_THAT(refusals(many), ElementsAre(HasSubstr("at most 2097152 cells")));
  EXPECT_THAT(refusals("a,b\n1,\x1b[2J\n"), ElementsAre(HasSubstr("t.csv:2:3: found a control")));
}

TEST(Csv, ReadsQuotesCommasAndLineEndsInCells) {
  const CsvTable table = parsed("a,b,c\r\n1,\"x, \"\"y\"\"\",\r\n\"two\nlines\",,3\n");
  EXPECT_THAT(table.header, ElementsAre("a", "b", "c"));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(table.rows[0].cells, ElementsAre("1", "x, \"y\"", ""));
  EXPECT_THAT(table.rows[1].cells, ElementsAre("two\nlines", "", "3"));
  EXPECT_EQ(table.rows[0].line, 2U);
  EXPECT_EQ(table.rows[1].line, 3U);
}

TEST(Csv, CountsLinesAcrossQuotedLineEndsAndEmptyLines) {
  const CsvTable table = parsed("a\n\"x\ny\"\n\nz");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[1].line, 5U);
  EXPECT_EQ(table.column("a"), 0U);
  EXPECT_EQ(table.column("b"), std::nullopt);
}

TEST(Csv, WritesWhatItReads) {
  const CsvTable table = parsed("a,b\n\"1,2\",\"say \"\"hi\"\"\"\n,\"\n\"\n");
  EXPECT_EQ(parsed(to_csv(table)).rows[0].cells, table.rows[0].cells);
  EXPECT_EQ(to_csv(parsed(to_csv(table))), to_csv(table));
  EXPECT_EQ(parsed(to_csv(parsed("a\n\"\"\nx\n"))).rows.size(), 2U);
}

TEST(Csv, SkipsASpreadsheetsByteOrderMark) {
  EXPECT_THAT(parsed("\xEF\xBB\xBF"
                     "model,gpus\nm,1\n")
                  .header,
              ElementsAre("model", "gpus"));
}

TEST(Csv, NamesEveryBrokenLineAtOnce) {
  EXPECT_THAT(refusals("a,b\n1\n1,2\n1,2,3\n"), ElementsAre(HasSubstr("t.csv:2:1: found 1 cells"),
                                                            HasSubstr("t.csv:4:1: found 3 cells")));
  EXPECT_THAT(refusals("a,b\n1,x\"y\n\"z\"z,2\n"),
              testing::Contains(HasSubstr("t.csv:2:4: found a quote inside a bare cell")));
  EXPECT_THAT(refusals("a,b\n\"z\"z,2\n"),
              testing::Contains(HasSubstr("t.csv:2:4: found text after a closing quote")));
  EXPECT_THAT(refusals("a\n\"open\n1\n"),
              ElementsAre(HasSubstr("t.csv:2:1: found a quote that is")));
}

TEST(Csv, RefusesHeadersThatAreEmptyOrNameAColumnTwice) {
  EXPECT_THAT(refusals(""), ElementsAre(HasSubstr("an empty file")));
  EXPECT_THAT(refusals("a,,a\n"), ElementsAre(HasSubstr("column 2 without a name"),
                                              HasSubstr("column 3 named 'a' again")));
}

TEST(Csv, RefusesBytesThatAreNoText) {
  EXPECT_FALSE(refusals(std::string_view("a\n\0", 3)).empty());
  EXPECT_FALSE(refusals("a\n\xff\n").empty());
  EXPECT_EQ(refusals(std::string("a,b\n") + std::string(100000, '\n') +
                     [] {
                       std::string lines;
                       for (int i = 0; i < 10000; ++i) lines += "1\n";
                       return lines;
                     }())
                .size(),
            100U);
}

}  // namespace
}  // namespace tessera
