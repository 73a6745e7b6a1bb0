// What a user of an exported plan should know, beside its keys.
#include <cstdio>

#include "cost_models/lengths.h"
#include "planner/engines/engine.h"
#include "planner/interop/verl/verl_writer.h"
#include "planner/plan/amounts.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

void note_lengths(VerlWriter& w) {
  const LengthSpec& lengths = w.work.response_tokens;
  const double mean = mean_length(lengths);
  if (mean >= static_cast<double>(lengths.max)) return;
  const auto text = [](const char* format, double value) {
    char number[32];
    std::snprintf(number, sizeof number, format, value);
    return std::string(number);
  };
  std::string whole;  // the workload's figures, where they are not those of what is generated
  if (lengths.quantiles.empty() && text("%.0f", mean) != text("%.0f", lengths.mean)) {
    whole = " (" + text("%.0f", lengths.mean) + " before the limit cuts them, with a cv of " +
            text("%g", lengths.cv) + ")";
  }
  w.note("The plan expects responses of " + text("%.0f", mean) + " tokens on average" + whole +
         "; verl only knows the longest, " + std::to_string(lengths.max) + ".");
}

void note_reshard(VerlWriter& w) {
  if (w.plan.reshard.empty() || w.apart) return;
  const PlannedReshard& planned = w.plan.reshard[0];
  PlannedReshard full = planned;
  full.mode = ReshardMode::full;
  const Bytes whole = reshard_plan_of(w.plan, full).bytes_received;
  if (planned.mode != ReshardMode::minimal || whole <= planned.bytes_received) return;
  w.note("verl gathers every tensor whole to move weights into the rollout: " + in_gib(whole) +
         " into every GPU in each step, where the plan moves " + in_gib(planned.bytes_received) +
         "; expect a longer update_weights than the plan's reshard.");
}

void check_megatron(VerlWriter& w) {
  for (const RolePlan& role : w.plan.roles) {
    if (role.role == Role::rollout || role.rank_order == RankOrder::megatron) continue;
    if (role.layout.pp == 1 || role.layout.dp == 1) continue;
    w.note("Megatron places the " + std::string(name_of(role.role)) +
           "'s pipeline stages far apart (tp, cp, dp, pp); the plan's ranks are " +
           std::string(name_of(role.rank_order)) + ".");
  }
  const ParallelLayout& layout = w.actor.layout;
  if (layout.ep > 1 && layout.tp > 1 && !layout.sequence_parallel) {
    w.refuse("/roles/0/layout/sequence_parallel", "false", "true",
             "Megatron wants it where experts and tensors are both parallel");
  }
}

void note_log_probs(VerlWriter& w) {
  const std::optional<Seconds> each = engine_named(w.plan.engine).log_prob_served;
  if (w.rollout.log_probs != ToldLogProbs::untold || !each) return;
  const double tokens = static_cast<double>(w.work.sequences()) *
                        mean_length(w.work.response_tokens) / w.rollout.layout.dp;
  w.note(
      "Servers tell no log-probs (rollout.calculate_log_probs=false), which one process of Python "
      "for each would hand on: up to " +
      in_seconds(tokens * *each) +
      " more a step. With true verl shows training/rollout_probs_diff_*, and "
      "algorithm.rollout_correction.rollout_is and rollout_rs need it.");
}

void note_offload(VerlWriter& w) {
  for (const RolePlan& role : w.plan.roles) {
    const bool trained = &role == &w.actor || &role == w.critic;
    if (!trained || role.offload.gradients == role.offload.parameters) continue;
    w.note("verl moves the " + std::string(name_of(role.role)) +
           "'s gradients with its parameters; the plan treats them apart.");
  }
}

void note_experts(VerlWriter& w) {
  if (w.rollout.layout.ep == 1 && w.actor.layout.ep == 1) return;
  const std::string replay = w.keys.engine == VerlEngine::veomni ? "veomni" : "megatron";
  w.note(
      "Mixture of experts: routers of trainer and inference engine disagree on some tokens; watch "
      "training/rollout_probs_diff_* and consider actor." +
      replay +
      ".router_replay.mode=R3 with rollout.enable_rollout_routing_replay=true, or "
      "algorithm.rollout_correction (verl issue 2953).");
  w.note(
      "Mixture of experts: vLLM's sleep level is 1 with expert parallelism, so weights go to host "
      "memory and need room there.");
}

}  // namespace

void note_verl_limits(VerlWriter& w) {
  const std::string library =
      w.keys.library.empty() ? std::string() : ", " + std::string(w.keys.library);
  note_lengths(w);
  note_reshard(w);
  if (w.megatron) check_megatron(w);
  note_log_probs(w);
  note_offload(w);
  note_experts(w);
  w.note("Written for verl " + std::string(kVerlVersion) +
         "; it runs with vllm 0.24.0 or sglang 0.5.12, torch 2.11.0 and transformers 5.9.0" +
         library +
         ". NCCL 2.28.3 to 2.28.7 cannot restart communicators in a process: use the torch "
         "wheel's 2.28.9.");
}

}  // namespace tessera
