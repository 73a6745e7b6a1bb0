// The exact search over random costs against every combination (brute_force.h), and what it
// promises of itself.
#include "planner/search/exact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "cost_models/documents/stopped.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/pricing/iteration.h"
#include "planner/request/candidate.h"
#include "planner/request/describe.h"
#include "planner/request/objective.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/space/layout_space.h"
#include "planner/space/placements.h"
#include "tests/planner/sample_requests.h"
#include "tests/planner/search/brute_force.h"
#include "tests/planner/search/random_costs.h"

namespace tessera {
namespace {

SearchProblem random_problem(std::mt19937_64& engine) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(engine);
  };
  static constexpr std::array<std::pair<int, int>, 9> kShapes = {
      {{2, 1}, {4, 1}, {8, 1}, {2, 2}, {2, 3}, {6, 1}, {4, 2}, {1, 7}, {1, 9}}};
  const auto [per_node, nodes] = kShapes[static_cast<std::size_t>(pick(0, 8))];
  const bool ppo = pick(0, 1) == 1;
  const Workload workload =
      workload_of(ppo ? "ppo" : "grpo", static_cast<KlPlace>(pick(0, 2)), pick(0, 1) == 1);
  SearchProblem problem;
  problem.cluster = cluster_of(per_node, nodes, 1);
  problem.roles = roles_of(workload);
  problem.schedule = default_schedule(workload);
  problem.placements = all_placements(problem.roles);
  problem.memory_limit = Bytes{pick(60, 400)};
  const auto salt = engine();
  const int options = problem.roles.size() >= 5 ? 2 : (problem.roles.size() == 4 ? 3 : 4);
  const RandomCosts costs{salt, workload};
  problem.spaces = [options, costs](Role role, int gpus) {
    std::vector<LayoutSpace> layouts;
    for (int i = 0; i < options; ++i) {
      const Candidate layout{{.tp = 1 + i % 2, .pp = 1 + i / 2}, role, gpus};
      if (costs.draw(layout, 99, 0, 1) < 0.85)
        layouts.push_back({layout, {{}}, {{}}});  // some missing
    }
    return layouts;
  };
  costs.price(problem);
  problem.fixed_seconds[Phase::adv] = Seconds{0.05};
  return problem;
}

TEST(ExactSearch, EqualsBruteForceOnRandomCostsOfEveryPlacement) {
  std::mt19937_64 engine(20260101);
  int feasible = 0, infeasible = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const SearchProblem problem = random_problem(engine);
    const bool found = expect_equals_brute_force(problem, "trial " + std::to_string(trial));
    ++(found ? feasible : infeasible);
  }
  EXPECT_GT(feasible, 100);
  EXPECT_GT(infeasible, 5);
}

// Wherever it is stopped, what it leaves behind misleads no later search.
TEST(ExactSearch, AStoppedSearchLeavesPricesThatServeTheNext) {
  std::mt19937_64 engine(20260505);
  int stopped = 0, ended = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const SearchProblem problem = random_problem(engine);
    const SearchResult whole = search_exactly(problem);
    FrontStore store;
    for (int after = 1; after < 400; after *= 3) {
      std::stop_source source;
      SearchProblem watched = problem;
      watched.stop = source.get_token();
      int asked = 0;
      watched.evaluator.role = [&](const Candidate& candidate) {
        if (++asked == after) source.request_stop();
        return problem.evaluator.role(candidate);
      };
      try {
        search_exactly(watched, store);
        ++ended;
      } catch (const Stopped&) {
        ++stopped;
      }
    }
    const SearchResult next = search_exactly(problem, store);
    ASSERT_EQ(next.best.size(), whole.best.size()) << trial;
    for (std::size_t i = 0; i < whole.best.size(); ++i) {
      EXPECT_EQ(next.best[i].step_s, whole.best[i].step_s) << trial;
      EXPECT_EQ(describe(next.best[i]), describe(whole.best[i])) << trial;
    }
  }
  EXPECT_GT(stopped, 100);
  EXPECT_GT(ended, 10);
}

