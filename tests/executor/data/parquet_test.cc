// Prompts in Parquet files, as pyarrow writes them (parquet_oracle.py).
#include <gtest/gtest.h>

#include <fstream>

#include "cost_models/documents/problem.h"
#include "executor/data/parquet_rows.h"
#include "executor/data/prompts.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

class ParquetPrompts : public testing::Test {
 protected:
  void SetUp() override {
    if (!reads_parquet()) GTEST_SKIP() << "this build has no libparquet";
    const std::string python = python_with("pyarrow");
    ASSERT_NE(python, "");
    const std::string script = TESSERA_SOURCE_DIR "/tests/executor/data/parquet_oracle.py";
    ASSERT_EQ(run_python(python, script + " " + folder_.path.string()), 0);
  }

  std::optional<std::vector<Prompt>> read(const std::string& name) {
    problems_.clear();
    return read_prompts(folder_.path / name, problems_);
  }
  std::string told() const { return problems_.empty() ? "" : to_string(problems_[0]); }

  TemporaryFolder folder_;
  Problems problems_;
};

TEST_F(ParquetPrompts, AreThoseOfTheRows) {
  for (const char* name : {"train.parquet", "large.parquet"}) {
    const auto prompts = read(name);
    ASSERT_TRUE(prompts) << told();
    ASSERT_EQ(prompts->size(), 1000u);
    for (std::size_t i = 0; i < prompts->size(); ++i) {
      const Prompt& prompt = (*prompts)[i];
      const std::string number = std::to_string(i);
      EXPECT_EQ(prompt.data_source, "openai/gsm8k");
      EXPECT_EQ(
          prompt.messages,
          (std::vector<ChatMessage>{{"user", "What is " + number + "+" + number + "? \u4f60"}}));
      EXPECT_EQ(prompt.ability, "math");
      EXPECT_EQ(prompt.reward_style, "rule");
      EXPECT_EQ(prompt.ground_truth, std::to_string(2 * i));
    }
    // Rows read as the same line of JSON reads.
    const auto line = parse_prompts(to_json_line((*prompts)[3]), "line", problems_);
    EXPECT_EQ(line->at(0), (*prompts)[3]);
    EXPECT_NE((*prompts)[3].extra_info.find(R"("index":3)"), std::string::npos);
    EXPECT_NE((*prompts)[3].extra_info.find(R"("score":1.5)"), std::string::npos);
    EXPECT_NE((*prompts)[3].extra_info.find(R"("tags":["a",null])"), std::string::npos);
  }
}

// Types that JSON has no name for are texts as pyarrow prints them, or numbers and lists.
TEST_F(ParquetPrompts, OrdinaryTypesAreRead) {
  const auto prompts = read("kinds.parquet");
  ASSERT_TRUE(prompts) << told();
  const std::string& extra = prompts->at(0).extra_info;
  for (const char* part : {R"("u64":7)", R"("when":"1970-01-01 00:00:00)", R"("day":"1970-01-02")",
                           R"("price":"1.50")", R"("pair":[1,2])"}) {
    EXPECT_NE(extra.find(part), std::string::npos) << part << " in " << extra;
  }
}

// pandas writes a missing number as NaN.
TEST_F(ParquetPrompts, NaNIsNullAndAnInfiniteNumberIsNamed) {
  const auto prompts = read("nan.parquet");
  ASSERT_TRUE(prompts) << told();
  EXPECT_EQ(prompts->at(0).extra_info, R"({"x":1.0,"y":[{"z":0.0}]})");
  EXPECT_EQ(prompts->at(1).extra_info, R"({"x":null,"y":[{"z":null}]})");
  EXPECT_FALSE(read("inf.parquet"));
  EXPECT_NE(told().find("inf.parquet:row 2 (/extra_info/y/1/z): found -inf, expected a finite"),
            std::string::npos)
      << told();
}

TEST_F(ParquetPrompts, AnIntegerThatNoDocumentHasIsNamedAsInJson) {
  EXPECT_FALSE(read("unsigned.parquet"));
  EXPECT_NE(told().find("unsigned.parquet:row 2 (/extra_info/a): found 18446744073709551615, "
                        "expected an integer of 64 bits"),
            std::string::npos)
      << told();
}

TEST_F(ParquetPrompts, ANameThatStandsTwiceIsRefused) {
  EXPECT_FALSE(read("twice.parquet"));
  EXPECT_NE(told().find("twice.parquet:/prompt: found two columns of this name"), std::string::npos)
      << told();
  EXPECT_FALSE(read("twice_inside.parquet"));
  EXPECT_NE(told().find(":/reward_model/ground_truth: found two"), std::string::npos) << told();
  EXPECT_TRUE(read("twice_unread.parquet")) << told() << ": nobody reads these";
}

TEST_F(ParquetPrompts, AColumnThatIsMissingIsToldOnce) {
  EXPECT_FALSE(read("missing.parquet"));
  ASSERT_EQ(problems_.size(), 2u);
  EXPECT_NE(told().find("missing.parquet:/data_source: found no such column"), std::string::npos)
      << told();
  EXPECT_EQ(problems_[1].place, "/reward_model");
  EXPECT_FALSE(read("no_truth.parquet"));
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_EQ(problems_[0].place, "/reward_model/ground_truth");
}

TEST_F(ParquetPrompts, BadRowsAndFilesAreNamed) {
  EXPECT_FALSE(read("plain.parquet"));
  EXPECT_NE(told().find("row 2 (/prompt)"), std::string::npos) << told();
  EXPECT_FALSE(read("bytes.parquet"));
  EXPECT_NE(told().find("binary"), std::string::npos) << told();
  EXPECT_FALSE(read("empty.parquet"));
  EXPECT_NE(told().find("no prompt"), std::string::npos) << told();
  EXPECT_FALSE(read("cut.parquet"));
  EXPECT_NE(told().find("cut.parquet"), std::string::npos) << told();
  EXPECT_FALSE(read("absent.parquet"));
  std::ofstream(folder_.path / "text.parquet") << "{\"data_source\": 1}\n";
  EXPECT_FALSE(read("text.parquet"));
  EXPECT_NE(told().find("a Parquet file"), std::string::npos) << told();
}

}  // namespace
}  // namespace tessera
