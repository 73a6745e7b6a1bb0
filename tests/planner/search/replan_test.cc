// Re-planning against fresh planning; candidates against the tables of their engines.
#include <gtest/gtest.h>

#include "tests/planner/search/sample_requests.h"
#include "planner/request/objective.h"
#include "planner/request/candidate.h"
#include "planner/space/layout_space.h"
#include "planner/request/request.h"
#include "planner/request/plan_request.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"
#include "planner/engines/engine_check.h"

namespace tessera {
namespace {

PlanRequest ppo_request(const std::string& engine) {
  Workload workload = workload_of("ppo", KlPlace::reward, false);
  workload.prompts_per_step = 64;
  workload.samples_per_prompt = 2;
  workload.prompt_tokens = 1024;
  workload.response_tokens = {1024, 0.5, 2048};
  PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 2, 80));
  request.engine = engine;
  return request;
}

TEST(Replanning, GivesThePlanOfAFreshSearchWhateverWasAskedBefore) {
  const std::vector<std::vector<std::string>> asked = {
      {},
      {"critic.tp=4"},
      {"actor.tp=4", "rollout.tp=2"},
      {},
      {"rollout.dp=4"},
      {"actor.zero=1", "actor.pp=2"},
      {"actor.gpus=8", "critic.gpus=8"},
      {"reference.tokens=6144"},
      {"actor.pp=64"},
      {"placement=actor+reference|critic"},
      {"actor.tp=4"},
      {"actor.cp=2"},
      {"actor.cp=2", "actor.context=ulysses", "critic.cp=4"},
      {"critic.zero=2", "actor.dp_shard=8"},
      {"critic.vpp=2", "critic.offload=optimizer"},
      {"actor.cp=3"},
  };
  const PlanRequest request = ppo_request("tessera");
  Planner planner(request);
  int found = 0, refused = 0;
  for (const auto& words : asked) {
    Problems problems;
    PlanRequest fresh = request;
    fresh.fixed = parse_settings(words, problems);
    const auto again = planner.plan(fresh.fixed, Objective::step_time, problems);
    const auto once = make_plan(fresh, problems);
    ASSERT_TRUE(problems.empty());
    ASSERT_EQ(again->index(), once->index()) << words.size();
    if (std::holds_alternative<Infeasible>(*once)) {
      ++refused;
      continue;
    }
    ++found;
    Plan a = std::get<Plan>(*again), b = std::get<Plan>(*once);
    EXPECT_DOUBLE_EQ(a.prediction.step_s, b.prediction.step_s);
    ASSERT_EQ(a.certificate.runner_up.size(), b.certificate.runner_up.size());
    for (std::size_t i = 0; i < a.certificate.runner_up.size(); ++i) {
      EXPECT_DOUBLE_EQ(a.certificate.runner_up[i].step_s, b.certificate.runner_up[i].step_s);
    }
    a.certificate = b.certificate = {};  // counts differ: prices are kept
    EXPECT_EQ(a, b);
  }
  EXPECT_EQ(found, 14);
  EXPECT_EQ(refused, 2);
}

TEST(Replanning, OfTheWholeSpaceGivesThePlanOfAFreshSearch) {
  PlanRequest request = ppo_request("any");
  request.workload.prompts_per_step = 8;
  request.workload.prompt_tokens = 2048;
  request.cluster.nodes = 1;
  Planner planner(request);
  int found = 0;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"actor.dp_shard=8"}, {"actor.cp=2", "rollout.pp=1"}}) {
    Problems problems;
    PlanRequest fresh = request;
    fresh.fixed = parse_settings(words, problems);
    const auto again = planner.plan(fresh.fixed, Objective::step_time, problems);
    const auto once = make_plan(fresh, problems);
    ASSERT_EQ(again->index(), once->index()) << words.size();
    if (!std::holds_alternative<Plan>(*once)) continue;
    ++found;
    EXPECT_DOUBLE_EQ(std::get<Plan>(*again).prediction.step_s,
                     std::get<Plan>(*once).prediction.step_s);
  }
  EXPECT_EQ(found, 3);
}

// 28 heads, 4 of keys and values; 18 layers, which 4 stages do not divide; experts.
ModelSpec awkward_model() {
  ModelSpec model = tiny_model(18);
  model.family = ModelFamily::qwen3_moe;
  model.query_heads = 28;
  model.kv_heads = 4;
  model.ffn = 0;
  model.moe = MoeSpec{.experts = 8, .experts_per_token = 2, .expert_ffn = 64};
  model.vocab = 1024;
  model.dtype = DType::bf16;
  return model;
}

TEST(Candidates, OfEveryEngineAreWhatItsTableAllows) {
  for (const std::string& engine : engine_names()) {
    for (const bool sparse : {false, true}) {
      Workload workload = workload_of("ppo", KlPlace::reward, true);
      workload.prompts_per_step = 16;
      ModelSpec dense = tiny_model(18);
      dense.query_heads = 12;
      dense.kv_heads = 3;
      PlanRequest request =
          request_of(sparse ? awkward_model() : dense, workload, cluster_of(8, 2, 80));
      const Engine& named = engine_named(engine);
      const Capabilities& table = named.capabilities;
      std::size_t count = 0;
      for (const Role role : table.roles) {
        const ModelSpec model = model_of(request, role);
        for (const int gpus : {1, 2, 4, 8, 16}) {
          for (const Candidate& candidate : enumerate_candidates(request, table, role, gpus)) {
            ++count;
            for (const Problem& problem :
                 outside_capabilities(named, model, role, layout_of(candidate, model.layers))) {
              ADD_FAILURE() << engine << " " << name_of(role) << " " << to_string(problem);
            }
          }
        }
      }
      EXPECT_GT(count, 10U) << engine;
    }
  }
}

// What the table allows is there: the reward model of verl is served, with any tp of a server's.
TEST(Candidates, OfAServedRewardModelHaveTensorParallelism) {
  Workload workload = workload_of("grpo", KlPlace::none, true);
  const PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 1, 80));
  for (const char* engine : {"verl", "verl-megatron"}) {
    const Capabilities& table = engine_named(engine).capabilities;
    int most = 1;
    for (const Candidate& candidate : enumerate_candidates(request, table, Role::reward, 8)) {
      most = std::max(most, candidate.tp);
      EXPECT_EQ(candidate.pp, 1);
      EXPECT_FALSE(candidate.sequence_parallel);
    }
    EXPECT_EQ(most, 8) << engine;
  }
}

TEST(Candidates, ObeyTheLargestDegreesOfATable) {
  const PlanRequest request =
      request_of(llama_8b(), workload_of("grpo", KlPlace::none, false), cluster_of(8, 1, 80));
  Capabilities table = engine_named("tessera").capabilities;
  table.most_tp = 4;
  table.most_pp = 2;
  int tp = 0, pp = 0;
  for (const Candidate& candidate : enumerate_candidates(request, table, Role::actor, 8)) {
    tp = std::max(tp, candidate.tp);
    pp = std::max(pp, candidate.pp);
  }
  EXPECT_EQ(tp, 4);
  EXPECT_EQ(pp, 2);
}

}  // namespace
}  // namespace tessera