// Searches that share their prices and differ in their memory, the smaller one first.
TEST(ExactSearch, EqualsBruteForceUnderTwoLimitsWithSharedPrices) {
  std::mt19937_64 engine(20260404);
  int dearer = 0;
  for (int trial = 0; trial < 200; ++trial) {
    SearchProblem whole = random_problem(engine);
    whole.priced_limit = whole.memory_limit;
    SearchProblem less = whole;
    less.memory_limit = Bytes{whole.memory_limit.value * 3 / 4};
    FrontStore store;
    const SearchResult small = search_exactly(less, store);
    const SearchResult large = search_exactly(whole, store);
    const auto step = [](const SearchResult& result) {
      return result.best.empty() ? kForever : result.best.front().step_s;
    };
    for (const auto& [problem, found] : {std::pair{&less, step(small)}, {&whole, step(large)}}) {
      double least = kForever.value;
      for (const auto& [place, value] : BruteForce(*problem).run()) least = std::min(least, value);
      if (least < kForever.value) {
        EXPECT_NEAR(found.value, least, 1e-9 * least) << trial;
      } else {
        EXPECT_EQ(found, kForever) << trial;
      }
    }
    dearer += step(small) > step(large) ? 1 : 0;
  }
  EXPECT_GT(dearer, 10);
}

// Disaggregated rollouts, in step and one step off, under every objective and smaller budgets.
TEST(ExactSearch, EqualsBruteForceWithTheRolloutApartForEveryObjective) {
  std::mt19937_64 engine(20260202);
  int feasible = 0, apart = 0;
  for (int trial = 0; trial < 400; ++trial) {
    SearchProblem problem = random_problem(engine);
    if (problem.roles.size() >= 5) continue;
    problem.placements = all_placements(problem.roles, true);
    problem.policy_lags = {0, 1};
    problem.objective = static_cast<Objective>(trial % 4);
    if (trial % 3 == 0) problem.gpus = static_cast<int>(problem.cluster.gpus()) / 2 + 1;
    if (!expect_equals_brute_force(problem, "trial " + std::to_string(trial))) continue;
    ++feasible;
    const SearchResult result = search_exactly(problem);
    apart += rollout_apart(result.best.front().placement) ? 1 : 0;
  }
  EXPECT_GT(feasible, 100);
  EXPECT_GT(apart, 10);
}

// Roles of one block that are alike in their degrees, whichever they have: with the reward model's
// own processes or without, the rollout apart or not, under every objective.
TEST(ExactSearch, EqualsBruteForceWhereRolesShareTheirProcessGroups) {
  std::mt19937_64 engine(20260303);
  int feasible = 0, dearer = 0;
  for (int trial = 0; trial < 400; ++trial) {
    SearchProblem problem = random_problem(engine);
    if (problem.roles.size() < 3 || problem.roles.size() > 4) continue;
    problem.placements = all_placements(problem.roles, true);
    problem.policy_lags = {0, 1};
    problem.objective = static_cast<Objective>(trial % 4);
    SearchProblem free = problem;
    for (const Role role : problem.roles) {
      problem.shares_groups[role] =
          role != Role::rollout && (role != Role::reward || trial % 2 == 0);
    }
    if (!expect_equals_brute_force(problem, "trial " + std::to_string(trial))) continue;
    ++feasible;
    const SearchResult shared = search_exactly(problem), apart = search_exactly(free);
    const double value = value_in_oracle(problem, shared.best.front());
    const double least = value_in_oracle(problem, apart.best.front());
    EXPECT_GE(value, least * (1 - 1e-12));
    dearer += value > least * (1 + 1e-9) ? 1 : 0;
  }
  EXPECT_GT(feasible, 60);
  EXPECT_GT(dearer, 10);
}

