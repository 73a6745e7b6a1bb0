// Rows of a CSV: what reads, and what every cell that does not is told.
#include "planner/sweep/sweep_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "planner/sweep/search/row_search.h"
#include "planner/sweep/sweep.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kHeader =
    "note,model,cluster,kind,gpus,tp,pp,dp,cp,ep,vpp,zero,recompute,sequence_parallel,micro_batch,"
    "global_batch,prompt_tokens,response_tokens\n";

std::vector<std::string> refusals(const std::string& text) {
  Problems problems;
  auto table = parse_csv(text, "in.csv", problems);
  if (table) {
    EXPECT_FALSE(sweep(*table, ".", "", search_row, problems).has_value());
  }
  std::vector<std::string> lines;
  for (const Problem& problem : problems) lines.push_back(to_string(problem));
  return lines;
}

TEST(SweepRows, ReadSpreadsheetNumbersAndFreeText) {
  Problems problems;
  const auto table = parse_csv(
      "model,cluster,kind,gpus,tp,precision,attention,placement\n"
      "m,c,train, 8.0 ,,\"fp8 (blockwise), bf16 elsewhere\",\"unfused, fused softmax\",colocate\n"
      "m,c,train,1e1,,nvfp4,FLASH,one-step-off\n"
      "m,c,train,8,,bf16,flash 1 (triton),\n"
      "m,c,train,8,,bf16,FlashAttention-2,\n",
      "in.csv", problems);
  const auto rows = read_sweep_rows(*table, problems);
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ((*rows)[0].gpus, 8);
  EXPECT_EQ((*rows)[0].tp, std::nullopt);
  EXPECT_EQ((*rows)[0].precision, SweepPrecision::fp8);
  EXPECT_EQ((*rows)[0].attention, SweepAttention::unfused);
  EXPECT_EQ((*rows)[0].placement, SweepPlacement::colocated);
  EXPECT_EQ((*rows)[1].gpus, 10);
  EXPECT_EQ((*rows)[1].attention, SweepAttention::flash);
  EXPECT_EQ((*rows)[1].placement, SweepPlacement::split);
  EXPECT_THAT((*rows)[1].notes, HasSubstr("nvfp4"));
  EXPECT_EQ((*rows)[2].attention, SweepAttention::flash_1);
  EXPECT_EQ((*rows)[3].attention, SweepAttention::flash_2);
}

// Nothing that the reader does not know passes as its default.
TEST(SweepRows, RefuseFreeTextThatSaysNothingKnown) {
  const auto lines = refusals(
      "model,cluster,kind,precision,attention,placement\n"
      "llama3.1-8b,h100-8,train,bf17,warp,bogus\n");
  EXPECT_THAT(lines, ElementsAre(HasSubstr("in.csv:2 (placement): found 'bogus'"),
                                 HasSubstr("in.csv:2 (precision): found 'bf17'"),
                                 HasSubstr("in.csv:2 (attention): found 'warp'")));
}

TEST(SweepRows, RefuseRankOrdersThatNoTrainerHas) {
  EXPECT_THAT(refusals("model,cluster,kind,rank_order\nllama3.1-8b,h100-8,train,megatorn\n"),
              ElementsAre(HasSubstr("in.csv:2 (rank_order): found 'megatorn', expected contiguous, "
                                    "megatron")));
}

TEST(SweepRows, RefuseDegreesOfMoreRanksThanThereMayBe) {
  const auto lines = refusals(
      "model,cluster,kind,tp,pp,dp,cp,gen_tp,gen_dp\n"
      "llama3.1-8b,h100-8,train,8,1048576,1048576,1048576,1048576,2\n");
  EXPECT_THAT(lines, ElementsAre(HasSubstr("in.csv:2 (tp): found '8', expected degrees whose"),
                                 HasSubstr("in.csv:2 (gen_tp): found '1048576'")));
}

