#include "executor/run_state/stale_weights.h"

#include <algorithm>
#include <string>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using torch::Tensor;

constexpr std::int64_t kAtOnce = std::int64_t{1} << 24;  // elements that are rounded together

Tensor bits_of(const Tensor& values) {
  return values.view(values.element_size() == 2 ? torch::kShort : torch::kInt);
}

/// First and one past the last index at which `held` is not `master` rounded; empty where none is.
Interval stale_range(const Tensor& held, const Tensor& master) {
  Interval stale;
  for (std::int64_t lo = 0; lo < held.numel(); lo += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, held.numel() - lo);
    const Tensor own = held.narrow(0, lo, count);
    const Tensor wanted = master.narrow(0, lo, count).to(held.scalar_type());
    const Tensor places = bits_of(own).ne(bits_of(wanted)).nonzero();
    if (places.numel() == 0) continue;
    if (stale.empty()) stale.lo = lo + places[0].item<std::int64_t>();
    stale.hi = lo + places[-1].item<std::int64_t>() + 1;
  }
  return stale;
}

}  // namespace

void find_stale_weights(const Weights& weights, const Optimizer& optimizer, int rank,
                        Problems& problems) {
  const torch::NoGradGuard no_grad;
  const Tensor master = optimizer.state().master.detach();
  if (master.device() != weights.device()) return;
  const ShardMap& map = optimizer.map();
  const std::int64_t width = weights.arena.element_bytes;
  for (const ShardBucket& bucket : map.buckets) {
    for (const ShardSegment& segment : map.own(bucket)) {
      const auto row = static_cast<std::size_t>(segment.row);
      const ArenaSlot& slot =
          weights.arena.slots[static_cast<std::size_t>(weights.arena.slot_of[row])];
      // FSDP's shards lie in the storage as in the shard space; others are parts of whole tensors.
      const bool stored = map.kind == ShardKind::stored;
      const Tensor held =
          stored ? weights.storage.narrow(0, segment.shard, segment.count)
                 : weights.tensors[row].detach().view({-1}).narrow(0, segment.first, segment.count);
      const Interval stale = stale_range(held, master.narrow(0, segment.shard, segment.count));
      if (stale.empty()) continue;
      const std::int64_t origin =
          stored ? segment.shard - slot.range.offset / width : segment.first;
      problems.push_back({.file = "rank " + std::to_string(rank) + ", trained weights",
                          .place = weights.table.rows[row].name,
                          .found = "bytes " + std::to_string((origin + stale.lo) * width) + " to " +
                                   std::to_string((origin + stale.hi) * width - 1) + " of its " +
                                   std::to_string(slot.range.bytes) + " differ",
                          .expected = "its master weights, rounded"});
    }
  }
}

}  // namespace tessera
