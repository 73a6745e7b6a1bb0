// Search problems whose seconds and bytes follow no model (a bound that relies on one would fail),
// and what a search must answer beside an oracle's best of every placement and lag.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "cost_models/spec/units.h"
#include "planner/pricing/iteration.h"
#include "planner/request/candidate.h"
#include "planner/request/describe.h"
#include "planner/request/objective.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/search/exact.h"

namespace tessera {

struct RandomCosts {
  std::uint64_t salt = 0;
  Workload workload;

  // Alike for equal degrees.
  double draw(const Candidate& c, std::uint64_t what, double least, double most) const {
    std::uint64_t x =
        salt + 0x9e3779b97f4a7c15ULL * (what + 1) + static_cast<std::uint64_t>(c.role);
    for (const int part : {c.gpus, c.tp, c.pp, c.view}) {  // splitmix64
      x = (x + static_cast<std::uint64_t>(part)) * 0xbf58476d1ce4e5b9ULL;
      x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
      x ^= x >> 31;
    }
    return least + (most - least) * static_cast<double>(x >> 11) * 0x1.0p-53;
  }

  RoleCost role(const Candidate& candidate) const {
    RoleCost cost;
    for (const Phase phase : phases_of(workload, candidate.role)) {
      cost.seconds[phase] = Seconds{draw(candidate, static_cast<std::uint64_t>(phase), 0.1, 5) /
                                    std::sqrt(candidate.gpus)};
    }
    cost.resident = Bytes{static_cast<std::int64_t>(draw(candidate, 100, 5, 60))};
    cost.peak = cost.resident + Bytes{static_cast<std::int64_t>(draw(candidate, 101, 0, 80))};
    const bool moves = candidate.role == Role::actor || candidate.role == Role::rollout;
    cost.in_reshard =
        cost.resident +
        (moves ? Bytes{static_cast<std::int64_t>(draw(candidate, 102, 0, 60))} : Bytes{});
    return cost;
  }

  Seconds reshard_seconds(const Candidate& actor, const Candidate& rollout, bool shared) const {
    if (shared) return Seconds{draw(actor, 200, 0, 1) + draw(rollout, 201, 0, 1) * actor.tp};
    return seconds_apart({actor.view, busiest_share(actor)}, rollout);
  }

  // As if stages were uneven.
  double busiest_share(const Candidate& actor) const { return draw(actor, 203, 1, 8) / actor.gpus; }

  Seconds seconds_apart(const Evaluator::Senders& from, const Candidate& rollout) const {
    Candidate there = rollout;
    there.view = from.view;
    const double arriving = std::max(draw(rollout, 202, 0, 2), draw(there, 202, 0, 2));
    const double part = draw(rollout, 204, 0, 1);  // of what the fullest rank receives, the mean
    return Seconds{arriving * std::max(1.0, part * rollout.gpus * from.share)};
  }

  void price(SearchProblem& problem) const {
    problem.evaluator.role = [costs = *this](const Candidate& candidate) {
      return costs.role(candidate);
    };
    problem.evaluator.reshard_seconds = [costs = *this](const Candidate& actor,
                                                        const Candidate& rollout, bool shared) {
      return costs.reshard_seconds(actor, rollout, shared);
    };
    problem.evaluator.busiest_share = [costs = *this](const Candidate& actor) {
      return costs.busiest_share(actor);
    };
    problem.evaluator.seconds_apart = [costs = *this](const Evaluator::Senders& from,
                                                      const Candidate& rollout) {
      return costs.seconds_apart(from, rollout);
    };
  }
};

/// Best value of each placement and lag that is feasible.
using OracleValues = std::map<std::pair<std::string, int>, double>;

/// As the oracles count: fewest GPUs first, then the step.
inline double value_in_oracle(const SearchProblem& problem, const Solution& solution) {
  if (problem.objective == Objective::fewest_gpus)
    return solution.step_s.value + 1e6 * solution.gpus();
  return value_of(problem.objective, solution);
}

/// Placements with the rollout apart that the step waits for count as one, which is exact where it
/// is the best of all.
inline void expect_equals_oracle(const SearchProblem& problem, const SearchResult& result,
                                 const OracleValues& oracle, const std::string& what) {
  std::map<std::string, bool> apart;
  for (const Placement& placement : problem.placements) {
    apart[describe(placement)] = rollout_apart(placement);
  }
  double least_apart = std::numeric_limits<double>::infinity(), least_other = least_apart;
  std::size_t expected = 0;
  for (const auto& [key, value] : oracle) {
    const bool counted = !apart.at(key.first) || key.second > 0;
    expected += counted ? 1 : 0;
    double& least = counted ? least_other : least_apart;
    least = std::min(least, value);
  }
  expected += least_apart < std::numeric_limits<double>::infinity() ? 1 : 0;
  ASSERT_EQ(result.best.size(), expected) << what;
  for (const Solution& solution : result.best) {
    const std::string name = describe(solution.placement);
    const double value = value_in_oracle(problem, solution);
    const double best = oracle.at({name, solution.policy_lag});
    if (!apart.at(name) || solution.policy_lag > 0) {
      EXPECT_NEAR(value, best, 1e-9 * best) << what << " " << name;
      continue;
    }
    EXPECT_GE(value, best * (1 - 1e-9)) << what << " " << name;
    const double slack = least_apart <= least_other ? 1e-9 : kApartSlack / (1 - kApartSlack);
    EXPECT_LE(value, least_apart * (1 + slack + 1e-9)) << what << " " << name;
  }
  for (std::size_t i = 1; i < result.best.size(); ++i) {
    EXPECT_LE(value_in_oracle(problem, result.best[i - 1]),
              value_in_oracle(problem, result.best[i]) * (1 + 1e-12))
        << what;
  }
}

}  // namespace tessera
