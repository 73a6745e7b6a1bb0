// What the planner says that a layer with low-rank adapters beside frozen weights keeps for its
// backward pass is what is alive then.
#include <gtest/gtest.h>

#include "cost_models/executor/call_bytes.h"
#include "executor/adapters/adapter_weights.h"
#include "tests/executor/model/counted_tensors.h"
#include "tests/executor/model/fixture.h"

namespace tessera::testing {
namespace {

using torch::Tensor;

constexpr std::int64_t kTokens = 512, kRank = 24;

ModelSpec model_of(std::int64_t layers) {
  ModelSpec model = small_model(4, 2, layers);
  model.hidden = 64;
  model.ffn = 96;
  return model;
}

double kept_bytes(std::int64_t layers, bool adapters, Recompute recompute) {
  double kept = 0;
  const ModelSpec model = model_of(layers);
  on_ranks(model, {}, [&](const ParallelLayout& layout, const ParallelGroups& groups) {
    Weights weights = loaded(model, layout, groups, {});
    Weights low = make_adapters(weights, {.rank = kRank});
    if (adapters) {
      draw_adapters(low, 3);
      attach_adapters(weights, low, {.rank = kRank});
    }
    for (Tensor& tensor : adapters ? low.tensors : weights.tensors) {
      if (tensor.defined()) tensor.requires_grad_();
    }
    kept = left_by_forward(weights, groups, kTokens, recompute);
  });
  return kept;
}

/// Attention on a processor keeps more than kernels on a GPU; that it does with adapters or
/// without.
double predicted(bool adapters, Recompute recompute) {
  RankModel rank;
  rank.model = model_of(2);
  rank.dtype = DType::fp32;
  rank.adapter_rank = adapters ? kRank : 0;
  return static_cast<double>(kTokens) * executor_saved_bytes(rank, recompute).value;
}

TEST(KeptBytes, OfALayerWithAdaptersAreWhatThePlannerCounts) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    const auto layer = [&](bool adapters) {
      return kept_bytes(4, adapters, recompute) - kept_bytes(3, adapters, recompute);
    };
    EXPECT_NEAR(layer(true) - layer(false),
                predicted(true, recompute) - predicted(false, recompute),
                0.01 * predicted(true, recompute));
  }
}

}  // namespace
}  // namespace tessera::testing
