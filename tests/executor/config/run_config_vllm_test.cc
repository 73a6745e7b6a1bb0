// The rollout's engine in run.yaml: what is read, and which plans and words vLLM refuses.
#include <gmock/gmock.h>

#include "cost_models/documents/problem.h"
#include "executor/config/run_config_vllm.h"
#include "tests/executor/config/grpo_plan.h"
#include "tests/executor/config/rollout_file.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(VllmConfig, ReadsWhatTheFileSays) {
  Problems problems;
  const std::string text = yaml(
      "engine: vllm, vllm: {servers: ['http://127.0.0.1:8000', 'http://a.b:1'], program: [a, b],"
      " arguments: [--x], gpu_memory_utilization: 0.7, enforce_eager: true,"
      " enable_prefix_caching: false, sleep: false, start_timeout_s: 3,"
      " request_timeout_s: 4.5}",
      "reshard: {verify: true}\n");
  const auto config = parse_run_config(text, "run.yaml", grpo_plan(), problems);
  ASSERT_TRUE(config) << to_string(problems.at(0));
  EXPECT_EQ(config->rollout.engine, GenerationEngine::vllm);
  const VllmOptions& vllm = config->rollout.vllm;
  EXPECT_EQ(vllm.servers, (std::vector<std::string>{"http://127.0.0.1:8000", "http://a.b:1"}));
  EXPECT_EQ(vllm.program, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(vllm.arguments, std::vector<std::string>{"--x"});
  EXPECT_EQ(vllm.gpu_memory_utilization, 0.7);
  EXPECT_TRUE(vllm.enforce_eager && !vllm.enable_prefix_caching && !vllm.sleeps);
  EXPECT_EQ(vllm.restarts, 0) << "others' servers";
  EXPECT_EQ(vllm.start_timeout_s, 3);
  EXPECT_EQ(vllm.request_timeout_s, 4.5);
  EXPECT_TRUE(config->reshard.verify);
}

TEST(VllmConfig, ServersOfTheRunAloneAreStartedAgain) {
  const auto restarts = [](const std::string& text) {
    Problems problems;
    const auto config = parse_run_config(text, "run.yaml", grpo_plan(), problems);
    EXPECT_TRUE(config) << to_string(problems.at(0));
    return config->rollout.vllm.restarts;
  };
  EXPECT_EQ(restarts(yaml("engine: vllm")), 2);
  EXPECT_EQ(restarts(yaml("engine: vllm, vllm: {restarts: 5}")), 5);
  const std::string joined = "engine: vllm, vllm: {servers: ['http://a:1', 'http://b:1'], ";
  EXPECT_EQ(restarts(yaml(joined + "restarts: 0}")), 0);
  EXPECT_THAT(refused(grpo_plan(), yaml(joined + "restarts: 1}")),
              HasSubstr("0 with servers that the run has not started"));
  EXPECT_THAT(refused(grpo_plan(), yaml("engine: vllm, vllm: {restarts: -1}")),
              HasSubstr("restarts"));
}

TEST(VllmConfig, RefusesWhatVllmCannotHold) {
  const std::string text = yaml("engine: vllm");
  EXPECT_EQ(refused(grpo_plan(), text), "");
  Plan heads = grpo_plan();
  heads.models["actor"].spec.query_heads = 3;
  EXPECT_THAT(refused(heads, text), HasSubstr("3 query heads"));
  Plan full = grpo_plan();
  full.reshard.front().mode = ReshardMode::full;
  EXPECT_THAT(refused(full, text), HasSubstr("a minimal reshard"));
  Plan offload = grpo_plan();
  for (RolePlan& role : offload.roles) role.offload.parameters = role.role == Role::actor;
  EXPECT_THAT(refused(offload, text), HasSubstr("stay on the device"));
  Plan hosts = grpo_plan();
  hosts.cluster.gpus_per_node = 2;
  hosts.cluster.nodes = 2;
  EXPECT_THAT(refused(hosts, text), HasSubstr("their own host"));
}

