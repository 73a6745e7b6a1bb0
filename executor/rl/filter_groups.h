// DAPO's dynamic sampling (Yu et al. 2025, arXiv:2503.14476, section 3.2): groups whose samples all
// have the same score teach nothing and are replaced by further prompts.
//
// Plain values. Source: verl 0.9.1, trainer/ppo/v1/replay_buffer.py (synchronous mode).
#pragma once

#include <cstdint>

#include "executor/rl/rows.h"

namespace tessera {

/// verl's `algorithm.filter_groups`.
struct FilterGroups {
  bool enable = false;
  std::int64_t max_num_gen_batches = 0;       // generations of a step; 0 = no limit
  std::int64_t max_inflight_gen_batches = 1;  // most prompts at a time, in steps' prompts
};

/// False for a group of several samples with equal scores. (verl asks whether numpy's standard
/// deviation is 0, which rounding hides for scores such as three times 0.1.)
bool has_signal(View scores);

/// How many prompts to generate next: two for each group that was dropped, no more than are allowed
/// at a time. What is left waits for the next time.
class PromptCredit {
 public:
  PromptCredit(std::int64_t prompts_per_step, const FilterGroups& options)
      : most_(prompts_per_step * options.max_inflight_gen_batches) {}

  void dropped(std::int64_t groups) { credit_ += 2 * groups; }
  std::int64_t take();

 private:
  std::int64_t most_, credit_ = 0;
};

}  // namespace tessera
