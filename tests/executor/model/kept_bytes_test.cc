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
double measured_difference(Recompute recompute) {
  const auto layer = [&](bool experts) {
    return kept_bytes(model_of(3, experts), recompute) -
           kept_bytes(model_of(2, experts), recompute);
  };
  return layer(true) - layer(false);
}

double predicted_difference(Recompute recompute) {
  const auto layer = [&](bool experts) {
    RankModel rank;
    rank.model = model_of(2, experts);
    rank.dtype = DType::fp32;
    return static_cast<double>(kTokens) * executor_saved_bytes(rank, recompute).value;
  };
  return layer(true) - layer(false);
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