// A plan for vLLM's servers says who generates and what the servers get; the file may say
// otherwise.
TEST(VllmConfig, APlanForItsServersSaysSoByItself) {
  Plan plan = grpo_plan();
  plan.engine = "tessera+vllm";
  for (RolePlan& role : plan.roles) {
    if (role.role != Role::rollout) continue;
    role.memory[Phase::gen] = {.weights = plan.cluster.device.memory / 8,
                               .kv_cache = plan.cluster.device.memory / 4,
                               .reserve = plan.cluster.device.memory / 4};
  }
  plan.reshard.front().keep = true;
  const auto read = [&](const std::string& text) {
    Problems problems;
    const auto config = parse_run_config(text, "run.yaml", plan, problems);
    EXPECT_TRUE(config) << to_string(problems.at(0));
    return config->rollout;
  };
  const std::string bare =
      "version: 1\ndata: {train_files: [a.jsonl]}\ntrainer: "
      "{total_training_steps: 2}\n";
  for (const std::string& text : {bare, yaml("top_k: 0")}) {
    const RolloutConfig planned = read(text);
    EXPECT_EQ(planned.engine, GenerationEngine::vllm);
    EXPECT_EQ(planned.vllm.gpu_memory_utilization, 0.38);  // 3/8 in hundredths, rounded up
    EXPECT_FALSE(planned.vllm.sleeps);
    EXPECT_EQ(generation_note(plan, planned), "");
  }
  plan.reshard.front().keep = false;
  EXPECT_TRUE(read(bare).vllm.sleeps);
  EXPECT_EQ(read(yaml("vllm: {gpu_memory_utilization: 0.7}")).vllm.gpu_memory_utilization, 0.7);
  const RolloutConfig own = read(yaml("engine: tessera"));
  EXPECT_EQ(own.engine, GenerationEngine::tessera);
  EXPECT_THAT(generation_note(plan, own), HasSubstr("tessera generates"));
  plan.engine = "tessera";
  EXPECT_EQ(read(bare).engine, GenerationEngine::tessera);
  EXPECT_EQ(generation_note(plan, read(bare)), "");
  EXPECT_THAT(generation_note(plan, read(yaml("engine: vllm"))), HasSubstr("'tessera' is not for"));
}

TEST(VllmConfig, RefusesToReplayExpertsThatItsServersDoNotTell) {
  Plan plan = grpo_plan();
  for (auto& [name, model] : plan.models) {
    model.spec.moe = MoeSpec{.experts = 4, .experts_per_token = 2, .expert_ffn = 64};
  }
  const auto with_mode = [](const std::string& mode) {
    return yaml("engine: vllm}, actor: {router_replay: {mode: " + mode + "}");
  };
  EXPECT_THAT(refused(plan, with_mode("R3")), HasSubstr("not asked for the experts"));
  EXPECT_THAT(refused(plan, with_mode("R2")), Not(HasSubstr("router_replay")));
}

TEST(VllmConfig, RefusesWordsThatSayNothingOrTooMuch) {
  const Plan plan = grpo_plan();
  EXPECT_THAT(refused(plan, yaml("engine: vllm, temperature: 2.5")), HasSubstr("at most 2"));
  EXPECT_THAT(refused(plan, yaml("engine: vllm, temperature: 0.5, top_p: 0.9")),
              HasSubstr("log-probs of all tokens"));
  EXPECT_THAT(refused(plan, yaml("engine: vllm, vllm: {servers: ['http://127.0.0.1:80']}")),
              HasSubstr("2 servers"));
  EXPECT_THAT(refused(plan, yaml("engine: vllm, vllm: {servers: [a, b]}")),
              HasSubstr("http://127.0.0.1:8000"));
  EXPECT_THAT(refused(plan, yaml("engine: vllm, vllm: {program: []}")), HasSubstr("one word"));
  EXPECT_THAT(refused(plan, yaml("vllm: {enforce_eager: true}")), HasSubstr("engine: vllm"));
  EXPECT_THAT(refused(plan, yaml("name: vllm")), HasSubstr("rollout.engine"));
  EXPECT_THAT(refused(plan, yaml("engine: vllm", "reshard: {incremental: true}\n")),
              HasSubstr("incremental"));
  EXPECT_THAT(refused(plan, yaml("engine: sglang")), HasSubstr("sglang"));
}

}  // namespace
}  // namespace tessera
