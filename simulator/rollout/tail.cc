#include "simulator/rollout/tail.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/rollout/replica.h"

namespace tessera {
namespace {

using Endings = std::vector<std::pair<std::int64_t, std::int64_t>>;  // the time, how many end then

// A sample that says nothing new is left out; of two at one time the later counts.
void put(std::vector<ActiveSample>& samples, const ActiveSample& next) {
  if (!samples.empty() && samples.back().time_ns == next.time_ns) samples.pop_back();
  const bool same = !samples.empty() && samples.back().active == next.active &&
                    samples.back().ended == next.ended;
  if (!same) samples.push_back(next);
}

void add_endings(const ReplicaRollout& replica, Endings& endings) {
  std::int64_t before = 0;
  for (const ActiveSample& sample : replica.samples) {
    if (sample.ended > before) endings.emplace_back(sample.time_ns, sample.ended - before);
    before = sample.ended;
  }
}

// When so many have ended.
std::int64_t time_of(const Endings& endings, std::int64_t count) {
  std::int64_t ended = 0;
  for (const auto& [time_ns, number] : endings) {
    ended += number;
    if (ended >= count) return time_ns;
  }
  return 0;
}

RolloutTail tail_of(std::span<const ReplicaRollout> replicas) {
  RolloutTail tail{.step = replicas.front().step,
                   .start_ns = replicas.front().samples.front().time_ns};
  Endings endings;
  for (const ReplicaRollout& replica : replicas) {
    add_endings(replica, endings);
    tail.sequences += replica.samples.back().ended;
    tail.end_ns = std::max(tail.end_ns, replica.samples.back().time_ns);
  }
  std::sort(endings.begin(), endings.end());
  tail.half_ns = time_of(endings, (tail.sequences + 1) / 2);
  tail.most_ns = time_of(endings, (9 * tail.sequences + 9) / 10);
  return tail;
}

}  // namespace

std::vector<ActiveSample> active_samples(std::span<const RolloutSegment> segments,
                                         std::int64_t call_ns, std::int64_t first_ns) {
  const auto at = [&](double seconds) { return first_ns + std::llround(seconds * 1e9); };
  std::vector<ActiveSample> samples{{.time_ns = call_ns}};
  std::int64_t ended = 0;
  for (const RolloutSegment& segment : segments) {
    put(samples, {at(segment.start_s), segment.active, ended});
    ended += segment.ended;
  }
  if (!segments.empty()) put(samples, {at(segments.back().end_s), 0, ended});
  return samples;
}

double RolloutTail::share() const {
  return end_ns > start_ns
             ? static_cast<double>(end_ns - most_ns) / static_cast<double>(end_ns - start_ns)
             : 0;
}

std::vector<RolloutTail> rollout_tails(std::span<const ReplicaRollout> rollout) {
  std::vector<RolloutTail> tails;
  for (std::size_t first = 0; first < rollout.size();) {
    std::size_t last = first;
    while (last < rollout.size() && rollout[last].step == rollout[first].step) ++last;
    tails.push_back(tail_of(rollout.subspan(first, last - first)));
    first = last;
  }
  return tails;
}

}  // namespace tessera
