// Valid plans for tests: one fixed, and any number of random ones.
#pragma once

#include "planner/plan/plan.h"

namespace tessera {

inline ModelSpec sample_model() {
  ModelSpec model;
  model.family = ModelFamily::qwen2;
  model.layers = 4;
  model.hidden = 64;
  model.query_heads = 4;
  model.kv_heads = 2;
  model.head_dim = 16;
  model.ffn = 176;
  model.vocab = 16;
  model.max_positions = 128;
  model.tied_embeddings = true;
  model.qkv_bias = true;
  model.dtype = DType::fp32;
  model.eos_token = 11;
  return model;
}

inline ClusterSpec sample_cluster() {
  return {.name = "four",
          .device = {"cpu", from_gib(2), tflop_per_s(0.02), gb_per_s(5)},
          .gpus_per_node = 4,
          .nodes = 1,
          .intra_link = "shared memory",
          .intra_per_gpu = gb_per_s(1)};
}

inline RolePlan sample_role(Role role, std::vector<int> ranks, int tp, int pp, int dp,
                            std::int64_t mini_batch) {
  RolePlan plan;
  plan.role = role;
  plan.model = "actor";
  plan.ranks = std::move(ranks);
  plan.layout.tp = tp;
  plan.layout.pp = pp;
  plan.layout.dp = dp;
  plan.layout.stages = {};
  for (int stage = 0; stage < pp; ++stage) {
    plan.layout.stages.push_back({4 * stage / pp, 4 * (stage + 1) / pp});
  }
  plan.batching = {.mini_batch = mini_batch, .update_tokens = 1024, .max_sequences = 64};
  plan.memory[Phase::gen] = {.weights = Bytes{1 << 20}, .kv_cache = Bytes{4096}};
  return plan;
}

/// PPO on four ranks: actor TP2 x PP2, rollout TP2 x DP2 strided over it, critic and reference.
inline Plan sample_plan() {
  Plan plan;
  plan.models["actor"] = {sample_model(), "tiny", ""};
  plan.engine = "tessera";
  plan.cluster = sample_cluster();
  plan.workload = {.algorithm = "ppo",
                   .prompts_per_step = 32,
                   .samples_per_prompt = 16,
                   .prompt_tokens = 8,
                   .response_tokens = {4, 0.25, 4},
                   .mini_batches = 2,
                   .epochs = 1,
                   .kl = KlPlace::reward};
  plan.workload.dataflow = preset_dataflow("ppo", KlPlace::reward, false);
  plan.schedule = default_schedule(plan.workload);
  const std::vector<int> all{0, 1, 2, 3};
  plan.roles = {
      sample_role(Role::actor, all, 2, 2, 1, 256), sample_role(Role::rollout, all, 2, 1, 2, 0),
      sample_role(Role::critic, all, 1, 2, 2, 256), sample_role(Role::reference, all, 4, 1, 1, 0)};
  plan.roles[1].rank_order = RankOrder::strided;
  plan.reshard.push_back({.bucket_bytes = Bytes{1 << 20},
                          .bytes_received = Bytes{2048},
                          .lower_bound_bytes = Bytes{2048},
                          .total_received_bytes = Bytes{8192}});
  plan.environment.push_back({"NCCL_CUMEM_ENABLE", "0", "as verl sets it"});
  plan.prediction = {
      .step_s = Seconds{0.1}, .phases_s = {{Phase::gen, Seconds{0.05}}}, .mfu = 1.0 / 3};
  plan.certificate = {
      .objective = "step_s", .value = 0.1, .runner_up = {{"split", "tp1", Seconds{0.2}}}};
  plan.provenance = {
      .tessera_version = "0.1.0", .calibration = "default", .created = "2026-01-01T00:00:00Z"};
  return plan;
}

}  // namespace tessera
