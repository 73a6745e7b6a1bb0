#include "executor/transfers/pull_traffic.h"

#include "executor/arena/pulls.h"

namespace tessera {

PullTraffic traffic_of(const ReshardPlan& plan, std::span<const ShardedTensor> tensors, int ranks) {
  const auto at = [](int rank) { return static_cast<std::size_t>(rank); };
  PullTraffic traffic(at(ranks), std::vector<std::int64_t>(at(ranks)));
  for (const Transfer& transfer : plan.transfers) {
    if (transfer.source == transfer.destination) continue;
    traffic[at(transfer.source)][at(transfer.destination)] += bytes_moved(transfer, tensors);
  }
  return traffic;
}

}  // namespace tessera
