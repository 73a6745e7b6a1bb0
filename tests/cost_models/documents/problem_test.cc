#include "cost_models/documents/problem.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cost_models/spec/dtype.h"

namespace tessera {
namespace {

TEST(Problem, SaysWhereWhatWasFoundAndWhatWasExpected) {
  const Problem problem{.file = "plan.json",
                        .place = "/roles/0/layout/tp",
                        .found = "-1",
                        .expected = "a positive integer",
                        .hint = "degrees count ranks"};
  EXPECT_EQ(to_string(problem),
            "plan.json:/roles/0/layout/tp: found -1, expected a positive integer (degrees count "
            "ranks)");
}

TEST(Problem, ShowsControlCharactersOfAFileEscaped) {
  const Problem problem{.file = "a\x1b[2J.yaml",
                        .place = "1:1 (\x07)",
                        .found = "'\r\nfine\x7f\xc2\x9b\xe2\x80\xae\xff'",
                        .expected = "\t\xc3\xa9",
                        .hint = "\x1b"};
  EXPECT_EQ(to_string(problem),
            "a\\x1b[2J.yaml:1:1 (\\x07): found '\\r\\nfine\\x7f\\x9b\\u202e\\xff', expected "
            "\t\xc3\xa9 (\\x1b)");
  EXPECT_EQ(to_string(Problem{.found = "two\nlines\x1b"}), "two\nlines\\x1b");
  EXPECT_LT(to_string(Problem{.file = "f", .found = std::string(1 << 20, 'k')}).size(), 2000U);
}

TEST(Problem, SuggestsTheNearestKnownWordOnly) {
  const std::vector<std::string> known{"tensor_parallel", "nodes", "nics_per_node"};
  EXPECT_EQ(did_you_mean("node", known), "did you mean 'nodes'?");
  EXPECT_EQ(did_you_mean("tensor_paralel", known), "did you mean 'tensor_parallel'?");
  EXPECT_EQ(did_you_mean("quantum", known), "");
}

TEST(Problem, SuggestsAWordOfWhichPartsWereLeftOut) {
  const std::vector<std::string> known{"critic.veomni.strategy", "actor.veomni.parallel_size",
                                       "actor.veomni.ulysses_parallel_size",
                                       "actor.veomni.ulysses_parallel_window_size"};
  EXPECT_EQ(did_you_mean("actor.veomni.ulysses_size", known),
            "did you mean 'actor.veomni.ulysses_parallel_size'?");
  EXPECT_EQ(did_you_mean("veomni.ulysses_size", known),
            "did you mean 'actor.veomni.ulysses_parallel_size'?");
  EXPECT_EQ(did_you_mean("actor.veomni.size_ulysses", known), "");
  EXPECT_EQ(did_you_mean("actor.size", known), "did you mean 'actor.veomni.parallel_size'?");
  EXPECT_EQ(did_you_mean("ulysses", known), "");
  EXPECT_EQ(did_you_mean("", known), "");
}

TEST(Problem, AnErrorCarriesEveryProblem) {
  const Error error(ExitCode::bad_input, Problems{{.file = "a", .found = "x"}, {.file = "b"}});
  EXPECT_EQ(error.problems().size(), 2u);
  EXPECT_NE(std::string(error.what()).find('b'), std::string::npos);
}

TEST(DType, ReadsEverySpellingOfATypeBack) {
  for (const char* name : {"bf16", "bfloat16", "BF16"}) EXPECT_EQ(dtype_from(name), DType::bf16);
  EXPECT_EQ(dtype_from("float8"), std::nullopt);
  EXPECT_EQ(size_of(DType::bf16), 2);
}

}  // namespace
}  // namespace tessera
