// Rules of thumb of practice beside what the cost models say about each of them.
//
// Pure functions. The ladder is what practice tries, in order, when memory runs out (lower rollout
// TP with more micro-DP, offload, recompute); every rung is the plan with that one change, all else
// as it is, so that it tells what the change itself saves and costs.
#pragma once

#include <string>
#include <vector>

#include "planner/request/request.h"

namespace tessera {

struct Plan;

struct Rung {
  std::string what;                // "rollout TP 4 -> 2, more micro-DP"
  std::vector<std::string> words;  // as --fix reads them
  Role role = Role::actor;         // that changes
  bool possible = false;           // the engine and model admit it, and it fits
  double step_s = 0;
  std::int64_t peak_bytes = 0;        // of the fullest rank, whichever role fills it
  std::int64_t role_saves_bytes = 0;  // of the role's own fullest phase; below 0: it needs more
  std::string why;                    // not possible: the first reason
};

struct Hint {
  std::string advice, source;
  std::string verdict;  // what the plan's own numbers say to it
};

struct Advice {
  double step_s = 0;
  std::int64_t peak_bytes = 0, limit_bytes = 0;  // of the plan
  std::vector<Rung> ladder;
  std::vector<Hint> hints;  // by cluster size and scenario
};

Advice advice_for(const Plan& plan, const PlanRequest& request);

std::string describe(const Advice& advice);
std::string to_json(const Advice& advice);

}  // namespace tessera
