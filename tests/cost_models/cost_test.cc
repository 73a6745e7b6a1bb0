// Oracles: our own measurements on 8 x H200 (copied here as numbers), closed forms, Monte Carlo.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <queue>
#include <random>
#include <tuple>

#include "cost_models/calibration.h"
#include "cost_models/collective.h"
#include "cost_models/compute.h"
#include "cost_models/decoding.h"
#include "cost_models/lengths.h"
#include "cost_models/rank_model.h"
#include "tests/cost_models/shipped_calibration.h"

namespace tessera {
namespace {

ClusterSpec cluster_of(std::int64_t nodes) {
  ClusterSpec cluster;
  cluster.device = {"H200-SXM-141GB", from_gib(141), tflop_per_s(989), gb_per_s(4800)};
  cluster.gpus_per_node = 8;
  cluster.nodes = nodes;
  cluster.intra_per_gpu = gb_per_s(450);
  cluster.nics_per_node = 8;
  cluster.nic = gb_per_s(50);
  return cluster;
}

ModelSpec qwen2_7b() {
  ModelSpec model;
  model.layers = 28;
  model.hidden = 3584;
  model.query_heads = 28;
  model.kv_heads = 4;
  model.head_dim = 128;
  model.ffn = 18944;
  model.vocab = 152064;
  return model;
}

TEST(Matmul, Reaches786TflopsAt8192CubedOnH200) {
  const Calibration h200 = shipped("h200");
  const double seconds = matmul_seconds(8192, 8192, 8192, DType::bf16, h200);
  EXPECT_NEAR(2 * std::pow(8192.0, 3) / seconds / 1e12, 786, 786 * 0.05);
}

TEST(Matmul, PredictsTheMeasuredDecodeGemmsOfA7BLayerWithin10Percent) {
  const Calibration h200 = shipped("h200");
  const double measured_us[][2] = {{1, 130}, {64, 131}, {128, 138}, {256, 176}, {512, 321}};
  for (const auto& [batch, us] : measured_us) {
    Seconds seconds;
    for (const auto& [n, k] : {std::pair{4608, 3584}, {3584, 3584}, {37888, 3584}, {3584, 18944}}) {
      seconds += matmul_seconds(batch, n, k, DType::bf16, h200);
    }
    EXPECT_NEAR(seconds * 1e6, us, us * 0.10) << "batch " << batch;
  }
}

TEST(Collective, MatchesMeasuredNcclOn8H200Within4Percent) {
  const Calibration h200 = shipped("h200");
  const ClusterSpec cluster = cluster_of(1);
  const auto bus = [&](Collective what, double bytes, int ranks) {
    const GroupShape group{ranks, 1};
    const Traffic wire = wire_bytes(what, Traffic{bytes}, ranks);
    return (wire / collective_seconds(what, Traffic{bytes}, group, cluster, h200)).value / 1e9;
  };
  EXPECT_NEAR(bus(Collective::all_gather, 7.6e9, 8), 362, 362 * 0.04);
  EXPECT_NEAR(bus(Collective::all_gather, 7.6e9, 4), 355, 355 * 0.04);
  EXPECT_NEAR(bus(Collective::all_reduce, 4.3e9, 8), 365, 365 * 0.04);
  EXPECT_NEAR(bus(Collective::reduce_scatter, 4.3e9, 8), 356, 356 * 0.04);
  EXPECT_NEAR(bus(Collective::all_to_all, 4.3e9, 8), 342, 342 * 0.04);
}

TEST(Collective, CostsNothingAloneAndMoreAcrossNodes) {
  const Calibration h200 = shipped("h200");
  const ClusterSpec cluster = cluster_of(4);
  const auto seconds = [&](int ranks, int nodes) {
    return collective_seconds(Collective::all_reduce, Traffic{1e9}, {ranks, nodes}, cluster, h200);
  };
  EXPECT_EQ(seconds(1, 1), 0);
  EXPECT_GT(seconds(16, 2), seconds(8, 1));
  EXPECT_GT(seconds(32, 4), seconds(16, 2));
  // 2 (M-1)/M x (S/g) over one 46 GB/s card per GPU, plus the ring inside the node.
  const Seconds inter{2 * 0.5 * 1e9 / 8 / 46e9};
  EXPECT_NEAR(seconds(16, 2), seconds(8, 1) + inter, 1e-4);
}

TEST(Collective, InterpolatesGroupSizesThatNobodyMeasured) {
  const Calibration h200 = shipped("h200");
  const ClusterSpec cluster = cluster_of(1);
  const auto seconds = [&](int ranks) {
    return collective_seconds(Collective::all_gather, Traffic{1e8}, {ranks, 1}, cluster, h200);
  };
  EXPECT_GT(seconds(6), seconds(4));
  EXPECT_LT(seconds(6), seconds(8));
}

TEST(GroupShape, CountsTheNodesOfAStridedGroup) {
  const ClusterSpec cluster = cluster_of(4);
  EXPECT_EQ(group_shape(cluster, 8, 1), (GroupShape{8, 1}));
  EXPECT_EQ(group_shape(cluster, 4, 8), (GroupShape{4, 4}));
  EXPECT_EQ(group_shape(cluster, 4, 4), (GroupShape{4, 2}));
  EXPECT_EQ(group_shape(cluster, 2, 2, 6), (GroupShape{2, 2}));
}

TEST(DecodeAttention, StaysWithin12PercentOfTheMeasuredPagedDecode) {
  const Calibration h200 = shipped("h200");
  const RankModel rank{{}, qwen2_7b(), DType::bf16};
  const auto attention = [&](double batch, double context) {
    const Work with = layer_decode(rank, batch, {context}, h200);
    Seconds rest;
    for (const auto& [n, k] : {std::pair{4608, 3584}, {3584, 3584}, {37888, 3584}, {3584, 18944}}) {
      rest += matmul_seconds(batch, n, k, DType::bf16, h200);
    }
    // Elementwise kernels of one layer, from their bytes and floors.
    const double bytes = batch * 2 * (10 * 3584 + 2 * 32 * 128 + 5 * 18944);
    rest += stream_seconds(Traffic{bytes}, h200) + (kOperators.layer_decode - 5) * Seconds{2e-6};
    return (with.device - rest) * 1e6;
  };
  EXPECT_NEAR(attention(256, 1024), 136, 136 * 0.12);
  EXPECT_NEAR(attention(256, 4096), 484, 484 * 0.12);
}

TEST(HostBoundWork, IsTheSumOnCpusAndTheMaximumOnGpus) {
  Calibration calibration;
  calibration.overlapped_dispatch = false;
  EXPECT_DOUBLE_EQ((Work{Seconds{2}, Seconds{3}}).total(calibration), 5);
  calibration.overlapped_dispatch = true;
  EXPECT_DOUBLE_EQ((Work{Seconds{2}, Seconds{3}}).total(calibration), 3);
}

TEST(LayerBackward, CostsTwiceTheForwardGemmsOfLargeBatches) {
  const Calibration h200 = shipped("h200");
  const RankModel rank{{}, qwen2_7b(), DType::bf16};
  const TokenBatch batch{16384, 16, 16 * 1024.0 * 1024.0};
  const double forward = layer_forward(rank, batch, h200).device;
  const double backward = layer_backward(rank, batch, Recompute::none, h200).device;
  EXPECT_GT(backward, 1.8 * forward);
  EXPECT_LT(backward, 2.4 * forward);
  EXPECT_NEAR(layer_backward(rank, batch, Recompute::full, h200).device, backward + forward, 1e-9);
}

TEST(ForwardFlops, AreTwicePsiPlusCausalAttentionOfQwen2_7B) {
  // 7,615,616,512 parameters, of which embedding 544,997,376 and norms and biases do not multiply.
  const double matmul = 7'615'616'512.0 - 544'997'376.0 - (2 * 28 + 1) * 3584.0 - 28 * 4608.0;
  EXPECT_NEAR(forward_flops_per_token(qwen2_7b(), 0), 2 * matmul, 1);
  EXPECT_NEAR(forward_flops_per_token(qwen2_7b(), 1000) - 2 * matmul, 2.0 * 28 * 3584 * 1000, 1);
}

TEST(Lengths, MomentsAndLongestAgreeWithMonteCarlo) {
  const LengthSpec lengths{800, 0.7, 2048};
  std::mt19937_64 engine(7);
  const double variance = std::log1p(0.49);
  std::lognormal_distribution<double> draw(std::log(800.0) - variance / 2, std::sqrt(variance));
  double sum = 0, square = 0, above = 0, longest = 0;
  constexpr int kRounds = 4000, kGroup = 64;
  for (int round = 0; round < kRounds; ++round) {
    double most = 0;
    for (int i = 0; i < kGroup; ++i) {
      const double length = std::min(draw(engine), 2048.0);
      sum += length;
      square += length * length;
      above += length > 1000 ? 1 : 0;
      most = std::max(most, length);
    }
    longest += most;
  }
  constexpr double kDraws = static_cast<double>(kRounds) * kGroup;
  EXPECT_NEAR(mean_length(lengths), sum / kDraws, 0.01 * sum / kDraws);
  EXPECT_NEAR(mean_square_length(lengths), square / kDraws, 0.01 * square / kDraws);
  EXPECT_NEAR(survival(lengths, 1000), above / kDraws, 0.005);
  // Every replica has one sequence: the slowest one has the longest.
  const DecodeProfile one = DecodeLengths(lengths, kGroup).profile(1, 1);
  const DecodeTime time = slowest_decoding(one, kGroup, [](double, double) {
    return DecodeTime{Seconds{1}, Seconds{0.5}};
  });
  EXPECT_NEAR((time.seconds.value + 1) * kRounds / longest, 1, 0.01);
  EXPECT_NEAR(time.communication, time.seconds / 2, 1e-6 * time.seconds);
}

// P(longest of n <= k) = P(length <= k)^n, summed over a table's lengths.
TEST(Lengths, OfAPublishedMeanAreThoseBeforeTheLimitCutThem) {
  for (const double mean : {200.0, 891.0, 3075.0, 3900.0}) {
    const double whole = unclipped_mean(mean, 0.5, 3968);
    EXPECT_GE(whole, mean);
    EXPECT_NEAR(mean_length({whole, 0.5, 3968}), mean, 1e-6 * mean);
  }
  EXPECT_EQ(unclipped_mean(512, 0, 4096), 512);
  EXPECT_EQ(unclipped_mean(512, 0.5, 512), 512);
}

TEST(Lengths, TheSlowestReplicaHasTheLongestOfAll) {
  const std::vector<std::int64_t> table = {11, 21, 31, 41, 61, 61, 81, 101};
  const LengthSpec lengths{51, 0.56, 101, table};
  for (const int each : {1, 2, 5, 16}) {
    for (const int replicas : {1, 2, 3, 8, 64}) {
      double longest = 0, before = 0;
      for (std::size_t k = 0; k < table.size(); ++k) {
        const double below = std::pow(static_cast<double>(k + 1) / 8, each * replicas);
        longest += static_cast<double>(table[k]) * (below - before);
        before = below;
      }
      const DecodeProfile profile = DecodeLengths(lengths, each * replicas).profile(each, each);
      const DecodeTime time = slowest_decoding(profile, replicas, [](double, double) {
        return DecodeTime{Seconds{1}, {}};
      });
      EXPECT_NEAR((time.seconds.value + 1) / longest, 1, 0.02) << each << " x " << replicas;
      if (replicas == 1) {
        EXPECT_NEAR((profile.last_steps + 1) / longest, 1, 0.02) << each;
      }
    }
  }
}

TEST(Lengths, FixedOnesDecodeEveryStepWithAllSequences) {
  const DecodeLengths lengths({100, 0, 100}, 10);
  double most = 0;
  const auto seconds_of = [&](double sequences, double slots) {
    return slowest_decoding(lengths.profile(sequences, slots), 3,
                            [&](double alive, double age) {
                              most = std::max(most, alive);
                              return DecodeTime{Seconds{alive + 10 + age}, {}};
                            })
        .seconds;
  };
  EXPECT_NEAR(seconds_of(8, 8), 99 * (8 + 10 + 49.5), 1e-6);
  EXPECT_DOUBLE_EQ(most, 8);
  // Two full waves, and one of the two that are left.
  EXPECT_NEAR(seconds_of(10, 4), 99 * (4 + 4 + 2 + 3 * (10 + 49.5)), 1e-6);
  EXPECT_DOUBLE_EQ(lengths.profile(10, 4).refills, 2);
}

// A step is its kernels' (growing with the ages) or a server's front end's, whichever takes longer.
TEST(Lengths, LongerStepsTakeNoLess) {
  for (const double cv : {0.0, 0.3, 1.0}) {
    for (const double sequences : {64.0, 256.0, 1024.0}) {
      for (const double replicas : {1.0, 8.0, 64.0}) {
        const DecodeLengths lengths({512, cv, 2048}, sequences * replicas);
        for (const double waves : {1.0, 2.0, 4.0}) {
          const DecodeProfile profile = lengths.profile(sequences, std::floor(sequences / waves));
          for (const double grows : {1e-9, 2e-8, 1e-7}) {
            Seconds shorter;
            for (const double served : {1e-5, 3e-5, 6e-5, 1.2e-4}) {
              const Seconds time =
                  slowest_decoding(profile, replicas, [&](double alive, double age) {
                    const double kernels = 5e-3 + alive * (1e-5 + grows * age);
                    return DecodeTime{Seconds{std::max(kernels, served * alive)}, {}};
                  }).seconds;
              EXPECT_GE(time, shorter * (1 - 1e-9))
                  << cv << " " << sequences << " " << replicas << " " << waves << " " << served;
              shorter = time;
            }
          }
        }
      }
    }
  }
}

double step_of(double alive, double context) {
  return 0.012 + 2e-5 * alive + 3e-8 * alive * context;
}

// Sequences of drawn lengths in slots, finish by finish; the mean of `rounds` draws.
double drawn_queue_seconds(const LengthSpec& lengths, double prompt, int sequences, int slots,
                           int rounds) {
  std::mt19937_64 engine(11);
  const double variance = std::log1p(lengths.cv * lengths.cv);
  std::lognormal_distribution<double> draw(std::log(lengths.mean) - variance / 2,
                                           std::sqrt(variance));
  double seconds = 0;
  for (int round = 0; round < rounds; ++round) {
    using Running = std::pair<double, double>;  // end, start
    std::priority_queue<Running, std::vector<Running>, std::greater<>> running;
    double now = 0, starts = 0;
    for (int next = 0; next < sequences || !running.empty();) {
      for (; next < sequences && std::ssize(running) < slots; ++next) {
        const double length = std::min(draw(engine), static_cast<double>(lengths.max));
        running.emplace(now + length, now);
        starts += now;
      }
      const auto alive = static_cast<double>(running.size());
      const auto [end, start] = running.top();
      const double middle = (now + end) / 2;
      seconds += (end - now) * step_of(alive, prompt + middle - starts / alive);
      now = end;
      starts -= start;
      running.pop();
    }
  }
  return seconds / rounds;
}

TEST(Lengths, OfWaitingSequencesTakeWhatDrawnOnesTakeOnAverage) {
  for (const auto& [mean, cv, max, sequences, slots] :
       std::vector<std::tuple<double, double, int, int, int>>{{640, 0.5, 1024, 640, 290},
                                                              {640, 0.5, 1024, 640, 128},
                                                              {640, 0.5, 1024, 640, 640},
                                                              {2000, 1, 8192, 512, 200},
                                                              {2000, 1, 8192, 1024, 30},
                                                              {500, 0.3, 4096, 256, 100}}) {
    const LengthSpec lengths{mean, cv, max};
    const double drawn = drawn_queue_seconds(lengths, 1024, sequences, slots, 40);
    const DecodeProfile profile = DecodeLengths(lengths, sequences).profile(sequences, slots);
    const double closed = slowest_decoding(profile, 1, [](double alive, double age) {
                            return DecodeTime{Seconds{step_of(alive, 1025 + age)}, {}};
                          }).seconds;
    EXPECT_NEAR(closed / drawn, 1, 0.03) << mean << " " << sequences << " in " << slots;
  }
}

}  // namespace
}  // namespace tessera
