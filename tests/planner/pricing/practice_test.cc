// Oracle: scripts that are known to run (verl docs/perf/device_tuning.rst, docs/perf/dpsk.md and
// examples/tuning): GRPO, n = 5, gradient checkpointing, parameters and optimizer offloaded. Limits
// are theirs; sequences have the lengths of the data set (gsm8k) where the script's are upper
// limits.
#include <gtest/gtest.h>

#include <cstdio>

#include "planner/engines/engine.h"
#include "planner/pricing/fixed.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "tests/planner/sample_requests.h"

namespace tessera {
namespace {

ModelSpec preset(const char* name) {
  Problems problems;
  return read_model_spec(name, problems).value_or(ModelSpec{});
}

ModelSpec qwen2_5_14b() {
  ModelSpec model = preset("qwen2-7b");
  model.layers = 48;
  model.hidden = 5120;
  model.query_heads = 40;
  model.kv_heads = 8;
  model.ffn = 13824;
  return model;
}

struct Script {
  const char* name;
  ModelSpec model;
  const char* device;  // calibration
  double memory_gib;
  int gpus_per_node, nodes;
  const char* engine;
  std::int64_t prompt, response, most;  // tokens
  Candidate actor, rollout;
};

PlanRequest request_of(const Script& script) {
  Workload workload = workload_of("grpo", KlPlace::loss, false);
  workload.prompts_per_step = 768;
  workload.samples_per_prompt = 5;
  workload.prompt_tokens = script.prompt;
  workload.response_tokens = {static_cast<double>(script.response), 0.5, script.most};
  PlanRequest request =
      request_of(script.model, workload,
                 cluster_of(script.gpus_per_node, script.nodes, script.memory_gib), script.device);
  request.engine = script.engine;
  request.traits = traits_of(script.engine);
  return request;
}

// FSDP over all GPUs, `sequences` per micro-batch.
Candidate fsdp(int gpus, std::int64_t tokens) {
  Candidate actor{{.dp = gpus}, Role::actor, gpus, 3, tokens};
  actor.dp_shard = gpus;
  actor.recompute = Recompute::full;
  actor.offload = {true, true, true};
  return actor;
}

Candidate megatron(int tp, int pp, int ep, std::int64_t tokens) {
  Candidate actor{{.tp = tp, .pp = pp}, Role::actor, tp * pp, 1, tokens};
  actor.ep = ep;
  actor.sequence_parallel = tp > 1;
  actor.recompute = Recompute::full;
  actor.offload = {true, true, true};
  return actor;
}

Candidate rollout(int gpus, int tp, std::int64_t slots) {
  Candidate candidate{{.tp = tp, .dp = gpus / tp}, Role::rollout, gpus, 0, 8192, slots};
  candidate.offload.parameters = true;
  return candidate;
}

std::vector<Script> scripts() {
  return {
      {"7B on 2 x H800, FSDP, micro-batch 16, rollout TP2", preset("qwen2-7b"), "h800", 80, 2, 1,
       "verl", 160, 250, 1024, fsdp(2, 16 * std::int64_t{410}), rollout(2, 2, 256)},
      {"14B on 4 x H800, FSDP, micro-batch 16, rollout TP4", qwen2_5_14b(), "h800", 80, 4, 1,
       "verl", 160, 250, 1024, fsdp(4, 16 * std::int64_t{410}), rollout(4, 4, 256)},
      {"32B on 8 x H20, Megatron TP8, micro-batch 1, rollout TP8", preset("qwen2.5-32b"), "h20", 96,
       8, 1, "verl-megatron", 2048, 3000, 6144, megatron(8, 1, 1, 8192), rollout(8, 8, 128)},
      {"70B on 32 x H800, FSDP, rollout TP8", preset("llama3.1-70b"), "h800", 80, 8, 4, "verl",
       1024, 1024, 2048, fsdp(32, 3072), rollout(32, 8, 64)},
      {"235B on 32 x H20, Megatron TP4 PP8 EP4, optimizer on the CPU", preset("qwen3-235b-a22b"),
       "h20", 96, 8, 4, "megatron", 1024, 1024, 2048, megatron(4, 8, 4, 3072), rollout(32, 8, 64)},
      {"671B on 96 x H20, Megatron TP8 PP12 EP8, optimizer on the CPU",
       preset("deepseek-v3"),
       "h20",
       96,
       8,
       12,
       "megatron",
       1024,
       1960,
       4096,
       megatron(8, 12, 8, 5120),
       {}},
  };
}

TEST(MemoryFit, AcceptsEveryScriptThatIsKnownToRun) {
  for (const Script& script : scripts()) {
    const PlanRequest request = request_of(script);
    CostEvaluator costs(request);
    const FixedCost actor = price_fixed(costs, script.actor);
    std::printf("%-64s actor %6.1f GiB in %s of %5.1f GiB\n", script.name, gib(Bytes{actor.peak}),
                std::string(name_of(actor.worst)).c_str(), gib(Bytes{actor.limit}));
    EXPECT_TRUE(actor.fits()) << script.name << ": " << actor.why;
    if (script.rollout.gpus == 1) continue;
    if (script.model.moe) continue;  // its engine shards experts; TP8 alone does not hold 235B
    const FixedCost generation = price_fixed(costs, script.rollout);
    EXPECT_TRUE(generation.fits()) << script.name << ": " << generation.why;
    const RoleCost a = costs.cost(script.actor), r = costs.cost(script.rollout);
    EXPECT_LE(a.resident + r.peak, actor.limit) << script.name << ": rollout beside the actor";
    EXPECT_LE(a.peak + r.resident, actor.limit) << script.name << ": actor beside the rollout";
  }
}

TEST(MemoryFit, RefusesTheSameScriptsOnGpusOfAThirdOfTheMemory) {
  for (Script script : scripts()) {
    script.memory_gib /= 3;
    CostEvaluator costs(request_of(script));
    const FixedCost actor = price_fixed(costs, script.actor);
    EXPECT_FALSE(actor.fits()) << script.name;
    EXPECT_NE(actor.why.find("needs"), std::string::npos) << actor.why;
  }
}

TEST(FixedLayout, ThatIsImpossibleSaysWhy) {
  const PlanRequest request = request_of(scripts()[0]);
  CostEvaluator costs(request);
  Candidate candidate = scripts()[0].actor;
  candidate.gpus = 3;
  EXPECT_NE(price_fixed(costs, candidate).why.find("number of ranks"), std::string::npos);
  candidate = Candidate{{.dp = 2}, Role::actor, 2, 0, 4096};
  candidate.ep = 2;
  EXPECT_NE(price_fixed(costs, candidate).why.find("experts"), std::string::npos);
}

// Shared ranks pay one after the other; a rollout of its own works beside training only when it may
// lag a step.
TEST(FixedIteration, OverlapsARolloutOfItsOwnOnlyOneStepOff) {
  Workload workload = workload_of("grpo", KlPlace::none, false);
  workload.prompts_per_step = 64;
  workload.samples_per_prompt = 8;
  workload.prompt_tokens = 512;
  workload.response_tokens = {512, 0, 512};
  const PlanRequest request = request_of(llama_8b(), workload, cluster_of(8, 2, 80));
  CostEvaluator costs(request);
  std::map<Role, Candidate> choice;
  choice[Role::actor] = {{.tp = 8}, Role::actor, 8, 0, 1024};
  choice[Role::rollout] = {{.tp = 2, .dp = 4}, Role::rollout, 8, 0, 8192, 64};
  const FixedIteration together = price_iteration(costs, choice, {{Role::actor, Role::rollout}});
  const FixedIteration apart = price_iteration(costs, choice, {{Role::actor}, {Role::rollout}});
  const FixedIteration lagging =
      price_iteration(costs, choice, {{Role::actor}, {Role::rollout}}, 1);
  const auto sum = [](const FixedIteration& iteration) {
    double all = 0;
    for (const double seconds : iteration.seconds) all += seconds;
    return all;
  };
  EXPECT_NEAR(together.step_s, sum(together), 1e-9);
  EXPECT_NEAR(apart.step_s, sum(apart), 1e-9);
  const double gen = lagging.seconds[Phase::gen];
  const double reshard = lagging.seconds[Phase::reshard];
  EXPECT_NEAR(lagging.step_s, reshard + std::max(gen, sum(lagging) - gen - reshard), 1e-9);
  EXPECT_LT(lagging.step_s, apart.step_s);
}

}  // namespace
}  // namespace tessera
