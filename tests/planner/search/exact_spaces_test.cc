// The exact search over parts of engines' own spaces against every combination (brute_force.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "planner/engines/engine.h"
#include "planner/pricing/iteration.h"
#include "planner/request/candidate.h"
#include "planner/request/describe.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/search/exact.h"
#include "planner/search/search.h"
#include "planner/space/layout_space.h"
#include "tests/planner/sample_requests.h"
#include "tests/planner/search/brute_force.h"

namespace tessera {
namespace {

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

// What a rollout with GPUs of its own takes at least is known from its best layouts on each number
// of GPUs: the others are not priced for it.
TEST(ExactSearch, PricesFewLayoutsOfARolloutOnItsOwnGpus) {
  Workload workload = workload_of("grpo", KlPlace::loss, false);
  workload.prompts_per_step = 64;
  workload.prompt_tokens = 512;
  workload.response_tokens = {512, 0, 512};
  const PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 16, 80));
  CostEvaluator costs(request);
  SearchProblem problem = search_problem(request, engine_named("tessera").capabilities, costs);
  std::erase_if(problem.placements,
                [](const Placement& placement) { return !rollout_apart(placement); });
  problem.policy_lags = {0};
  std::map<int, std::set<Degrees>> priced;  // by GPUs
  problem.evaluator.role = [&, all = problem.evaluator.role](const Candidate& candidate) {
    if (candidate.role == Role::rollout) priced[candidate.gpus].insert(candidate.degrees());
    return all(candidate);
  };
  ASSERT_FALSE(search_exactly(problem).best.empty());
  std::size_t layouts = 0, all = 0;
  for (const auto& [gpus, degrees] : priced) {
    layouts += degrees.size();
    all += problem.spaces(Role::rollout, gpus).size();
  }
  EXPECT_GT(layouts, 0u);
  EXPECT_LT(4 * layouts, 3 * all);
}

// Of a reference that shares its GPUs with nothing only layouts that may be quickest are priced; of
// an actor's layout only what holds so little, and takes so short, that it may be part of the plan.
TEST(ExactSearch, PricesFewCandidatesThatOthersBeat) {
  Workload workload = workload_of("grpo", KlPlace::loss, false);
  workload.prompts_per_step = 64;
  workload.prompt_tokens = 512;
  workload.response_tokens = {512, 0, 512};
  const PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 16, 80));
  CostEvaluator costs(request);
  SearchProblem problem = search_problem(request, engine_named("tessera").capabilities, costs);
  problem.placements = {{{Role::actor, Role::rollout}, {Role::reference}}};
  using Choice = std::tuple<int, Recompute, Offload>;
  std::map<std::pair<int, Degrees>, std::set<Choice>> actors;
  std::map<int, std::set<Degrees>> references;  // by GPUs
  problem.evaluator.role = [&, all = problem.evaluator.role](const Candidate& candidate) {
    if (candidate.role == Role::reference) references[candidate.gpus].insert(candidate.degrees());
    if (candidate.role == Role::actor) {
      actors[{candidate.gpus, candidate.degrees()}].insert(
          {candidate.zero, candidate.recompute, candidate.offload});
    }
    return all(candidate);
  };
  ASSERT_FALSE(search_exactly(problem).best.empty());
  std::size_t layouts = 0, all_layouts = 0;
  for (const auto& [gpus, degrees] : references) {
    layouts += degrees.size();
    all_layouts += problem.spaces(Role::reference, gpus).size();
  }
  EXPECT_GT(layouts, 0u);
  EXPECT_LT(20 * layouts, all_layouts);
  std::size_t choices = 0, all_choices = 0;
  for (const auto& [layout, own] : actors) {
    choices += own.size();
    for (const LayoutSpace& space : problem.spaces(Role::actor, layout.first)) {
      if (space.layout.degrees() == layout.second) all_choices += space.choices.size();
    }
  }
  EXPECT_GT(choices, 0u);
  EXPECT_LT(4 * choices, all_choices);
}

}  // namespace
}  // namespace tessera
