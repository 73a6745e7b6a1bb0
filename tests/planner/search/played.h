// Oracle of Iteration: a schedule played call by call.
#pragma once

#include <algorithm>
#include <array>

#include "cost_models/spec/units.h"
#include "planner/plan/phase_seconds.h"
#include "planner/search/exact.h"

namespace tessera {

// The step when every call starts as soon as its inputs are there and its block is free.
//
// A rollout apart receives its weights on its own GPUs; with a lag its responses are those of the
// step before, and training begins when the weights have left.
inline Seconds played(const SearchProblem& problem, const Placement& placement, int lag,
                      const PhaseSeconds& seconds) {
  PhaseSeconds end{};
  std::array<Seconds, kRoleCount> free;
  Seconds step;
  const bool apart = std::any_of(placement.begin(), placement.end(), [](const auto& block) {
    return block == std::vector<Role>{Role::rollout};
  });
  for (const ScheduledCall& call : problem.schedule) {
    std::size_t block = 0;
    const Role role = apart && call.phase == Phase::reshard ? Role::rollout : call.role;
    for (std::size_t b = 0; b < placement.size(); ++b) {
      if (std::count(placement[b].begin(), placement[b].end(), role) > 0) block = b;
    }
    Seconds start = free[block];
    for (const Phase phase : call.after) {
      const bool previous = lag > 0 && phase == Phase::gen;
      start = std::max(start, end[previous ? Phase::reshard : phase]);
    }
    end[call.phase] = free[block] = start + seconds[call.phase];
    step = std::max(step, free[block]);
  }
  return step;
}

}  // namespace tessera
