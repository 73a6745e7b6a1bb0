// What the planner says that a layer with experts keeps for its backward pass is what is alive
// then.
#include <gtest/gtest.h>

#include "cost_models/executor/call_bytes.h"
#include "tests/executor/model/counted_tensors.h"
#include "tests/executor/model/fixture.h"

namespace tessera::testing {
namespace {

using torch::Tensor;

constexpr std::int64_t kTokens = 512;

ModelSpec model_of(std::int64_t layers, bool experts) {
  ModelSpec model = small_model(4, 2, layers);
  model.family = experts ? ModelFamily::qwen3_moe : ModelFamily::qwen3;
  model.qkv_bias = false;
  model.hidden = 64;
  model.ffn = 96;
  if (!experts) return model;
  model.moe = MoeSpec{.experts = 8, .experts_per_token = 3, .expert_ffn = 40, .normalised = true};
  return model;
}

/// Bytes that the forward pass leaves behind.
double kept_bytes(const ModelSpec& model, Recompute recompute) {
  double kept = 0;
  on_ranks(model, {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    Weights weights = loaded(model, layout, groups, {});
    for (Tensor& tensor : weights.tensors) tensor.requires_grad_();
    kept = left_by_forward(weights, groups, kTokens, recompute);
  });
  return kept;
}

/// A layer's, the attention's left out by comparing with a plain layer.
template <class Kept>
double measured_difference(const Kept& kept) {
  const auto layer = [&](bool experts) {
    return kept(model_of(3, experts)) - kept(model_of(2, experts));
  };
  return layer(true) - layer(false);
}

double measured_difference(Recompute recompute) {
  return measured_difference([&](const ModelSpec& model) { return kept_bytes(model, recompute); });
}

double predicted_difference(Recompute recompute, const Degrees& degrees = {}) {
  const auto layer = [&](bool experts) {
    RankModel rank;
    rank.model = model_of(2, experts);
    rank.dtype = DType::fp32;
    rank.tp = degrees.tp;
    rank.ep = degrees.ep;
    rank.etp = layout_of(rank.model, degrees).etp;
    rank.sequence_parallel = degrees.sequence;
    return static_cast<double>(kTokens) * executor_saved_bytes(rank, recompute).value;
  };
  return layer(true) - layer(false);
}

/// The mean over ranks of what the forward passes of all leave behind.
double kept_bytes_of_cut(const ModelSpec& model, const Degrees& degrees) {
  double kept = 0;
  on_ranks(model, degrees, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    Weights weights = loaded(model, layout, groups, {});
    for (Tensor& tensor : weights.tensors) {
      if (tensor.defined()) tensor.requires_grad_();
    }
    const std::vector<std::vector<std::int64_t>> text{std::vector<std::int64_t>(kTokens, 3)};
    const PackedTokens tokens = pack_tokens(text, torch::kCPU);
    groups.tp->barrier();
    const std::int64_t before = counted().bytes;
    groups.tp->barrier();
    const Tensor hidden = stage_forward(weights, groups, tokens, {}, {});
    groups.tp->barrier();
    if (groups.coord.tp == 0) {
      kept = static_cast<double>(counted().bytes - before) / static_cast<double>(degrees.tp);
    }
    groups.tp->barrier();
  });
  return kept;
}

/// Experts in as many parts as the rest, in fewer and whole, of which every rank has all or some.
TEST(KeptBytes, OfExpertsInAnyNumberOfPartsAreWhatThePlannerCounts) {
  for (const Degrees& degrees :
       {Degrees{.tp = 4, .etp = 4, .sequence = true}, Degrees{.tp = 4, .etp = 2, .sequence = true},
        Degrees{.tp = 4, .ep = 2, .etp = 2, .sequence = true},
        Degrees{.tp = 4, .ep = 4, .etp = 1, .sequence = true}}) {
    SCOPED_TRACE("ep" + std::to_string(degrees.ep) + " etp" + std::to_string(degrees.etp));
    const double measured = measured_difference(
        [&](const ModelSpec& model) { return kept_bytes_of_cut(model, degrees); });
    const double predicted = predicted_difference(Recompute::none, degrees);
    EXPECT_NEAR(measured, predicted, 0.03 * predicted);
  }
}

TEST(KeptBytes, OfALayerWithExpertsAreWhatThePlannerCounts) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective}) {
    const double predicted = predicted_difference(recompute);
    EXPECT_GT(predicted, 100 * kTokens);
    EXPECT_NEAR(measured_difference(recompute), predicted, 0.03 * predicted);
  }
  // Run again: the layer's input alone, with experts or without.
  EXPECT_NEAR(measured_difference(Recompute::full), 0,
              0.01 * predicted_difference(Recompute::none));
}

}  // namespace
}  // namespace tessera::testing
