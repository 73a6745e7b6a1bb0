#include "planner/space/distinct_limits.h"

#include <cmath>
#include <cstddef>

#include "planner/request/request.h"

namespace tessera {

DistinctLimits::DistinctLimits(const Workload& workload)
    : packing_(workload.response_tokens, workload.prompt_tokens),
      longest_(longest_sequence(workload)) {}

double DistinctLimits::held(std::int64_t count) {
  while (static_cast<std::int64_t>(held_.size()) < count) {
    const auto next = static_cast<std::int64_t>(held_.size()) + 1;
    held_.push_back(packing_.sequences(next * longest_));
  }
  return held_[static_cast<std::size_t>(count) - 1];
}

const std::vector<std::int64_t>& DistinctLimits::of(std::int64_t mini_batch, std::int64_t all) {
  auto [entry, added] = known_.try_emplace({mini_batch, all});
  std::vector<std::int64_t>& counts = entry->second;
  if (!added) return counts;
  const auto parts = [&](std::int64_t sequences, std::int64_t count) {
    return std::ceil(static_cast<double>(sequences) / held(count));
  };
  double trained = 0, scored = 0;
  for (std::int64_t count = 1; counts.empty() || trained > 1 || scored > 1; ++count) {
    const double in_updates = parts(mini_batch, count), in_others = parts(all, count);
    if (!counts.empty() && in_updates >= trained && in_others >= scored) continue;
    counts.push_back(count);
    trained = in_updates;
    scored = in_others;
  }
  return counts;
}

}  // namespace tessera
