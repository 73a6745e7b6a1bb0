// Generation with DAPO's dynamic sampling: groups without a signal are replaced by further prompts
// until there are as many groups as a step has prompts.
//
// No torch and no ranks here: every rank runs it alike over the same scores. Source: verl 0.9.1,
// trainer/ppo/v1/replay_buffer.ReplayBuffer.sample. Groups that finish together are judged
// together: what verl does while others still run is done here between generations.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "executor/rl/filter_groups.h"
#include "executor/rollout/request_queue.h"

namespace tessera {

/// Sequences in the order (prompt, sample), and what the filter compares of each.
struct ScoredRollout {
  std::vector<Sequence> sequences;
  Array metric;
};

/// Where filtered_rollout takes its groups from.
struct GroupSource {
  /// The next `count` prompts; the step has `numbered` already, with which prompt_index goes on.
  std::function<std::vector<TokenPrompt>(std::int64_t count, std::int32_t numbered)> prompts;
  std::function<ScoredRollout(std::span<const TokenPrompt> prompts)> generate;
  std::function<bool()> stop;         // true: what there is will do, the step is not ended
  std::string run_file = "run.yaml";  // that states the filter, as messages call it
};

struct FilteredRollout {
  std::vector<Sequence> sequences;   // (prompt, sample), prompts numbered from 0
  std::vector<TokenPrompt> prompts;  // of the groups, alike
  Metrics metrics;  // training/filter_groups/{evicted_samples,discarded_surplus_samples}, in groups
                    // as verl counts them; training/num_gen_batches
};

/// Throws Error{check_failed} when max_num_gen_batches generations did not suffice.
FilteredRollout filtered_rollout(const FilterGroups& options, std::int64_t prompts_per_step,
                                 const GroupSource& source);

}  // namespace tessera
