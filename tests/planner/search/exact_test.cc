// The exact search against every combination (brute_force.h), and what it promises of itself.
#include "planner/search/exact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <thread>

#include "planner/engines/engine.h"
#include "planner/explain/planner.h"
#include "planner/plan/phase_seconds.h"
#include "planner/plan/plan.h"
#include "planner/pricing/iteration.h"
#include "planner/request/candidate.h"
#include "planner/request/describe.h"
#include "planner/request/objective.h"
#include "planner/request/plan_request.h"
#include "planner/request/plan_value.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/search/search.h"
#include "planner/space/layout_space.h"
#include "planner/space/placements.h"
#include "tests/planner/sample_requests.h"
#include "tests/planner/search/brute_force.h"
#include "tests/planner/search/played.h"
#include "tests/planner/search/random_costs.h"

namespace tessera {
namespace {

// True when anything is feasible.
bool expect_equals_brute_force(const SearchProblem& problem, const std::string& what) {
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

template <class T>
void keep_some(std::vector<T>& all, std::size_t most, std::mt19937_64& draw) {
  while (all.size() > most) {
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(draw() % all.size()));
  }
}

// A few of each role's ways on each number of GPUs: up to two batches with up to two choices of
// each of some layouts.
void thin_out(SearchProblem& problem, std::uint64_t salt, std::size_t most) {
  problem.spaces = [all = problem.spaces, salt, most](Role role, int gpus) {
    std::vector<LayoutSpace> kept;
    std::mt19937_64 draw(salt + static_cast<std::uint64_t>(100 * gpus) +
                         static_cast<std::uint64_t>(role));
    std::vector<LayoutSpace> layouts = all(role, gpus);
    for (std::size_t left = most; left > 0 && !layouts.empty();) {
      const auto next = layouts.begin() + static_cast<std::ptrdiff_t>(draw() % layouts.size());
      LayoutSpace& space = kept.emplace_back(*next);
      layouts.erase(next);
      keep_some(space.choices, std::min<std::size_t>(left, 1 + draw() % 2), draw);
      const std::size_t pair = space.choices.size() * (space.limits_apart ? 4 : 2);
      keep_some(space.batches, pair <= left ? 1 + draw() % 2 : 1, draw);
      left -= static_cast<std::size_t>(space.size());
    }
    return kept;
  };
}

TEST(ExactSearch, EqualsBruteForceOnPartsOfTheWholeSpaceOfEngines) {
  std::mt19937_64 engine(20261);
  std::set<std::string> chosen;
  int feasible = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const bool ppo = trial % 3 == 0;
    Workload workload = workload_of(ppo ? "ppo" : "grpo", static_cast<KlPlace>(trial % 2), false);
    workload.prompts_per_step = 16;
    const ClusterSpec cluster = cluster_of(trial % 2 == 0 ? 4 : 2, 2, 1);
    PlanRequest request = request_of(tiny_model(4), workload, cluster);
    request.engine = trial % 4 < 2 ? "any" : "tessera";
    request.traits = traits_of(request.engine);
    request.calibration.fragmentation.value = 0;
    request.calibration.reserve_bytes.value = 0;
    request.memory = MemoryAccuracy{};  // nothing is uncertain
    const auto kib = std::uniform_int_distribution<std::int64_t>(600, 10000)(engine);
    request.cluster.device.memory = Bytes{kib * 1024};
    const Capabilities& table = engine_named(request.engine).capabilities;
    CostEvaluator costs(request);
    SearchProblem problem = search_problem(request, table, costs);
    thin_out(problem, engine(), ppo ? 4 : 8);
    feasible += expect_equals_brute_force(problem, "trial " + std::to_string(trial)) ? 1 : 0;
    for (const Solution& solution : search_exactly(problem).best) {
      for (const auto& [role, candidate] : solution.choice) {
        chosen.insert("zero" + std::to_string(candidate.zero));
        if (candidate.vpp > 1) chosen.insert("vpp");
        if (candidate.sequence_parallel) chosen.insert("sp");
        if (candidate.offload.optimizer) chosen.insert("offload");
        if (candidate.recompute != Recompute::none) chosen.insert("recompute");
      }
    }
  }
  EXPECT_GT(feasible, 100);
  for (const char* each :
       {"offload", "recompute", "sp", "vpp", "zero0", "zero1", "zero2", "zero3"}) {
    EXPECT_TRUE(chosen.contains(each)) << each;
  }
}

// The whole space of verl's Megatron on small clusters, of which every degree is tried by all
// roles.
TEST(ExactSearch, EqualsBruteForceOnPartsOfVerlMegatronsSpace) {
  std::mt19937_64 engine(20260304);
  std::set<std::string> chosen;
  int feasible = 0;
  for (int trial = 0; trial < 120; ++trial) {
    Workload workload = workload_of(trial % 2 == 0 ? "ppo" : "grpo", KlPlace::loss, false);
    workload.prompts_per_step = trial % 5 == 0 ? 12 : 16;  // 12: rounds that counts do not fill
    PlanRequest request =
        request_of(tiny_model(4), workload, cluster_of(trial % 3 == 0 ? 4 : 2, 2, 1));
    request.models.at("actor").spec.dtype = DType::bf16;
    request.engine = "verl-megatron";
    request.traits = traits_of(request.engine);
    request.calibration.fragmentation.value = 0;
    request.calibration.reserve_bytes.value = 0;
    request.memory = MemoryAccuracy{};  // nothing is uncertain
    const auto kib = std::uniform_int_distribution<std::int64_t>(900, 10000)(engine);
    request.cluster.device.memory =
        Bytes{(2048LL << 20) + kib * 1024};  // beside the reshard's bucket
    CostEvaluator costs(request);
    SearchProblem problem =
        search_problem(request, engine_named(request.engine).capabilities, costs);
    thin_out(problem, engine(), trial % 2 == 0 ? 7 : 14);
    if (!expect_equals_brute_force(problem, "trial " + std::to_string(trial))) continue;
    ++feasible;
    const Solution best = search_exactly(problem).best.front();
    const Candidate& actor = best.choice.at(Role::actor);
    for (const auto& [role, candidate] : best.choice) {
      if (role == Role::rollout) continue;
      EXPECT_EQ(candidate.tp, actor.tp);
      EXPECT_EQ(candidate.pp, actor.pp);
      EXPECT_EQ(candidate.vpp, actor.vpp);
    }
    chosen.insert("tp" + std::to_string(actor.tp) + " pp" + std::to_string(actor.pp));
  }
  EXPECT_GT(feasible, 40);
  EXPECT_GT(chosen.size(), 3u);
}

// Sequences that are long enough for Ulysses over all GPUs, whose FSDP cuts over its groups, too.
TEST(ExactSearch, EqualsBruteForceOnVerlsUlyssesOverAllGpus) {
  Workload workload = workload_of("grpo", KlPlace::none, false);
  workload.prompts_per_step = workload.mini_batches = 2;
  workload.samples_per_prompt = 1;
  workload.prompt_tokens = 8192;
  workload.response_tokens = {64, 0, 64};
  ModelSpec model = tiny_model(4);
  model.hidden = 1024;
  model.head_dim = 256;
  model.ffn = 4096;
  model.max_positions = 16384;
  PlanRequest request = request_of(model, workload, cluster_of(4, 1, 1));
  request.engine = "verl";
  request.traits = traits_of(request.engine);
  request.calibration.fragmentation.value = 0;
  request.calibration.reserve_bytes.value = 0;
  request.memory = MemoryAccuracy{};  // nothing is uncertain
  const Capabilities& table = engine_named(request.engine).capabilities;
  std::set<std::string> chosen;
  for (std::int64_t mib = 64; mib < 2048; mib += mib / 8) {
    request.cluster.device.memory = Bytes{(2048 + mib) << 20};  // beside the reshard's bucket
    CostEvaluator costs(request);
    SearchProblem problem = search_problem(request, table, costs);
    problem.policy_lags = {0};
    std::erase_if(problem.placements, rollout_apart);
    if (!expect_equals_brute_force(problem, std::to_string(mib) + " MiB")) continue;
    const Solution best = search_exactly(problem).best.front();
    chosen.insert(describe_layout(best.choice.at(Role::actor)));
  }
  EXPECT_TRUE(std::any_of(chosen.begin(), chosen.end(), [](const std::string& layout) {
    return layout.find("dp1 ulysses4 zero3") != layout.npos;
  }));
}

// One layout of each role on each number of GPUs and one choice, with all its token limits.
void keep_one_layout(SearchProblem& problem, std::uint64_t salt) {
  problem.spaces = [all = problem.spaces, salt](Role role, int gpus) {
    std::mt19937_64 draw(salt + static_cast<std::uint64_t>(100 * gpus) +
                         static_cast<std::uint64_t>(role));
    std::vector<LayoutSpace> layouts = all(role, gpus);
    keep_some(layouts, 1, draw);
    for (LayoutSpace& space : layouts) {
      keep_some(space.choices, 1, draw);
      if (role == Role::rollout) keep_some(space.batches, 2, draw);
    }
    return layouts;
  };
}

TEST(ExactSearch, EqualsBruteForceOverTheTokenLimitsOfEveryCall) {
  std::mt19937_64 engine(20262);
  int feasible = 0, apart = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const bool ppo = trial % 2 == 0;
    Workload workload = workload_of(ppo ? "ppo" : "grpo", static_cast<KlPlace>(trial % 3), false);
    workload.prompts_per_step = trial % 4 < 2 ? 4 : 8;
    workload.mini_batches = 1 + trial % 2;
    PlanRequest request = request_of(tiny_model(4), workload, cluster_of(2, ppo ? 1 : 2, 1));
    request.engine = trial % 3 == 0 ? "any" : "tessera";
    request.traits = traits_of(request.engine);
    request.calibration.fragmentation.value = 0;
    request.calibration.reserve_bytes.value = 0;
    request.memory = MemoryAccuracy{};  // nothing is uncertain
    const auto kib = std::uniform_int_distribution<std::int64_t>(600, 5000)(engine);
    request.cluster.device.memory = Bytes{kib * 1024};
    const Capabilities& table = engine_named(request.engine).capabilities;
    CostEvaluator costs(request);
    SearchProblem problem = search_problem(request, table, costs);
    keep_one_layout(problem, engine());
    feasible += expect_equals_brute_force(problem, "trial " + std::to_string(trial)) ? 1 : 0;
    for (const Solution& solution : search_exactly(problem).best) {
      for (const auto& [role, candidate] : solution.choice) {
        apart += candidate.update_tokens > 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(feasible, 60);
  EXPECT_GT(apart, 20);
}

TEST(ExactSearch, EqualsBruteForceUnderTheCostModelsAndRandomMemories) {
  std::mt19937_64 engine(7);
  for (int trial = 0; trial < 40; ++trial) {
    const bool ppo = trial % 3 == 0;
    Workload workload = workload_of(ppo ? "ppo" : "grpo", static_cast<KlPlace>(trial % 2), false);
    workload.prompts_per_step = 4;
    workload.samples_per_prompt = 1 + trial % 2;
    workload.mini_batches = 1 + trial % 2;
    const int per_node = trial % 5 == 4 ? 8 : (trial % 2 == 0 ? 4 : 2);
    ClusterSpec cluster = cluster_of(per_node, per_node == 2 ? 2 : 1, 1);
    PlanRequest request = request_of(tiny_model(2 + trial % 2), workload, cluster);
    request.calibration.fragmentation.value = 0;
    request.calibration.reserve_bytes.value = 0;
    request.memory = MemoryAccuracy{};  // nothing is uncertain
    const auto kib = std::uniform_int_distribution<std::int64_t>(600, 5000)(engine);
    request.cluster.device.memory = Bytes{kib * 1024};
    const Capabilities& table = engine_named("tessera").capabilities;
    CostEvaluator costs(request);
    SearchProblem problem = search_problem(request, table, costs);
    thin_out(problem, engine(), trial % 4 == 3 ? (ppo ? 9 : 40) : (ppo ? 6 : 16));
    expect_equals_brute_force(problem, "trial " + std::to_string(trial));
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
