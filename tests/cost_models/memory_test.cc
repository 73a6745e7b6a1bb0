// Oracles: compute_box summed over the whole table, and hand counts.
#include "cost_models/memory.h"

#include <gtest/gtest.h>

#include "cost_models/layout/sharding.h"
#include "cost_models/rank_model.h"

namespace tessera {
namespace {

ModelSpec qwen2_7b() {
  ModelSpec model;
  model.family = ModelFamily::qwen2;
  model.layers = 28;
  model.hidden = 3584;
  model.query_heads = 28;
  model.kv_heads = 4;
  model.head_dim = 128;
  model.ffn = 18944;
  model.vocab = 152064;
  model.qkv_bias = true;
  return model;
}

ParallelLayout layout_of(int tp, int pp, int dp, std::int64_t layers) {
  ParallelLayout layout;
  layout.tp = tp;
  layout.pp = pp;
  layout.dp = dp;
  layout.stages = even_stages(layers, pp);
  return layout;
}

TEST(ShardElements, EqualTheSumOfComputeBoxesOnEveryRank) {
  ModelSpec tied = qwen2_7b();
  tied.tied_embeddings = true;
  tied.vocab = 151;
  ModelSpec critic = qwen2_7b();
  critic.head = ModelHead::value;
  for (const ModelSpec& model : {qwen2_7b(), tied, critic}) {
    const ParameterTable table = parameter_table(model);
    for (const int tp : {1, 2, 3, 8}) {
      const ShardElements shards = shard_elements(table, tp);
      for (const int pp : {1, 2, 3, 5}) {
        const ParallelLayout layout = layout_of(tp, pp, 1, model.layers);
        for (int stage = 0; stage < pp; ++stage) {
          for (int rank = 0; rank < tp; ++rank) {
            const RankCoord coord{.tp = rank, .pp = stage};
            EXPECT_EQ(stage_elements(shards, layout, stage, rank),
                      stored_elements(table, layout, coord));
          }
        }
      }
    }
  }
}

// Megatron-LM's 6 + 12/d, and the part's own reduced gradients of 4/d.
TEST(ResidentMemory, IsSixPlusSixteenOverDpBytesPerParameterUnderZero1) {
  ParallelLayout layout = layout_of(2, 1, 4, 4);
  layout.zero = 1;
  const MemoryUse use = resident_memory(1000, layout, RoleDTypes{}, true);
  EXPECT_EQ(use.total(), 1000 * (2 + 4) + 1000 / 4 * 16);
  layout.zero = 0;
  EXPECT_EQ(resident_memory(1000, layout, RoleDTypes{}, true).total(), 1000 * 18);
  EXPECT_EQ(resident_memory(1000, layout, RoleDTypes{}, false).total(), 2000);
}

TEST(ResidentMemory, HasNoMasterCopyWhereParametersAreFp32) {
  const RoleDTypes fp32{.param = DType::fp32};
  const MemoryUse use = resident_memory(10, layout_of(1, 1, 1, 1), fp32, true);
  EXPECT_EQ(use.master_weights, 0);
  EXPECT_EQ(use.total(), 160);
}

TEST(LayerActivations, AreTheHandCountOfALlama7BLayer) {
  ModelSpec model = qwen2_7b();
  model.hidden = 4096;
  model.query_heads = model.kv_heads = 32;
  model.ffn = 11008;
  // 4 x 4096 + (2 x 32 + 2 x 32) x 128 + 3 x 11008 = 65,792 elements of 2 bytes.
  EXPECT_DOUBLE_EQ(layer_activation_bytes({{}, model, DType::bf16}, Recompute::none), 131'584);
  EXPECT_DOUBLE_EQ(layer_activation_bytes({{}, model, DType::bf16}, Recompute::full), 8'192);
  // Only the residual stream is not cut by TP.
  EXPECT_DOUBLE_EQ(layer_activation_bytes({{.tp = 8}, model, DType::bf16}, Recompute::none),
                   2.0 * (4 * 4096 + (65'792 - 4 * 4096) / 8.0));
}

TEST(MicroBatchesInFlight, AreStagesToTheEndUnder1F1B) {
  EXPECT_EQ(micro_batches_in_flight(8, 4, 0), 4);
  EXPECT_EQ(micro_batches_in_flight(8, 4, 3), 1);
  EXPECT_EQ(micro_batches_in_flight(2, 4, 0), 2);
}

TEST(RolloutMemory, Holds57344BytesOfCachePerTokenOfQwen2_7B) {
  const RankModel whole{{}, qwen2_7b(), DType::bf16};
  EXPECT_EQ(rollout_memory(whole, DType::bf16, 1, 1, 1).kv_cache, 57'344);
  const RankModel quarter{{.tp = 4}, qwen2_7b(), DType::bf16};
  EXPECT_EQ(rollout_memory(quarter, DType::bf16, 3, 100, 1).kv_cache, 57'344 / 4 * 300);
  // At TP8 pairs of ranks share a KV head.
  const RankModel eighth{{.tp = 8}, qwen2_7b(), DType::bf16};
  EXPECT_EQ(rollout_memory(eighth, DType::bf16, 1, 1, 1).kv_cache, 57'344 / 4);
}

TEST(RolloutMemory, BeyondAllNumbersIsMoreThanAnyMemoryHolds) {
  const RankModel eighth{{.tp = 8}, qwen2_7b(), DType::bf16};
  std::int64_t before = 0;
  for (std::int64_t slots = 1; slots <= std::int64_t{1} << 40; slots *= 2) {
    const MemoryUse use = rollout_memory(eighth, DType::bf16, slots, 2'000'000'000, 1e9);
    EXPECT_GE(use.kv_cache, before) << slots;
    EXPECT_GE(use.total(), use.kv_cache) << slots;
    EXPECT_GT(5 * use.total(), use.total()) << slots;  // as the roles of a rank are summed
    before = use.kv_cache;
  }
  EXPECT_GT(before, std::int64_t{1} << 55);
}

TEST(LogitsMemory, StopsGrowingAtTheRowsThatExistAtATime) {
  const RankModel rank{{}, qwen2_7b(), DType::bf16};
  const auto logits = [&](double tokens) {
    return training_memory(rank, 28, true, tokens, 1, Recompute::none).logits;
  };
  EXPECT_EQ(logits(1024), 1024 * 152'064LL * (2 * 2 + 3 * 4));
  EXPECT_EQ(logits(kLogitRows), logits(4 * kLogitRows));
  EXPECT_EQ(training_memory(rank, 28, false, 1024, 1, Recompute::none).logits, 0);
}

// All rows at once, by what the loss keeps of them; 2 bytes in the model's type, 4 in fp32.
TEST(LogitsMemory, FollowsHowAnEngineComputesItsLoss) {
  RankModel rank{{}, qwen2_7b(), DType::bf16};
  rank.traits.loss.rows = 0;
  const auto per_logit = [&](LossKernel loss) {
    rank.traits.loss.kernel = loss;
    return training_memory(rank, 28, true, 1024, 1, Recompute::none).logits / (1024 * 152'064LL);
  };
  EXPECT_EQ(per_logit(LossKernel::eager), 4 + 4 + 4);
  EXPECT_EQ(per_logit(LossKernel::vocab_parallel), 4 + 2);
  EXPECT_EQ(per_logit(LossKernel::fused), 2 + 2);
  EXPECT_EQ(per_logit(LossKernel::in_place), 2);
  EXPECT_EQ(per_logit(LossKernel::with_entropy), 2 + 2 + 2);
}

// The loss is done before the last layer's backward pass begins.
TEST(LogitsMemory, GivesItsPlaceToTheLayersThatFollow) {
  RankModel rank{{}, qwen2_7b(), DType::bf16};
  rank.traits.loss.rows = 0;
  rank.traits.loss.kernel = LossKernel::eager;
  const MemoryUse eager = training_memory(rank, 28, true, 1024, 1, Recompute::full);
  const MemoryUse inner = training_memory(rank, 28, false, 1024, 1, Recompute::full);
  const Bytes last_norm{rank.model.hidden * 2 * 1024 * 2};
  const Bytes layer{static_cast<std::int64_t>(layer_activation_bytes(rank, Recompute::none).value) *
                    1024};
  EXPECT_GT(eager.logits, inner.workspace + layer);
  EXPECT_EQ(eager.total() - eager.logits, inner.total() - inner.workspace - layer + last_norm);
}

}  // namespace
}  // namespace tessera
