#include "planner/request/plan_request.h"

#include <algorithm>
#include <utility>

#include "cost_models/spec/node_groups.h"
#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "planner/plan/schedule.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_value.h"

namespace tessera {
namespace {

// Layers that the cut of the stages counts for the head; 0 also where the stages are another cut.
int head_layers_of(const ParallelLayout& layout) {
  if (layout.vpp > 1 || layout.stages.size() < 2) return 0;
  const auto layers = static_cast<int>(layout.stages.back().last);
  for (int head = 0; head < layers; ++head) {
    if (cut_stages(layers, layout.pp, 1, head) == layout.stages) return head;
  }
  return 0;
}

}  // namespace

Candidate candidate_of(const Plan& plan, const RolePlan& role) {
  const ParallelLayout& layout = role.layout;
  const Batching& batching = role.batching;
  Candidate candidate;
  candidate.role = role.role;
  candidate.gpus = static_cast<int>(role.ranks.size());
  candidate.degrees() = layout.degrees();
  candidate.zero = layout.zero;
  candidate.sequence_parallel = layout.sequence_parallel;
  candidate.ulysses = layout.ulysses;
  candidate.head_layers = head_layers_of(layout);
  candidate.recompute = role.recompute;
  candidate.offload = role.offload;
  candidate.max_sequences = batching.max_sequences;
  candidate.view = view_of(plan.cluster, role.ranks);
  candidate.tokens =
      role.role == Role::rollout
          ? batching.prefill_tokens
          : std::max({batching.log_prob_tokens, batching.values_tokens, batching.reward_tokens});
  candidate.sequences = batching.log_prob_sequences;
  if (candidate.tokens == 0) {
    candidate.tokens = batching.update_tokens;
    candidate.sequences = batching.update_sequences;
  }
  if (batching.update_tokens != candidate.tokens) candidate.update_tokens = batching.update_tokens;
  if (batching.update_sequences != candidate.sequences) {
    candidate.update_sequences = batching.update_sequences;
  }
  const bool unmapped =
      std::any_of(plan.reshard.begin(), plan.reshard.end(),
                  [&](const PlannedReshard& pair) { return pair.to == role.role && !pair.keep; });
  if (role.role == Role::rollout && unmapped) candidate.offload.parameters = true;
  return candidate;
}

PlanRequest request_of(const Plan& plan, Calibration calibration) {
  PlanRequest request;
  request.models = plan.models;
  request.cluster = plan.cluster;
  request.workload = plan.workload;
  request.calibration = std::move(calibration);
  request.engine = plan.engine;
  request.objective = objective_of(plan);
  request.risk = risk_of(plan);
  request.one_step_off = is_one_step_off(plan.schedule);
  request.tessera_version = plan.provenance.tessera_version;
  request.created = plan.provenance.created;
  for (const RolePlan& role : plan.roles) {
    if (role.lora.used()) request.lora.emplace(role.role, role.lora);
    request.choices.fsdp[role.role] = role.fsdp;
    request.choices.no_sync[role.role] = role.no_sync;
    request.mtp[role.role] = role.mtp;
    if (role.role == Role::rollout) request.choices.log_probs = role.log_probs;
    if (role.role != Role::actor) continue;
    request.choices.fused_loss = role.fused_loss;
    request.choices.host_optimizer = role.host_optimizer;
  }
  return request;
}

PlanRequest priced_request_of(const Plan& plan, Calibration calibration) {
  PlanRequest request = request_of(plan, std::move(calibration));
  request.traits = traits_of(plan.engine, request.choices);
  if (!reference_lies_as_actor(plan)) request.lora.erase(Role::reference);  // its own weights
  for (const RolePlan& role : plan.roles) request.dtypes.emplace(role.role, role.dtypes);
  if (!plan.reshard.empty()) {
    const PlannedReshard& pair = plan.reshard.front();
    request.reshard = {pair.transport, pair.bucket_bytes};
  }
  return request;
}

Solution solution_of(const Plan& plan) {
  Solution solution;
  solution.placement = placement_of(plan);
  for (const std::vector<Role>& block : solution.placement) {
    const std::vector<int>& ranks = plan.find(block.front())->ranks;
    solution.sizes.push_back(static_cast<int>(ranks.size()));
    solution.first_rank.push_back(*std::min_element(ranks.begin(), ranks.end()));
  }
  for (const RolePlan& role : plan.roles) {
    solution.choice.emplace(role.role, candidate_of(plan, role));
  }
  solution.policy_lag = is_one_step_off(plan.schedule) ? 1 : 0;
  return solution;
}

}  // namespace tessera