// A misspelt column is kept in silence no longer: its values would never be priced.
TEST(SweepRows, RefuseColumnsThatResembleOneThatIsRead) {
  const auto of = [](const std::string& column) {
    return refusals("model,cluster,kind,gpus," + column + "\nllama3.1-8b,h100-8,train,8,1\n");
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"micro_batches", "micro_batch"},
      {"micro_batch_size", "micro_batch"},
      {"Micro-Batch", "micro_batch"},
      {"TP", "tp"},
      {"tp_size", "tp"},
      {"zero_stage", "zero"},
      {"num_gpus", "gpus"},
      {"globl_batch", "global_batch"},
      {"sequence_paralel", "sequence_parallel"},
      {"response_token", "response_tokens"},
      {"precison", "precision"},
      {"gen_tp_size", "gen_tp"}};
  for (const auto& [column, meant] : cases) {
    EXPECT_THAT(of(column), ElementsAre(testing::AllOf(
                                HasSubstr("in.csv:1 (" + column + "): found the unknown column"),
                                HasSubstr("did you mean '" + meant + "'?"))));
  }
}

TEST(SweepRows, KeepColumnsThatResembleNoneAndNameThem) {
  Problems problems;
  auto table = parse_csv(
      "row,note,set,source,measured_step_s,measured_oom,checkpoint_engine,fair_time,tps,seed,"
      "step_s,gen_s,mfu,model,cluster,kind,gpus\n"
      "1,a,b,c,2,0,nccl,1,5,7,9,9,9,llama3.1-8b,h100-8,train,8\n",
      "in.csv", problems);
  ASSERT_TRUE(table);
  const auto summary = sweep(*table, ".", "", search_row, problems);
  ASSERT_TRUE(summary) << to_string(problems.at(0));
  EXPECT_THAT(summary->kept,
              ElementsAre("row", "note", "set", "source", "measured_step_s", "measured_oom",
                          "checkpoint_engine", "fair_time", "tps", "seed"));
  EXPECT_EQ(table->rows[0].cells[9], "7");
}

TEST(SweepRows, NamesEveryCellThatDoesNotRead) {
  const auto lines = refusals(std::string(kHeader) +
                              "x,llama3.1-8b,h100-8,trian,8,two,1,4,1,1,1,9,some,2,1,64,-5,0\n");
  EXPECT_THAT(lines, ElementsAre(HasSubstr("in.csv:2 (kind): found 'trian'"),
                                 HasSubstr("2 (tp): found 'two'"), HasSubstr("2 (zero)"),
                                 HasSubstr("2 (prompt_tokens)"), HasSubstr("2 (recompute)"),
                                 HasSubstr("2 (sequence_parallel)")));
  EXPECT_THAT(lines[0], HasSubstr("did you mean 'train'?"));
}

TEST(SweepRows, NamesTheRowOfAModelOrClusterThatIsNotThere) {
  const auto lines =
      refusals("model,cluster,kind\nlama3.1-8b,h100-8,train\nllama3.1-8b,h1-8,train\n");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("named by in.csv:2 (model)"));
  EXPECT_THAT(lines[1], HasSubstr("named by in.csv:3 (cluster)"));
  EXPECT_THAT(refusals("modell,cluster,kind\n"), ElementsAre(HasSubstr("no column 'model'")));
}

TEST(SweepRows, TellsSyntaxErrorsAndUnknownNamesOfOtherRowsTogether) {
  const auto lines = refusals(
      "model,cluster,kind,tp,placement\nllama3.1-8b,h100-8,train,two,\nllama3.1-8c,h100-8,train,,\n"
      "llama3.1-8b,h1-8,train,,bogus\n");
  EXPECT_THAT(lines, testing::UnorderedElementsAre(HasSubstr("2 (tp)"), HasSubstr("4 (placement)"),
                                                   HasSubstr("named by in.csv:3 (model)"),
                                                   HasSubstr("named by in.csv:4 (cluster)")));
}

TEST(SweepRows, TellsWhatElseIsWrongWithARowOfAnotherWidth) {
  Problems problems;
  const auto table = parse_csv_as_far("model,cluster,kind,tp,gpus\nm,c,train,0\nm,c,trian,1,8\n",
                                      "in.csv", problems);
  ASSERT_TRUE(table.has_value());
  EXPECT_FALSE(read_sweep_rows(*table, problems).has_value());
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_THAT(to_string(problems[0]), HasSubstr("in.csv:2:1: found 4 cells, expected 5"));
  EXPECT_THAT(to_string(problems[1]), HasSubstr("in.csv:2 (tp)"));
  EXPECT_THAT(to_string(problems[2]), HasSubstr("in.csv:3 (kind)"));
}

}  // namespace
}  // namespace tessera
