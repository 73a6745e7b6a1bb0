// What experts cost across nodes: copies of a token against enumeration, and the mechanisms that
// published engines use, each against the plain all-to-all.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "cost_models/compute.h"
#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/rank_model.h"

namespace tessera {
namespace {

// Mean number of places that k distinct choices among `units` touch, `units / places` in each;
// choices of the first `allowed` units only.
double enumerated(int units, int places, int k, int allowed) {
  double sum = 0, count = 0;
  for (std::uint32_t chosen = 0; chosen < (1U << allowed); ++chosen) {
    if (__builtin_popcount(chosen) != k) continue;
    std::uint32_t touched = 0;
    for (int unit = 0; unit < allowed; ++unit) {
      if ((chosen >> unit & 1) != 0) touched |= 1U << (unit / (units / places));
    }
    sum += __builtin_popcount(touched);
    ++count;
  }
  return sum / count;
}

// The closed form draws with replacement, which differs by little where experts are many.
TEST(ExpertCopies, CountPlacesThatAChoiceTouches) {
  MoeSpec moe{.experts = 16, .experts_per_token = 2, .expert_ffn = 1};
  for (const int k : {1, 2, 4}) {
    moe.experts_per_token = k;
    for (const int nodes : {1, 2, 4}) {
      const ExpertCopies copies = expert_copies(moe, {8, nodes});
      EXPECT_NEAR(copies.nodes, enumerated(16, nodes, k, 16), 0.13 * copies.nodes) << k << nodes;
      EXPECT_NEAR(copies.ranks, enumerated(16, 8, k, 16), 0.13 * copies.ranks) << k << nodes;
      EXPECT_LE(copies.nodes, copies.ranks + 1e-9);
      EXPECT_LE(copies.ranks, k + 1e-9);
    }
  }
}

TEST(ExpertCopies, AreLimitedToTheNodesOfTheChosenGroups) {
  MoeSpec moe{.experts = 16, .experts_per_token = 4, .expert_ffn = 1};
  moe.groups = 4;
  moe.groups_per_token = 2;
  const ExpertCopies limited = expert_copies(moe, {16, 4});
  EXPECT_LE(limited.nodes, 2.0);
  EXPECT_NEAR(limited.nodes, enumerated(16, 4, 4, 8), 0.13 * 2);
  moe.groups_per_token = 4;
  EXPECT_GT(expert_copies(moe, {16, 4}).nodes, limited.nodes);
}

class ExpertDispatchTest : public testing::Test {
 protected:
  void SetUp() override {
    Problems problems;
    model_ = *read_model_spec("deepseek-v3", problems);
    cluster_ = *read_cluster_spec("deepseek-h800-2048", problems);
    calibration_ = *calibration_for_cluster(cluster_, problems);
  }
  double seconds(ExpertDispatch dispatch, GroupShape group) const {
    RankModel rank{{.ep = group.ranks}, model_};
    rank.kind = LayerKind::sparse;
    rank.traits.experts.dispatch = dispatch;
    return layer_ep_seconds(rank, 4096, group, cluster_, calibration_);
  }
  ModelSpec model_;
  ClusterSpec cluster_;
  Calibration calibration_;
};

// DeepEP's published rates (its legacy documentation): 50 GB/s logical over RDMA at EP64, 4,096
// tokens of 7,168, top 8 in 4 of 8 groups, bf16: dispatch and combine of at most 4 copies each.
TEST_F(ExpertDispatchTest, AcrossNodesIsWithinAQuarterOfDeepEPsMeasuredRate) {
  const double copies = expert_copies(*model_.moe, {64, 8}).nodes;
  const double measured = 2 * copies * 4096 * 7168 * 2 / 50e9;
  EXPECT_NEAR(seconds(ExpertDispatch::hierarchical, {64, 8}) / measured, 1.0, 0.25);
}

TEST_F(ExpertDispatchTest, HierarchicalSendsLessThanOneCopyPerExpert) {
  EXPECT_LT(seconds(ExpertDispatch::hierarchical, {64, 8}),
            0.6 * seconds(ExpertDispatch::direct, {64, 8}));
  EXPECT_DOUBLE_EQ(seconds(ExpertDispatch::hierarchical, {8, 1}),
                   seconds(ExpertDispatch::direct, {8, 1}));
}

TEST_F(ExpertDispatchTest, SelectiveRecomputationRepeatsProjectionsInsteadOfKeepingThem) {
  RankModel rank{{.tp = 2, .ep = 64}, model_};
  rank.kind = LayerKind::sparse;
  const TokenBatch batch{4096, 1, 4096.0 * 4096};
  const double kept = layer_activation_bytes(rank, Recompute::none);
  const double selective = layer_activation_bytes(rank, Recompute::selective);
  // 64 heads of query, key (192 each) and value (128) are gone, and the gated products.
  EXPECT_LE(selective, kept - 2.0 * 64 * (192 + 192 + 128));
  const Seconds plain = layer_backward(rank, batch, Recompute::none, calibration_).device;
  const Seconds again = layer_backward(rank, batch, Recompute::selective, calibration_).device;
  EXPECT_GT(again, plain);
  EXPECT_LT(again, plain + layer_forward(rank, batch, calibration_).device);
}

// Of Megatron-Core's modules (moe_act, mla_up_proj) no one drops a dense MLP's product: per token
// the experts' products and latent attention's projections go, the shared expert's product stays.
TEST_F(ExpertDispatchTest, SelectiveRecomputationOfMegatronIsThatOfItsModules) {
  RankModel rank{{.tp = 2, .ep = 64}, model_};
  rank.kind = LayerKind::sparse;
  rank.traits.kernels.selective = SelectiveRecompute::modules;
  const double kept = layer_activation_bytes(rank, Recompute::none);
  const double selective = layer_activation_bytes(rank, Recompute::selective);
  const double projections = 2.0 * 64 * (192 + 192 + 128), products = 2.0 * 8 * 2048 / 2;
  EXPECT_DOUBLE_EQ(kept - selective, projections + products);

  Problems problems;
  RankModel dense{{.tp = 8}, *read_model_spec("llama3.1-70b", problems)};
  dense.traits.kernels.selective = SelectiveRecompute::modules;
  EXPECT_EQ(layer_activation_bytes(dense, Recompute::selective),
            layer_activation_bytes(dense, Recompute::none));
  const TokenBatch batch{4096, 1, 4096.0 * 4096};
  const double plain = layer_backward(dense, batch, Recompute::none, calibration_).device;
  const double again = layer_backward(dense, batch, Recompute::selective, calibration_).device;
  EXPECT_NEAR(again - plain,
              calibration_.sustained.value * layer_attention_seconds(dense, batch, calibration_),
              1e-12);
}

TEST_F(ExpertDispatchTest, CollectivesInPiecesBesideTheirGemmsLeaveOnePiece) {
  Problems problems;
  RankModel rank{{.tp = 8}, *read_model_spec("llama3.1-70b", problems)};
  rank.sequence_parallel = true;
  const double whole = layer_tp_seconds(rank, 8192, {8, 1}, cluster_, calibration_);
  rank.traits.kernels.overlapped_tensor_parallel = true;
  const double pieces = layer_tp_seconds(rank, 8192, {8, 1}, cluster_, calibration_);
  EXPECT_GE(pieces, whole / 8);
  EXPECT_LT(pieces, 0.5 * whole);
}

// DeepSeek-V3: 8 of 256 experts on 8 ranks of a node touch 8 (1 - (7/8)^8) = 5.25 of them.
TEST_F(ExpertDispatchTest, MergedSendsOneCopyPerRankInsideANodeToo) {
  RankModel rank{{.ep = 8}, model_, DType::bf16};
  const auto seconds = [&](double tokens) {
    return layer_ep_seconds(rank, tokens, {8, 1}, cluster_, calibration_);
  };
  const double tokens = 65536;
  const Seconds direct = seconds(2 * tokens) - seconds(tokens);
  rank.traits.experts.merged_dispatch = true;
  EXPECT_NEAR((seconds(2 * tokens) - seconds(tokens)) / direct, 1 - std::pow(7.0 / 8, 8), 0.02);
}

// As the executor sends them (tests/executor/model/expert_traffic_test.cc).
TEST_F(ExpertDispatchTest, TokensThatAreGatheredFirstPassOnceAndAreDealtOutByAll) {
  RankModel rank{{.tp = 4, .ep = 2, .etp = 2}, model_, DType::bf16};
  rank.kind = LayerKind::sparse;
  rank.sequence_parallel = true;
  const double tokens = 65536;
  const GroupShape pair{2, 1};
  const auto seconds = [&] { return layer_ep_seconds(rank, tokens, pair, cluster_, calibration_); };
  const auto of = [&](Collective what, Traffic bytes, int ranks) {
    return collective_seconds(what, bytes, group_shape(cluster_, ranks, 1), cluster_, calibration_);
  };
  const Traffic all{tokens * 2 * 7168}, two = all / 2;  // of all four ranks, of those of a pair
  const Seconds copies_gathered = seconds();
  rank.traits.experts.gathered_first = true;
  const Seconds dealt = 2 * of(Collective::all_to_all, 8 * two, 2);
  EXPECT_DOUBLE_EQ(seconds(), dealt + of(Collective::all_gather, two, 2) +
                                  of(Collective::reduce_scatter, two, 2));
  EXPECT_LT(seconds(), copies_gathered);
  // Every rank has all tokens, and sums are made over the four.
  rank.sequence_parallel = false;
  EXPECT_DOUBLE_EQ(seconds(), dealt + of(Collective::reduce_scatter, all, 4));
  rank.etp = 1;
  const Seconds whole = seconds();
  rank.traits.experts.gathered_first = false;
  EXPECT_DOUBLE_EQ(seconds(), whole);
}

TEST_F(ExpertDispatchTest, MergedTokensNeedNoSorting) {
  RankModel rank{{.ep = 8}, model_, DType::bf16};
  const Traffic sorted = layer_elementwise_bytes(rank);
  rank.traits.experts.merged_dispatch = true;
  EXPECT_DOUBLE_EQ(sorted - layer_elementwise_bytes(rank), 2.0 * 4 * 8 * 7168);
}

TEST_F(ExpertDispatchTest, BiasesOfExpertsAreReadAndWrittenInFp32WhereAnEngineAddsThemSo) {
  RankModel rank{{.ep = 8}, model_, DType::bf16};
  rank.traits.experts.eager_bias = true;
  const Traffic without = layer_elementwise_bytes(rank);
  rank.model.mlp_bias = true;
  EXPECT_DOUBLE_EQ(layer_elementwise_bytes(rank) - without, 24.0 * 8 * 7168);
}

}  // namespace
}  // namespace tessera
