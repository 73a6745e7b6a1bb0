// The order in which ranks read one another's memory: in steps without two readers of one source.
//
// A reader's copies from several peers follow one another on its copy engines, so readers that
// drift meet at one source while another's links idle. Steps avoid that: the executor reads by
// them, the window shows them. Pure functions of metadata, alike on every rank; bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

/// Bytes that ranks read from others, by [source][reader]; the diagonal is 0.
using PullTraffic = std::vector<std::vector<std::int64_t>>;

/// The most that one rank reads, or that is read from one: over the rate of a link, the least time.
std::int64_t busiest_end(const PullTraffic& traffic);

/// Bytes to which a run rounds the lengths of steps.
inline constexpr std::int64_t kPullQuantum = std::int64_t{1} << 20;

/// By reader: from whom (-1 = nobody), and how many bytes are moved.
struct PullStep {
  std::vector<int> source;
  std::vector<std::int64_t> moved;

  std::int64_t longest() const;
};

/// Steps that move all of `traffic`. Their longest parts add up to busiest_end, but for rounding to
/// `quantum` bytes (a preemptive open shop: T. Gonzalez, S. Sahni, J. ACM 23 (1976) 665).
std::vector<PullStep> matched_steps(const PullTraffic& traffic, std::int64_t quantum);

}  // namespace tessera
