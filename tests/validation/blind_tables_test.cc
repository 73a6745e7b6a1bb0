// Tables that were collected after the formulas and scored before anything was changed: how far the
// program is on runs that it has not seen (docs/notes/validation.md has the blind figures).
//
// Bounds hold at the value reached; no constant comes from these tables.
#include <gtest/gtest.h>

#include "tests/validation/tables.h"

namespace tessera {
namespace {

// Llama 3.1 8B to 405B, Nemotron-4 15B and 340B, GPT-3 175B; 8 to 2,304 GPUs.
TEST(BlindTables, DgxCloudBenchmarks) {
  const Score score =
      printed("NVIDIA's DGX Cloud benchmarks (H100, NeMo)", score_of(swept_table("dgxc_h100")));
  EXPECT_EQ(score.compared, 53);  // bf16
  EXPECT_LE(score.mean_error, 0.06);
  EXPECT_LE(score.worst_error, 0.10);
  EXPECT_EQ(score.ranked, 59);  // fp8
  EXPECT_NEAR(score.scale, 1, 0.08);
  EXPECT_GE(score.rank_correlation, 0.95);
  EXPECT_LE(score.mean_regret, 0.05);
  EXPECT_LE(score.refused_but_ran, 3);
}

// 1F1B and interleaved pipelines of 8 to 32 stages, one GPU each, with their peak memory.
TEST(BlindTables, PipelinesOfOneGpuAStage) {
  const Score score = printed("Zero-bubble paper's 1F1B and interleaved baselines (A100)",
                              score_of(swept_table("zero_bubble")));
  EXPECT_EQ(score.compared, 36);
  EXPECT_LE(score.mean_error, 0.06);
  EXPECT_LE(score.worst_error, 0.11);
  EXPECT_EQ(score.weighed, 33);
  EXPECT_LE(score.memory_error, 0.05);
  EXPECT_LE(score.mean_regret, 0.02);
  EXPECT_EQ(score.refused_but_ran, 0);
}

// Megatron-LM on up to 12,288 GPUs, Nemotron-4 340B on up to 6,144.
TEST(BlindTables, DenseRunsOfThousandsOfGpus) {
  const Score score = printed("MegaScale's Megatron-LM rows (A100), Nemotron-4 340B (H100)",
                              score_of(swept_table("large_dense")));
  EXPECT_EQ(score.compared, 14);
  EXPECT_LE(score.mean_error, 0.07);
  EXPECT_LE(score.worst_error, 0.12);
  EXPECT_EQ(score.refused_but_ran, 0);
}

// Five ways to cut four MoE models, at 4k to 128k tokens.
TEST(BlindTables, MoeParallelFolding) {
  const CsvTable table = swept_table("moe_folding");
  const Score folded = printed("MoE parallel folding (H100), folded rows",
                               score_of(table, "set", "MCore with folding"));
  EXPECT_EQ(folded.compared, 20);
  EXPECT_LE(folded.mean_error, 0.12);
  EXPECT_EQ(folded.refused_but_ran, 0);
  const Score all = printed("MoE parallel folding (H100), all rows", score_of(table));
  EXPECT_EQ(all.compared, 76);
  EXPECT_LE(all.mean_error, 0.16);
  EXPECT_EQ(all.choices.size(), 20U);
  EXPECT_LE(all.mean_regret, 0.02);
  EXPECT_EQ(all.refused_but_ran, 0);
  EXPECT_LE(all.accepted_but_ran_out, 1);  // FSDP over 256 GPUs, whose recomputation is not stated
}

// Context parallelism up to 32 ranks and 1M tokens; TFLOP/s count attention in full.
TEST(BlindTables, LongSequences) {
  const Score score = printed("NeMo 24.03, Llama 2 7B at 4k to 1M tokens (H100, fp8)",
                              score_of(swept_table("long_sequence")));
  EXPECT_EQ(score.ranked, 9);
  EXPECT_EQ(score.refused_but_ran, 0);
}

// Hours of one epoch; batches per call are not published, so only the order is asked for.
TEST(BlindTables, DeepSpeedChatSteps) {
  const Score score =
      printed("DeepSpeed-Chat, PPO step 3 (A100)", score_of(swept_table("ds_chat")));
  EXPECT_EQ(score.ranked, 12);
  EXPECT_GE(score.rank_correlation, 0.9);
  EXPECT_EQ(score.refused_but_ran, 0);
}

}  // namespace
}  // namespace tessera
