// Oracles: boxes summed over the parameter table, published sizes of DeepSeek-V3, hand counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cost_models/compute.h"
#include "cost_models/documents/problem.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/rank_model.h"

namespace tessera {
namespace {

ModelSpec preset(const char* name) {
  Problems problems;
  return read_model_spec(name, problems).value_or(ModelSpec{});
}

TEST(SparseShards, EqualTheSumOfComputeBoxesOnTheFullestRank) {
  const ParameterTable table = parameter_table(preset("qwen3-30b-a3b"));
  struct Cut {
    int tp, dp, ep, etp, pp;
  };
  for (const Cut cut : {Cut{1, 8, 8, 1, 1}, {2, 4, 4, 2, 2}, {4, 2, 1, 1, 3}, {2, 2, 4, 1, 4}}) {
    ParallelLayout layout;
    layout.tp = cut.tp;
    layout.dp = cut.dp;
    layout.ep = cut.ep;
    layout.etp = cut.etp;
    layout.pp = cut.pp;
    layout.stages = even_stages(table.model.layers, cut.pp);
    const ShardElements shards = shard_elements(table, cut.tp, cut.ep, cut.etp);
    for (int stage = 0; stage < cut.pp; ++stage) {
      std::int64_t most = 0;
      for (int tp = 0; tp < cut.tp; ++tp) {
        for (int dp = 0; dp < cut.dp; ++dp) {
          most = std::max(
              most, stored_elements(table, layout, {.tp = tp, .pp = stage, .dp_replicate = dp}));
        }
      }
      EXPECT_EQ(stage_elements(shards, layout, stage), most)
          << "tp" << cut.tp << " ep" << cut.ep << " etp" << cut.etp << " stage " << stage;
    }
  }
}

// Optimizer states of experts are shared by tp cp dp / (ep etp) ranks, all others by dp.
TEST(ZeroShards, OfExpertsAreTheReplicasThatHoldTheSameExperts) {
  ParallelLayout layout;
  layout.tp = 4;
  layout.dp = 8;
  layout.ep = 8;
  layout.zero = 1;
  const ShardCounts parts = zero_shards(layout);
  EXPECT_EQ(parts.dense, 8);
  EXPECT_EQ(parts.expert, 4 * 8 / 8);
  const MemoryUse use = resident_memory({800, 400}, layout, RoleDTypes{}, true);
  EXPECT_EQ(use.optimizer, (800 / 8 + 400 / 4) * 8);
  EXPECT_EQ(use.weights, 1200 * 2);
}

// arXiv:2412.19437, sec. 4.2 (671B, 37B active) and arXiv:2405.04434, sec. 2.1.4 (the cache).
TEST(DeepSeekV3, CachesOneLatentPerTokenOnEveryRank) {
  for (const int tp : {1, 8}) {
    const RankModel rank{{.tp = tp}, preset("deepseek-v3"), DType::bf16};
    EXPECT_EQ(cache_bytes_per_token(rank, DType::bf16), (512 + 64) * 2);
  }
}

TEST(ForwardFlops, AreTwiceTheActiveParametersWithoutTheInputEmbedding) {
  for (const char* name : {"deepseek-v3", "qwen3-30b-a3b", "qwen3-235b-a22b", "llama3.1-8b"}) {
    const ModelSpec model = preset(name);
    const double parameters =
        static_cast<double>(active_parameter_count(model) - model.vocab * model.hidden);
    EXPECT_NEAR(forward_flops_per_token(model, 0) / (2 * parameters), 1, 0.003) << name;
  }
}

// Cutting a layer any way divides its FLOPs: expert GEMMs of one rank times ranks are those of all.
TEST(SequenceParallelism, MovesTheBytesOfTheAllReduce) {
  Problems problems;
  const auto calibration = find_calibration("h100", problems);
  const auto cluster = read_cluster_spec("h100-8", problems);
  ASSERT_TRUE(calibration && cluster);
  RankModel rank{{.tp = 8}, preset("llama3.1-8b"), DType::bf16};
  const double reduce = layer_tp_seconds(rank, 8192, {8, 1}, *cluster, *calibration);
  rank.sequence_parallel = true;
  const double scattered = layer_tp_seconds(rank, 8192, {8, 1}, *cluster, *calibration);
  EXPECT_NEAR(scattered / reduce, 1, 0.35);
  // The stream that stays on the rank is an eighth.
  RankModel whole = rank;
  whole.sequence_parallel = false;
  const double saved = layer_activation_bytes(whole, Recompute::none) -
                       layer_activation_bytes(rank, Recompute::none);
  EXPECT_DOUBLE_EQ(saved, 2 * 4 * 4096 * 7.0 / 8);
}

TEST(ContextParallelism, HidesTheRingUnderLongSequencesAndNeverGainsFromUlysses) {
  Problems problems;
  const auto calibration = find_calibration("h100", problems);
  const auto cluster = read_cluster_spec("h100-8", problems);
  ASSERT_TRUE(calibration && cluster);
  RankModel rank{{}, preset("llama3.1-8b"), DType::bf16};
  rank.cp = 4;
  const auto ring = [&](double length) {
    return layer_cp_seconds(rank, {length, 1, length * length}, false, {4, 1}, *cluster,
                            *calibration);
  };
  EXPECT_EQ(ring(131072), 0);
  EXPECT_GT(ring(1024), 0);
  rank.ulysses = true;
  EXPECT_GT(ring(131072), 0);
  // All tokens of a layer cost a quarter of what one rank would need.
  RankModel alone = rank;
  alone.cp = 1;
  const TokenBatch batch{65536, 1, 65536.0 * 65536};
  EXPECT_NEAR(layer_forward(alone, batch, *calibration).device /
                  layer_forward(rank, batch, *calibration).device,
              4, 0.4);
}

TEST(InterleavedStages, HoldMoreAndOneChunkPerStageIsPlain1F1B) {
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(stage_batches_in_flight(16, 4, 1, stage), 4 - stage);
  }
  // 1 + (p - 1) / (p v) of p micro-batches (Korthikanti et al. 2022).
  EXPECT_DOUBLE_EQ(stage_batches_in_flight(64, 8, 3, 0), 8 * (1 + 7.0 / 24));
  EXPECT_DOUBLE_EQ(stage_batches_in_flight(2, 8, 3, 0), 2);
}

// Every pass of a stage in its order, one by one, with the chunks whose layers it holds.
double held_layers(const ParallelLayout& layout, int micro_batches, int stage) {
  std::vector<int> forward, backward;  // chunks in the order in which the stage runs them
  for (int from = 0; from < micro_batches; from += layout.pp) {
    const int to = std::min(micro_batches, from + layout.pp);
    for (int chunk = 0; chunk < layout.vpp; ++chunk) {
      forward.insert(forward.end(), static_cast<std::size_t>(to - from), chunk);
      backward.insert(backward.end(), static_cast<std::size_t>(to - from), layout.vpp - 1 - chunk);
    }
  }
  const auto layers = [&](int chunk) {
    const int index = chunk * layout.pp + stage;
    const LayerRange& range = layout.stages[static_cast<std::size_t>(index)];
    return static_cast<double>(range.last - range.first);
  };
  const std::size_t warm = std::min<std::size_t>(
      forward.size(),
      static_cast<std::size_t>(2 * (layout.pp - stage - 1) + (layout.vpp - 1) * layout.pp));
  double held = 0, most = 0;
  for (std::size_t i = 0; i < warm; ++i) held += layers(forward[i]);
  most = held;
  for (std::size_t i = warm; i < forward.size(); ++i) {
    most = std::max(most, held += layers(forward[i]));
    held -= layers(backward[i - warm]);
  }
  return most;
}

TEST(InterleavedStages, CountTheLayersOfChunksThatDifferOneByOne) {
  for (const int pp : {2, 4, 16}) {
    for (const int vpp : {2, 4, 8}) {
      for (const int rounds : {1, 2, 5}) {
        for (const int missing : {0, 1, 2}) {
          ParallelLayout layout{{.pp = pp, .vpp = vpp}};
          layout.stages = even_stages(std::int64_t{pp} * vpp * 2 - missing, pp, vpp);
          for (int stage = 0; stage < pp; ++stage) {
            EXPECT_DOUBLE_EQ(layers_in_flight(layout, rounds * pp, stage),
                             held_layers(layout, rounds * pp, stage))
                << pp << " " << vpp << " " << rounds << " " << missing << " " << stage;
          }
        }
      }
    }
  }
  // Llama 3: 126 layers, 16 stages of 8 chunks, the first of which is the embedding alone.
  ParallelLayout llama{{.pp = 16, .vpp = 8}};
  llama.stages = even_stages(127, 16, 8);
  llama.stages.back().last = 126;
  EXPECT_LT(layers_in_flight(llama, 32, 0), 8 * stage_batches_in_flight(32, 16, 8, 0));
  EXPECT_DOUBLE_EQ(layers_in_flight(llama, 32, 0), 112);
}

TEST(Engines, KeepLessWhereElementwiseOutputsAreMadeAgain) {
  const RankModel kept{{}, preset("qwen3-8b"), DType::bf16};
  RankModel remade = kept;
  remade.traits.kernels.elementwise = ElementwiseKernels::remade;
  const auto hidden = static_cast<double>(kept.model.hidden);
  const auto ffn = static_cast<double>(kept.layer().ffn);
  EXPECT_DOUBLE_EQ(layer_activation_bytes(kept, Recompute::none) -
                       layer_activation_bytes(remade, Recompute::none),
                   2 * (2 * hidden + ffn));  // two norms' outputs, one product
  RankModel eager = kept;
  eager.traits.kernels.elementwise = ElementwiseKernels::eager;
  EXPECT_GT(layer_elementwise_bytes(eager), 1.5 * layer_elementwise_bytes(kept));
}

TEST(HostOptimizer, WaitsForTheSlowerOfCoresMemoryAndLink) {
  Problems problems;
  const auto calibration = find_calibration("h100", problems);
  ASSERT_TRUE(calibration);
  ClusterSpec cluster;
  cluster.gpus_per_node = 8;
  const RoleDTypes dtypes;
  const double elements = 8e9, piece = (1 << 24) * 6 / calibration->host_bandwidth.value;
  const auto seconds = [&](double cores, double gb_s, int ranks) {
    cluster.host = {static_cast<std::int64_t>(cores), gb_per_s(gb_s)};
    return host_step_seconds(elements, 8, ranks, dtypes, cluster, *calibration).value - piece;
  };
  EXPECT_NEAR(seconds(8, 1e6, 8), 1.0, 1e-9);                    // 1e9 elements of one core
  EXPECT_NEAR(seconds(4, 1e6, 4), 1.0, 1e-9);                    // the ranks of a node share
  EXPECT_NEAR(seconds(1e4, 100, 8), 1e9 * 34 * 8 / 70e9, 1e-9);  // 8 words of fp32, one of bf16
  EXPECT_NEAR(seconds(1e4, 1e6, 8), 1e9 * 6 / calibration->host_bandwidth.value, 1e-9);
}

TEST(Ring, BringsGradientsOfKeysAndValuesHomeInFp32) {
  Problems problems;
  auto calibration = find_calibration("h100", problems);
  ASSERT_TRUE(calibration);
  ClusterSpec cluster;
  cluster.gpus_per_node = 8;
  RankModel rank{{}, preset("qwen3-8b"), DType::bf16};
  rank.cp = 4;
  const TokenBatch batch{16384, 64, 64 * 256.0 * 256};  // short sequences: nothing hides the ring
  const GroupShape group{4, 1};
  const double keys = 16384.0 / 4 * 2 * 8 * 128 * 2;  // two of 8 heads of 128, 16 bit
  const auto pass = [&](double bytes) {
    return collective_seconds(Collective::send_receive, Traffic{bytes}, {2, 1}, cluster,
                              *calibration);
  };
  const Seconds attention = layer_attention_seconds(rank, batch, *calibration);
  EXPECT_DOUBLE_EQ(layer_cp_seconds(rank, batch, false, group, cluster, *calibration),
                   std::max(Seconds{}, 3 * pass(keys) - attention));
  EXPECT_DOUBLE_EQ(layer_cp_seconds(rank, batch, true, group, cluster, *calibration),
                   std::max(Seconds{}, 3 * (pass(keys) + pass(2 * keys)) -
                                           calibration->attention_backward.value * attention) +
                       pass(2 * keys));
}

TEST(Fsdp, KeepsEveryLayerWhereItIsNotGatheredAgain) {
  RankModel rank{{}, preset("qwen3-8b"), DType::bf16};
  const ParallelLayout layout{{.dp = 4, .dp_shard = 4}, 3};
  const Elements layer{200'000'000, 0};
  const RoleDTypes dtypes;
  const auto bytes = [&](bool training) {
    return communication_memory(rank, layout, layer, 4096, dtypes, training, 36).gathered;
  };
  const Bytes freed = bytes(true), scoring = bytes(false);
  rank.traits.shards.kept_gathered = true;
  EXPECT_EQ(bytes(true) - freed, 34 * layer.dense * 2);  // all but the two that are there anyway
  EXPECT_EQ(bytes(false), scoring);
}

TEST(Experts, CostTheirShareOfFlopsHoweverTheyAreCut) {
  Problems problems;
  const auto calibration = find_calibration("h100", problems);
  ASSERT_TRUE(calibration);
  RankModel rank{{}, preset("qwen3-30b-a3b"), DType::bf16};
  const TokenBatch batch{65536, 16, 16 * 4096.0 * 4096};
  const Seconds whole = layer_forward(rank, batch, *calibration).device;
  rank.ep = 8;  // the same tokens, but of every eighth expert: as many copies come from others
  const Seconds sorted =
      stream_seconds(Traffic{65536 * 8 * 4.0 * 2048 * 2}, *calibration);  // by expert
  EXPECT_NEAR((layer_forward(rank, batch, *calibration).device - sorted) / whole, 1, 0.15);
  const double memory = layer_activation_bytes(rank, Recompute::none);
  rank.ep = 1;
  EXPECT_DOUBLE_EQ(layer_activation_bytes(rank, Recompute::none), memory);
}

}  // namespace
}  // namespace tessera
