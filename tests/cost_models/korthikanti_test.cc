// Oracle: the activation memory that Korthikanti et al. 2022 (arXiv:2205.05198, Table 5 and figure
// 7) state for their four models, as reproduced by calculon's validation tables. Prints every row.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "cost_models/memory.h"
#include "cost_models/rank_model.h"

namespace tessera {
namespace {

struct Published {
  const char* name;
  std::int64_t heads, hidden, layers;
  int pp, vpp, micro_batch, micro_batches;
  double none_gib;                         // tensor parallelism only
  double sequence, selective, both, full;  // per cent of it
  double parameters_gib;                   // and optimizer
};

constexpr std::array<Published, 4> kPublished = {{
    {"22B", 64, 6144, 48, 1, 1, 4, 1, 59.25, 66.8, 49.4, 16.2, 7.6, 45.56},
    {"175B", 96, 12288, 96, 8, 3, 1, 64, 66.84, 62.0, 56.5, 18.5, 8.7, 45.56},
    {"530B", 128, 20480, 105, 35, 3, 1, 280, 114.0, 58.3, 62.0, 20.3, 9.4, 31.64},
    {"1T", 160, 25600, 128, 64, 1, 1, 512, 131.3, 58.3, 62.0, 20.3, 9.4, 32.96},
}};

RankModel rank_of(const Published& row, bool sequence_parallel) {
  RankModel rank;
  rank.model.family = ModelFamily::gpt2;
  rank.model.layers = row.layers;
  rank.model.hidden = row.hidden;
  rank.model.query_heads = rank.model.kv_heads = row.heads;
  rank.model.head_dim = row.hidden / row.heads;
  rank.model.ffn = 4 * row.hidden;
  rank.model.vocab = 51200;
  rank.model.max_positions = 2048;
  rank.model.mlp = MlpKind::gelu;
  rank.model.norm = NormKind::layer_norm;
  rank.model.learned_positions = rank.model.tied_embeddings = true;
  rank.model.qkv_bias = rank.model.output_bias = rank.model.mlp_bias = true;
  rank.tp = 8;
  rank.dtype = DType::fp16;
  rank.sequence_parallel = sequence_parallel;
  rank.traits.kernels.flash_attention = false;
  rank.traits.kernels.dropout = true;
  return rank;
}

double activation_gib(const Published& row, bool sequence_parallel, Recompute recompute) {
  const RankModel rank = rank_of(row, sequence_parallel);
  const double layers = static_cast<double>(row.layers) / row.pp;
  const double batches = stage_batches_in_flight(row.micro_batches, row.pp, row.vpp, 0);
  return layer_activation_bytes(rank, recompute, 2048) * 2048 * row.micro_batch * layers * batches /
         (1LL << 30);
}

TEST(Korthikanti, ActivationsOfAllModesAreWithinFivePerCentOnAverage) {
  double sum = 0;
  int count = 0;
  std::printf("%-5s %-20s %10s %10s %8s\n", "model", "mode", "published", "here", "error");
  const auto compare = [&](const char* model, const char* mode, double published, double here) {
    const double error = here / published - 1;
    std::printf("%-5s %-20s %7.2f GiB %6.2f GiB %+7.2f %%\n", model, mode, published, here,
                100 * error);
    EXPECT_LT(std::abs(error), 0.10) << model << " " << mode;
    sum += std::abs(error);
    ++count;
  };
  for (const Published& row : kPublished) {
    const double percent = row.none_gib / 100;
    compare(row.name, "tensor", row.none_gib, activation_gib(row, false, Recompute::none));
    compare(row.name, "tensor+sequence", percent * row.sequence,
            activation_gib(row, true, Recompute::none));
    compare(row.name, "selective", percent * row.selective,
            activation_gib(row, false, Recompute::selective));
    compare(row.name, "sequence+selective", percent * row.both,
            activation_gib(row, true, Recompute::selective));
    compare(row.name, "full", percent * row.full, activation_gib(row, false, Recompute::full));
  }
  std::printf("mean error %.2f %% over %d rows\n", 100 * sum / count, count);
  EXPECT_LT(sum / count, 0.05);
}

// What the planner charges is the same figure and what the paper leaves out: the stage's input, the
// final norm on the last stage, and under full recomputation the one layer that is being repeated.
TEST(Korthikanti, StageMemoryAddsOnlyTheEndsToTheLayers) {
  for (const Published& row : kPublished) {
    StageLoad load{.last = row.pp == 1,
                   .tokens = 2048.0 * row.micro_batch,
                   .sequence = 2048,
                   .in_flight = stage_batches_in_flight(row.micro_batches, row.pp, row.vpp, 0)};
    load.layers[0] = row.layers / row.pp;
    const MemoryUse use = training_memory(rank_of(row, true), load, Recompute::selective);
    const double layers = activation_gib(row, true, Recompute::selective);
    const double gib = static_cast<double>(use.activations.value) / (1LL << 30);
    EXPECT_GE(gib, layers);
    EXPECT_LT(gib, 1.08 * layers);
  }
}

// 18 bytes per parameter on the first stage; calculon's own error on this column is 8.5 %.
TEST(Korthikanti, ParametersAndOptimizerAreWithinTenPerCentOfThePublishedFigure) {
  double sum = 0;
  for (const Published& row : kPublished) {
    const RankModel rank = rank_of(row, true);
    ParallelLayout layout;
    layout.tp = 8;
    layout.pp = row.pp;
    layout.vpp = row.vpp;
    layout.stages = even_stages(row.layers, row.pp, row.vpp);
    const ShardElements shards = shard_elements(parameter_table(rank.model), 8);
    const MemoryUse use = resident_memory(stage_parts(shards, layout, 0), layout,
                                          RoleDTypes{.param = DType::fp16}, true);
    const double gib = static_cast<double>(use.total().value) / (1LL << 30);
    std::printf("%-5s parameters and optimizer: published %.2f GiB, here %.2f GiB, %+.1f %%\n",
                row.name, row.parameters_gib, gib, 100 * (gib / row.parameters_gib - 1));
    sum += std::abs(gib / row.parameters_gib - 1);
  }
  EXPECT_LT(sum / kPublished.size(), 0.10);
}

}  // namespace
}  // namespace tessera
