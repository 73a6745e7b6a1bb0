// What is said of Parquet files where the module that reads them is missing.
#include <gtest/gtest.h>

#include "cost_models/documents/problem.h"
#include "executor/data/parquet_rows.h"

namespace tessera {
namespace {

TEST(ParquetNone, FilesAreRefusedWithAWayOut) {
  Problems problems;
  EXPECT_FALSE(reads_parquet());
  read_parquet(
      "x.parquet", {"prompt"}, [](std::int64_t, const Node&) { return true; }, problems);
  ASSERT_EQ(problems.size(), 1u);
  const std::string told = to_string(problems[0]);
  EXPECT_NE(told.find("x.parquet"), std::string::npos);
  EXPECT_NE(told.find("scripts/setup.sh installs pyarrow"), std::string::npos);
}

}  // namespace
}  // namespace tessera
