// Oracle of the exact search: every placement, split and combination of candidates, none left out,
// timed by playing the schedule call by call.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/pricing/iteration.h"
#include "planner/request/describe.h"
#include "planner/request/solution.h"
#include "planner/search/exact.h"
#include "planner/space/place_pools.h"
#include "tests/planner/search/played.h"
#include "tests/planner/search/random_costs.h"

namespace tessera {

class BruteForce {
 public:
  explicit BruteForce(const SearchProblem& problem) : problem_(problem) {}

  // Best value of each placement and lag.
  OracleValues run() {
    for (const Placement& placement : problem_.placements) {
      const bool apart = rollout_apart(placement);
      for (const int lag : apart ? problem_.policy_lags : std::vector<int>{0}) {
        placement_ = &placement;
        lag_ = lag;
        sizes_.assign(placement.size(), 0);
        best_ = std::numeric_limits<double>::infinity();
        choose_size(0,
                    problem_.gpus > 0 ? problem_.gpus : static_cast<int>(problem_.cluster.gpus()));
        if (best_ < std::numeric_limits<double>::infinity())
          result_[{describe(placement), lag}] = best_;
      }
    }
    return result_;
  }

 private:
  struct Priced {
    Candidate candidate;
    RoleCost cost;
  };

  const std::vector<Priced>& priced(Role role, int gpus) {
    auto [entry, added] = priced_.try_emplace({role, gpus});
    if (added) {
      for (const Candidate& candidate : candidates_of(problem_.spaces(role, gpus))) {
        entry->second.push_back({candidate, problem_.evaluator.role(candidate)});
      }
    }
    return entry->second;
  }

  void choose_size(std::size_t block, int left) {
    if (block == sizes_.size()) {
      if (place_blocks(sizes_, problem_.cluster).empty()) return;
      chosen_.clear();
      choose_candidate(0);
      return;
    }
    for (const int size : block_sizes(problem_.cluster)) {
      if (size > left) continue;
      sizes_[block] = size;
      choose_size(block + 1, left - size);
    }
  }

  std::size_t block_of(Role role) const {
    for (std::size_t b = 0; b < placement_->size(); ++b) {
      const auto& roles = (*placement_)[b];
      if (std::find(roles.begin(), roles.end(), role) != roles.end()) return b;
    }
    return 0;
  }

  void choose_candidate(std::size_t index) {
    if (index == problem_.roles.size()) return judge();
    const Role role = problem_.roles[index];
    for (const Priced& option : priced(role, sizes_[block_of(role)])) {
      chosen_.push_back(&option);
      choose_candidate(index + 1);
      chosen_.pop_back();
    }
  }

  // Roles of one block that share process groups have them for the same degrees.
  bool groups_agree() const {
    for (const Priced* one : chosen_) {
      for (const Priced* other : chosen_) {
        const Candidate &a = one->candidate, &b = other->candidate;
        if (!problem_.shares_groups[a.role] || !problem_.shares_groups[b.role]) continue;
        if (block_of(a.role) != block_of(b.role)) continue;
        if (a.tp != b.tp || a.pp != b.pp || a.vpp != b.vpp || a.cp != b.cp) return false;
        if (a.ep != b.ep || a.etp != b.etp) return false;
      }
    }
    return true;
  }

  void judge() {
    if (!groups_agree()) return;
    for (std::size_t b = 0; b < sizes_.size(); ++b) {
      // In each role's worst phase the others rest; in the reshard actor and rollout are both
      // awake.
      Bytes resting, most, in_reshard;
      for (const Priced* option : chosen_) {
        if (block_of(option->candidate.role) == b) resting += option->cost.resident;
      }
      in_reshard = resting;
      for (const Priced* option : chosen_) {
        if (block_of(option->candidate.role) != b) continue;
        most = std::max(most, resting - option->cost.resident + option->cost.peak);
        in_reshard += option->cost.in_reshard - option->cost.resident;
      }
      if (std::max(most, in_reshard) > problem_.memory_limit) return;
    }
    PhaseSeconds seconds = problem_.fixed_seconds;
    const Candidate *actor = nullptr, *rollout = nullptr;
    for (const Priced* option : chosen_) {
      seconds += option->cost.seconds;
      if (option->candidate.role == Role::actor) actor = &option->candidate;
      if (option->candidate.role == Role::rollout) rollout = &option->candidate;
    }
    if (rollout != nullptr) {
      seconds[Phase::reshard] +=
          problem_.evaluator.reshard_seconds(*actor, *rollout, !rollout_apart(*placement_));
    }
    const double step = played(problem_, *placement_, lag_, seconds).value;
    int gpus = 0;
    for (const int size : sizes_) gpus += size;
    switch (problem_.objective) {
      case Objective::step_time:
        best_ = std::min(best_, step);
        break;
      case Objective::tokens_per_gpu:
      case Objective::cost:
        best_ = std::min(best_, step * gpus);
        break;
      case Objective::fewest_gpus:  // by GPUs, then by step
        best_ = std::min(best_, gpus * 1e6 + step);
        break;
    }
  }

  const SearchProblem& problem_;
  const Placement* placement_ = nullptr;
  std::vector<int> sizes_;
  std::map<std::pair<Role, int>, std::vector<Priced>> priced_;
  std::vector<const Priced*> chosen_;
  int lag_ = 0;
  OracleValues result_;
  double best_ = std::numeric_limits<double>::infinity();
};

// The search finds what every combination gives, in seconds that its calls take when they are
// played. True when anything is feasible.
inline bool expect_equals_brute_force(const SearchProblem& problem, const std::string& what) {
  const auto oracle = BruteForce(problem).run();
  const SearchResult result = search_exactly(problem);
  expect_equals_oracle(problem, result, oracle, what);
  for (const Solution& solution : result.best) {
    EXPECT_NEAR(played(problem, solution.placement, solution.policy_lag, solution.seconds),
                solution.step_s, 1e-9 * solution.step_s)
        << what;
  }
  return !oracle.empty();
}

}  // namespace tessera