TEST(ParetoFront, HasTheBestStepOfEveryNumberOfGpusThatImprovesIt) {
  std::mt19937_64 engine(11);
  for (int trial = 0; trial < 40; ++trial) {
    const SearchProblem problem = random_problem(engine);
    std::vector<int> counts;
    for (int n = 1; n <= problem.cluster.gpus(); ++n) counts.push_back(n);
    const auto front = pareto_front(
        problem, counts, [](const SearchProblem& limited) { return search_exactly(limited); });
    double least = std::numeric_limits<double>::infinity();
    std::size_t at = 0;
    for (const int gpus : counts) {
      SearchProblem limited = problem;
      limited.gpus = gpus;
      const SearchResult result = search_exactly(limited);
      if (result.best.empty() || result.best.front().step_s >= least) continue;
      least = result.best.front().step_s;
      ASSERT_LT(at, front.size());
      EXPECT_EQ(front[at].step_s, least);
      EXPECT_EQ(front[at++].gpus(), result.best.front().gpus());
    }
    EXPECT_EQ(at, front.size());
  }
}

TEST(ExactSearch, GivesEqualAnswersEveryTime) {
  std::mt19937_64 engine(5);
  for (int trial = 0; trial < 10; ++trial) {
    const SearchProblem problem = random_problem(engine);
    const SearchResult once = search_exactly(problem), again = search_exactly(problem);
    ASSERT_EQ(once.best.size(), again.best.size());
    for (std::size_t i = 0; i < once.best.size(); ++i) {
      EXPECT_EQ(once.best[i].choice, again.best[i].choice);
      EXPECT_EQ(once.best[i].sizes, again.best[i].sizes);
      EXPECT_EQ(once.best[i].step_s, again.best[i].step_s);
    }
    EXPECT_EQ(once.evaluated, again.evaluated);
    EXPECT_EQ(once.pruned, again.pruned);
  }
}

TEST(ExactSearch, FindsNothingButWhatIsBetterThanTheStepItIsToBeat) {
  std::mt19937_64 engine(6);
  int found = 0;
  for (int trial = 0; trial < 60; ++trial) {
    SearchProblem problem = random_problem(engine);
    problem.objective = static_cast<Objective>(trial % 4);
    const SearchResult all = search_exactly(problem);
    if (all.best.empty()) continue;
    const Solution& best = all.best.front();
    problem.better_than = incumbent_of(best);
    problem.better_than.step_s *= 1 - 1e-9;
    EXPECT_TRUE(search_exactly(problem).best.empty());
    problem.better_than.step_s = best.step_s * (1 + 1e-9);
    const SearchResult again = search_exactly(problem);
    ASSERT_FALSE(again.best.empty());
    EXPECT_EQ(again.best.front().step_s, best.step_s);
    ++found;
  }
  EXPECT_GT(found, 20);
}

TEST(ExactSearch, GivesEqualAnswersOnOneThreadAndOnTwoAtOnce) {
  Workload workload = workload_of("ppo", KlPlace::reward, false);
  workload.prompts_per_step = 64;
  workload.prompt_tokens = 4096;
  workload.response_tokens = {1024, 0.5, 2048};
  const PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 2, 80));
  std::array<Plan, 3> plans;
  const auto plan = [&](Plan& result) {
    Problems problems;
    result = std::get<Plan>(*make_plan(request, problems));
  };
  plan(plans[0]);
  std::thread first(plan, std::ref(plans[1])), second(plan, std::ref(plans[2]));
  first.join();
  second.join();
  EXPECT_EQ(plans[0], plans[1]);
  EXPECT_EQ(plans[0], plans[2]);
}

TEST(Placements, AreTheBellNumbersOfTheRolesWithTheRolloutBesideTheActor) {
  using enum Role;
  EXPECT_EQ(all_placements({actor, rollout}).size(), 1);
  EXPECT_EQ(all_placements({actor, rollout, reference}).size(), 2);
  EXPECT_EQ(all_placements({actor, rollout, critic, reference}).size(), 5);
  const auto all = all_placements({actor, rollout, critic, reference, reward});
  EXPECT_EQ(all.size(), 15);
  EXPECT_EQ(describe(all.front()), "colocated");
  EXPECT_EQ(describe(all.back()), "actor | critic | reference | reward");
  for (const Placement& placement : all) {
    EXPECT_EQ(placement.front()[0], actor);
    EXPECT_EQ(placement.front()[1], rollout);
  }
}

}  // namespace
}  // namespace tessera
