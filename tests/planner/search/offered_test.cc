// The winner against everything that the tool itself offers beside it: plans that a certificate
// lists, and answers to settings that a user fixes.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "planner/engines/engine.h"
#include "planner/plan/plan_fields.h"
#include "planner/space/divisors.h"
#include "tests/planner/offered/checks.h"
#include "tests/planner/offered/random_problems.h"
#include "tests/planner/planned.h"

namespace tessera {
namespace {

struct Asked {
  const char *model, *cluster, *workload, *engine;
};

PlanRequest request_of(const Asked& asked) {
  Problems problems;
  PlanRequest request = request_for(asked.cluster);
  request.models["actor"] = {*read_model_spec(asked.model, problems), asked.model, ""};
  request.workload = *read_workload(asked.workload, problems);
  request.engine = asked.engine;
  EXPECT_TRUE(problems.empty());
  return request;
}

// Requests whose winners once took longer than plans listed beside them, by up to 2 %: limits that
// only plans already found were tried with decided.
const Asked kAsked[] = {
    {"qwen2.5-32b", "h800-64", "ppo-7b-1k", "verl"},
    {"qwen2.5-7b", "h800-8", "grpo-7b-1k", "verl"},
    {"qwen2.5-7b", "h100-64", "ppo-7b-1k", "tessera"},
    {"llama3.1-8b", "h200-8", "ppo-7b-1k", "tessera"},
    {"qwen3-30b-a3b", "h100-64", "grpo-7b-1k", "any"},
    {"llama3.1-70b", "h100-64", "grpo-7b-1k", "verl-megatron"},
};

TEST(Offered, NoListedPlanIsBetterThanTheWinner) {
  for (const Asked& asked : kAsked) {
    const Plan plan = planned(request_of(asked));
    ASSERT_FALSE(plan.certificate.runner_up.empty()) << asked.model;
    for (const RunnerUp& other : plan.certificate.runner_up) {
      EXPECT_GE(other.step_s, plan.prediction.step_s * (1 - 1e-9))
          << asked.model << " " << asked.engine << ": " << other.description;
    }
  }
}

// One or two settings about limits and layouts.
std::vector<std::string> random_settings(std::mt19937& random) {
  const auto pick = [&](const std::vector<std::string>& words) {
    return words[std::uniform_int_distribution<std::size_t>(0, words.size() - 1)(random)];
  };
  std::vector<std::string> words;
  const std::string role = pick({"actor", "reference"});
  words.push_back(role +
                  ".tokens=" + std::to_string(std::uniform_int_distribution(2048, 65536)(random)));
  words.push_back(pick({"actor.tp=1", "actor.tp=2", "actor.tp=4", "rollout.tp=2", "rollout.tp=4",
                        "actor.recompute=full", "actor.recompute=none"}));
  return words;
}

TEST(Offered, NoFixedSettingLeadsToABetterPlan) {
  std::mt19937 random(11);
  int answered = 0;
  for (const Asked& asked : kAsked) {
    const PlanRequest request = request_of(asked);
    const Plan best = planned(request);
    Planner planner(request);
    for (int round = 0; round < 12; ++round) {
      Problems problems;
      const std::vector<std::string> words = random_settings(random);
      const auto outcome =
          planner.plan(parse_settings(words, problems), Objective::step_time, problems);
      if (!outcome || !std::holds_alternative<Plan>(*outcome)) continue;
      ++answered;
      EXPECT_GE(std::get<Plan>(*outcome).prediction.step_s,
                best.prediction.step_s * (1 - best.certificate.gap - 1e-9))
          << asked.model << " " << asked.engine << ": " << words[0] << " " << words[1];
    }
  }
  EXPECT_GT(answered, 20);
}

// Training alone of sequences that no number of replicas deals out to all GPUs: plans with
// `actor.cp` of 2 and 3, whose parts are shorter than 2 Ki tokens, once beat these by 24 and 19 %.
TEST(Offered, NoContextDegreeIsBetterThanTheWinner) {
  struct Case {
    const char *model, *cluster;
    std::int64_t nodes, prompts, prompt_tokens;
    LengthSpec responses;
    std::int64_t mini_batches;
  };
  for (const Case& one : {Case{"phi4", "verl-h20", 4, 48, 2048, {1024, 0, 1024}, 2},
                          Case{"qwen3-32b", "h20-64", 3, 256, 128, {256, 1, 1024}, 8}}) {
    PlanRequest request = request_for(one.cluster);
    Problems problems;
    request.models["actor"] = {*read_model_spec(one.model, problems), one.model, ""};
    request.cluster.nodes = one.nodes;
    request.workload = workload_of("grpo", KlPlace::none, false);
    request.workload.prompts_per_step = one.prompts;
    request.workload.samples_per_prompt = 1;
    request.workload.prompt_tokens = one.prompt_tokens;
    request.workload.response_tokens = one.responses;
    request.workload.mini_batches = one.mini_batches;
    const std::optional<PlanRequest> training = part_for_engine(request, "megatron");
    ASSERT_TRUE(training) << one.model;
    const Plan best = planned(*training);
    Planner planner(*training);
    int answered = 0;
    for (const int cp : divisors(static_cast<int>(request.cluster.gpus()))) {
      const std::vector<std::string> words = {"actor.cp=" + std::to_string(cp)};
      const auto outcome =
          planner.plan(parse_settings(words, problems), Objective::step_time, problems);
      if (!outcome || !std::holds_alternative<Plan>(*outcome)) continue;
      ++answered;
      EXPECT_GE(std::get<Plan>(*outcome).prediction.step_s,
                best.prediction.step_s * (1 - best.certificate.gap - 1e-9))
          << one.model << " " << words[0];
    }
    EXPECT_GE(answered, 3) << one.model;
  }
}

// Requests for any engine that another engine's own plan once beat, by 1 to 11 %.
TEST(Offered, AnyEngineIsNoSlowerThanANamedOne) {
  struct Case {
    const char *model, *cluster, *algorithm;
    std::int64_t prompts, prompt_tokens, response_tokens, mini_batches;
    Objective objective;
  };
  std::vector<std::string> winners;
  for (const Case& one : std::vector<Case>{
           {"moonlight-16b-a3b", "selene-a100", "ppo", 96, 2048, 3000, 8, Objective::step_time},
           {"llama2-70b", "selene-a100", "ppo", 128, 128, 3000, 8, Objective::cost},
           {"qwen2.5-vl-7b", "b200-8", "ppo", 48, 2048, 1024, 4, Objective::cost}}) {
    PlanRequest request = request_for(one.cluster);
    Problems problems;
    request.models["actor"] = {*read_model_spec(one.model, problems), one.model, ""};
    request.cluster.nodes = std::min<std::int64_t>(request.cluster.nodes, 2);
    request.workload = workload_of(one.algorithm, KlPlace::reward, false);
    request.workload.prompts_per_step = one.prompts;
    request.workload.samples_per_prompt = 1;
    request.workload.prompt_tokens = one.prompt_tokens;
    const auto tokens = static_cast<double>(one.response_tokens);
    request.workload.response_tokens = {tokens, 0, one.response_tokens};
    request.workload.mini_batches = one.mini_batches;
    request.objective = one.objective;
    request.engine = "any";
    const Plan best = planned(request);
    winners.push_back(best.engine);
    for (const char* engine : {"tessera", "verl", "verl-megatron"}) {
      request.engine = engine;
      Problems none;
      const auto outcome = make_plan(request, none);
      const Plan* const own = outcome ? std::get_if<Plan>(&*outcome) : nullptr;
      if (own == nullptr) continue;
      EXPECT_GE(own->certificate.value, best.certificate.lower_bound * (1 - 1e-9))
          << one.model << " " << engine;
    }
  }
  // Not the space that no engine has alone.
  EXPECT_TRUE(std::any_of(winners.begin(), winners.end(),
                          [](const std::string& engine) { return engine != "any"; }));
}

// A sample of what benchmarks/offered_plans.cc tries. What a certificate says is left open may
// beat a plan, and does not here.
TEST(Offered, RandomProblemsHaveNothingBetterBesideThem) {
  Findings all;
  for (const std::uint64_t seed : {5, 6, 7, 9, 10, 12, 13, 14, 1023, 1035}) {
    std::mt19937_64 random(seed);
    const RandomProblem problem = random_problem(random, 2);
    const Findings found =
        check_offered(problem.request, {.fixes = 12, .whole = 1, .draws = 8}, random);
    for (const Violation& each : found.violations) {
      ADD_FAILURE() << seed << ": " << problem.told << ": " << each.check << " by " << each.by
                    << ": " << each.found;
    }
    all += found;
  }
  EXPECT_GT(all.plans, 4);
  EXPECT_GT(all.fixed, 40);
  EXPECT_GT(all.neighbours, 2000);
}

}  // namespace
}  // namespace tessera
