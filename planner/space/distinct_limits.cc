#include "planner/space/distinct_limits.h"

#include <cmath>
#include <cstddef>

#include "planner/request/request.h"

namespace tessera {

DistinctLimits::DistinctLimits(const Workload& workload)
    : packing_(workload.response_tokens, workload.prompt_tokens),
      few_(workload.response_tokens, workload.prompt_tokens),
      longest_(longest_sequence(workload)) {}

namespace {

constexpr std::int64_t kParts = 4;  // of a longest sequence

// The limit after one of so many parts.
std::int64_t next_parts(std::int64_t parts) {
  if (parts < 2 * kParts) return parts + 1;
  return parts + (parts < 4 * kParts ? 2 : kParts);
}

}  // namespace

const DistinctLimits::Limit& DistinctLimits::limit(std::size_t index) {
  while (limits_.size() <= index) {
    parts_ = limits_.empty() ? kParts : next_parts(parts_);
    const std::int64_t tokens = (parts_ * longest_ + kParts - 1) / kParts;
    limits_.push_back({tokens, packing_.sequences(tokens)});
  }
  return limits_[index];
}

double DistinctLimits::parts(std::int64_t sequences, int replicas, const Limit& limit) {
  const auto count = static_cast<double>(sequences);
  const DealtSequences dealt{count, replicas};
  if (few_.are(dealt)) return few_.micro_batches(dealt, limit.tokens);
  return packing_.micro_batches(count, replicas, limit.held);
}

const std::vector<std::int64_t>& DistinctLimits::of(std::int64_t mini_batch, std::int64_t all,
                                                    int replicas, std::int64_t most) {
  auto [entry, added] = known_.try_emplace({mini_batch, all, replicas, most});
  std::vector<std::int64_t>& tokens = entry->second;
  if (!added) return tokens;
  double trained = 0, scored = 0;
  for (std::size_t index = 0; tokens.empty() || trained > 1 || scored > 1; ++index) {
    const Limit& next = limit(index);
    if (!tokens.empty() && next.tokens > most) break;
    const double in_updates = parts(mini_batch, replicas, next);
    const double in_others = parts(all, replicas, next);
    if (!tokens.empty() && in_updates >= trained && in_others >= scored) continue;
    tokens.push_back(next.tokens);
    trained = in_updates;
    scored = in_others;
  }
  return tokens;
}

}  // namespace tessera
