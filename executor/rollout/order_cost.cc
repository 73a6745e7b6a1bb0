#include "executor/rollout/order_cost.h"

#include <algorithm>
#include <vector>

#include "executor/comm/stopwatch.h"

namespace tessera {
namespace {

constexpr int kPassesBefore = 2, kPasses = 5;

double pass_seconds(PagedModel& model) {
  const CacheShape& shape = model.shape();
  const std::int64_t row_pages = std::min((shape.row_pages + 1) / 2, shape.pages);
  std::vector<std::vector<std::int32_t>> pages(static_cast<std::size_t>(shape.slots));
  Pass pass;
  std::int64_t next = 0;
  for (std::int64_t slot = 0; slot < shape.slots; ++slot) {
    auto& own = pages[static_cast<std::size_t>(slot)];
    for (std::int64_t i = 0; i < row_pages; ++i) {
      own.push_back(static_cast<std::int32_t>(next++ % shape.pages));
    }
    pass.decode.push_back({.draw = {.slot = slot, .uniform = 0.5},
                           .position = row_pages * shape.page_tokens - 1,
                           .pages = own});
  }
  const auto run = [&](int passes) {
    for (int i = 0; i < passes; ++i) {
      model.launch(pass);
      model.collect();
    }
  };
  run(kPassesBefore);
  const Stopwatch watch;
  run(kPasses);
  return watch.seconds() / kPasses;
}

}  // namespace

OrderCost measure_order_cost(const Weights& weights, const ParallelGroups& groups,
                             const CacheShape& shape, const torch::Tensor& memory) {
  const torch::NoGradGuard no_grad;
  PagedModel fixed(weights, groups, shape, memory, SumOrder::fixed);
  OrderCost cost{.sequences = shape.slots, .fixed_s = pass_seconds(fixed)};
  PagedModel fastest(weights, groups, shape, memory, SumOrder::fastest);
  cost.fastest_s = pass_seconds(fastest);
  return cost;
}

}  // namespace tessera
