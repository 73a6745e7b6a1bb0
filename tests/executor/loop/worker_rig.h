// Actor and rollout of a tiny model on ranks that are threads, as a run makes them: their plan, and
// what they generate.
#pragma once

#include <cstdio>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "executor/loop/worker.h"
#include "executor/rollout/generate.h"
#include "executor/rollout/prompt_dealing.h"
#include "planner/request/candidate.h"
#include "tests/planner/plan/sample_plan.h"

namespace tessera {

struct Setting {
  ParallelLayout from, to;
  DType dtype = DType::bf16;
  bool apart = false;  // the rollout's ranks follow the actor's
  bool offload = false;
  ReshardConfig reshard;
  ReshardMode mode = ReshardMode::minimal;
  bool park = false;  // parameters leave the device between phases
};

inline std::string described(const Setting& s) {
  return describe(s.from) + " zero " + std::to_string(s.from.zero) + " -> " + describe(s.to) +
         (s.dtype == DType::bf16 ? " bf16" : " fp32") + (s.apart ? " apart" : "");
}

inline std::vector<int> ranks_from(int first, int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

inline RolePlan role_plan(Role role, const ParallelLayout& layout, int first, DType dtype) {
  RolePlan plan{
      .role = role, .model = "actor", .ranks = ranks_from(first, layout.ranks()), .layout = layout};
  plan.dtypes.param = dtype;
  return plan;
}

/// Actor and rollout alone, with the digest that ranks look for.
inline Plan plan_of(const Setting& setting, const ModelSpec& model,
                    const std::filesystem::path& folder) {
  Plan plan;
  plan.models["actor"] = {model, folder, ""};
  plan.cluster = sample_cluster();
  plan.roles = {role_plan(Role::actor, setting.from, 0, setting.dtype),
                role_plan(Role::rollout, setting.to, setting.apart ? setting.from.ranks() : 0,
                          setting.dtype)};
  plan.roles[0].offload.optimizer = setting.offload;
  plan.roles[0].offload.parameters = setting.park;
  plan.reshard.push_back({.mode = setting.mode});
  const Reshard reshard(parameter_table(model), rank_map_of(plan, Role::actor),
                        rank_map_of(plan, Role::rollout), setting.dtype, setting.mode, 0,
                        reshard_options(plan));
  char digest[20];
  std::snprintf(digest, sizeof digest, "%016llx",
                static_cast<unsigned long long>(reshard.plan().digest));
  plan.reshard[0].digest = digest;
  return plan;
}

inline torch::Tensor values_of(const Weights& weights) {
  std::vector<torch::Tensor> parts;
  for (const torch::Tensor& tensor : weights.tensors)
    if (tensor.defined()) parts.push_back(tensor.detach().reshape({-1}).to(torch::kFloat32));
  return torch::cat(parts);
}

inline std::vector<Sequence> generated(const RoleWorker& rollout, std::int64_t step,
                                       std::int64_t vocab) {
  std::vector<TokenPrompt> prompts;
  for (int i = 0; i < 4; ++i) {
    prompts.push_back({.prompt_index = i,
                       .uid = std::to_string(i),
                       .tokens = {static_cast<std::int32_t>(i % vocab), 2, 3},
                       .samples = 2});
  }
  return RolloutEngine(*rollout.weights, rollout.groups)
      .generate(step, prompts_of_replica(prompts, rollout.groups.dp_size, rollout.groups.dp_rank),
                {.seed = 5, .max_response_tokens = 4, .max_sequences = 8})
      .sequences;
}

}  // namespace tessera
