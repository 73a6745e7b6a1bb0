// What rows cost in every precision and generation of attention.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "cost_models/documents/problem.h"
#include "planner/sweep/search/row_search.h"
#include "planner/sweep/sweep.h"

namespace tessera {
namespace {

// Hopper's best kernels are no part of FlashAttention 2; on Ampere it is the best.
TEST(Sweep, PricesAttentionByItsGeneration) {
  const auto seconds = [](const std::string& cluster, const std::string& attention) {
    Problems problems;
    auto table = parse_csv(
        "model,cluster,kind,gpus,tp,zero,recompute,micro_batch,global_batch,prompt_tokens,"
        "attention\nqwen2-7b," +
            cluster + ",train,8,8,0,none,1,8,16384," + attention + "\n",
        "in.csv", problems);
    EXPECT_TRUE(table && sweep(*table, ".", "", search_row, problems));
    return std::strtod(table->rows[0].cells[*table->column("step_s")].c_str(), nullptr);
  };
  EXPECT_GT(seconds("h100-8", "flash 2"), 1.02 * seconds("h100-8", "flash"));
  EXPECT_GT(seconds("h100-8", "flash 1"), 1.05 * seconds("h100-8", "flash 2"));
  EXPECT_DOUBLE_EQ(seconds("a100-8", "flash 2"), seconds("a100-8", "flash"));
  EXPECT_GT(seconds("a100-8", "flash 1"), 1.05 * seconds("a100-8", "flash"));
}

// One row of a 7B on two nodes of eight H100, with these cells beside.
double update_seconds(const std::string& columns, const std::string& cells) {
  Problems problems;
  auto table = parse_csv(
      "model,cluster,kind,gpus,tp,pp,dp,zero,recompute,micro_batch,global_batch,prompt_tokens," +
          columns + "\nqwen2-7b,h100-64,train,16,2,2,4,0,none,1,64,4096," + cells + "\n",
      "in.csv", problems);
  EXPECT_TRUE(table && sweep(*table, ".", "", search_row, problems)) << cells;
  return std::strtod(table->rows[0].cells[*table->column("step_s")].c_str(), nullptr);
}

// Tensor cores do TF32 at half the rate of 16 bit, on operands of 4 bytes; vector units do fp32.
TEST(Sweep, PricesTensorFloatsBetweenSixteenBitAndSingle) {
  const double half = update_seconds("precision", "bf16"),
               tensor = update_seconds("precision", "tf32"),
               single = update_seconds("precision", "fp32");
  EXPECT_GT(tensor, 1.7 * half);
  EXPECT_LT(tensor, 2.6 * half);
  EXPECT_GT(single, 3 * tensor);
}

// Megatron-LM's rule: gradients in 16 bit for fp16, in fp32 for bf16, unless the row says which.
TEST(Sweep, GradientsOfFp16AreReducedInFp16) {
  const double narrow = update_seconds("precision", "fp16");
  EXPECT_LT(narrow, update_seconds("precision", "bf16"));
  EXPECT_EQ(narrow, update_seconds("precision,grad_precision", "fp16,fp16"));
  EXPECT_EQ(update_seconds("precision,grad_precision", "fp16,fp32"),
            update_seconds("precision", "bf16"));
}

TEST(Sweep, PrecisionsThatAreMixedAreReadByWhatFollows) {
  EXPECT_EQ(update_seconds("precision", "amp_fp8"), update_seconds("precision", "fp8"));
  EXPECT_EQ(update_seconds("precision", "mixed bf16"), update_seconds("precision", "bf16"));
  EXPECT_EQ(update_seconds("precision", "amp"), update_seconds("precision", "bf16"));
}

// Replicas of a contiguous order lie 4 ranks apart, two on each of two nodes; in Megatron's a
// group's four are neighbours of one node, and their gradients never leave it.
TEST(Sweep, PricesGradientsWhereTheRankOrderPutsThem) {
  const double contiguous = update_seconds("rank_order", "contiguous"),
               megatron = update_seconds("rank_order", "megatron");
  EXPECT_EQ(update_seconds("rank_order", ""), megatron);
  EXPECT_GT(contiguous, megatron);
}

// Nothing that a cell states is lost beside plan_engine.
TEST(Sweep, WhatACellStatesComesBeforeTheEngine) {
  for (const std::string engine : {"", "verl-megatron", "megatron"}) {
    const double plain = update_seconds("plan_engine", engine);
    EXPECT_LT(update_seconds("plan_engine,precision", engine + ",fp8"), 0.9 * plain) << engine;
    EXPECT_GT(update_seconds("plan_engine,attention", engine + ",unfused"), plain) << engine;
    EXPECT_LT(update_seconds("plan_engine,tp_overlap", engine + ",1"), plain) << engine;
    EXPECT_LT(update_seconds("plan_engine,grad_precision", engine + ",bf16"), plain) << engine;
  }
  EXPECT_GT(update_seconds("plan_engine,rank_order", "megatron,contiguous"),
            update_seconds("plan_engine", "megatron"));
}

}  // namespace
}  // namespace tessera
