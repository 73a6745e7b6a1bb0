#include "executor/loop/group_filter.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

struct Group {
  TokenPrompt prompt;
  std::vector<Sequence> sequences;
  Array metric;
};

std::vector<Group> groups_of(std::span<const TokenPrompt> prompts, ScoredRollout rollout) {
  std::vector<Group> groups;
  std::size_t next = 0;
  for (const TokenPrompt& prompt : prompts) {
    Group group{.prompt = prompt};
    for (; next < rollout.sequences.size() &&
           rollout.sequences[next].prompt_index == prompt.prompt_index;
         ++next) {
      group.sequences.push_back(std::move(rollout.sequences[next]));
      group.metric.push_back(rollout.metric[next]);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

[[noreturn]] void give_up(const GroupSource& source, std::int64_t generations, std::size_t kept,
                          std::int64_t wanted) {
  throw Error(
      ExitCode::check_failed,
      {Problem{.file = source.run_file,
               .place = "algorithm.filter_groups.max_num_gen_batches",
               .found = std::to_string(kept) + " groups with different scores after " +
                        std::to_string(generations) + " generations",
               .expected = std::to_string(wanted) + ", the prompts of a step",
               .hint = "prompts that are neither too easy nor too hard, or a higher limit"}});
}

/// The first groups, numbered from 0.
FilteredRollout joined(std::vector<Group> groups, std::int64_t wanted) {
  FilteredRollout result;
  groups.resize(std::min(groups.size(), static_cast<std::size_t>(wanted)));
  for (Group& group : groups) {
    const auto number = static_cast<std::int32_t>(result.prompts.size());
    group.prompt.prompt_index = number;
    for (Sequence& sequence : group.sequences) {
      sequence.prompt_index = number;
      result.sequences.push_back(std::move(sequence));
    }
    result.prompts.push_back(std::move(group.prompt));
  }
  return result;
}

}  // namespace

FilteredRollout filtered_rollout(const FilterGroups& options, std::int64_t prompts_per_step,
                                 const GroupSource& source) {
  PromptCredit credit(prompts_per_step, options);
  std::vector<Group> kept, evicted;
  std::int64_t generations = 0;
  std::int32_t numbered = 0;
  bool stopped = false;
  for (std::int64_t count = prompts_per_step;; count = credit.take()) {
    const std::vector<TokenPrompt> prompts = source.prompts(count, numbered);
    numbered += static_cast<std::int32_t>(prompts.size());
    const std::size_t before = evicted.size();
    for (Group& group : groups_of(prompts, source.generate(prompts))) {
      (has_signal(group.metric) ? kept : evicted).push_back(std::move(group));
    }
    ++generations;
    credit.dropped(static_cast<std::int64_t>(evicted.size() - before));
    if (static_cast<std::int64_t>(kept.size()) >= prompts_per_step) break;
    stopped = source.stop();
    if (stopped) break;
    if (options.max_num_gen_batches > 0 && generations >= options.max_num_gen_batches) {
      give_up(source, generations, kept.size(), prompts_per_step);
    }
  }
  const auto surplus = static_cast<std::int64_t>(kept.size()) - prompts_per_step;
  const auto dropped = static_cast<double>(evicted.size());
  if (stopped) std::move(evicted.begin(), evicted.end(), std::back_inserter(kept));
  FilteredRollout result = joined(std::move(kept), prompts_per_step);
  result.metrics = {{"training/filter_groups/evicted_samples", dropped},
                    {"training/filter_groups/discarded_surplus_samples",
                     static_cast<double>(std::max<std::int64_t>(0, surplus))},
                    {"training/num_gen_batches", static_cast<double>(generations)}};
  return result;
}

}  // namespace tessera
