#include "executor/config/run_config_invariant.h"

#include <string>

#include "planner/plan/plan.h"

namespace tessera {
namespace {

std::string tp_of(const RolePlan& role) { return std::to_string(role.layout.tp); }

/// Why the actor's log-probs would not be the rollout's; empty: they are.
std::string layouts_refusal(const RolePlan& actor, const RolePlan& rollout) {
  if (actor.layout.tp != rollout.layout.tp) {
    return "the actor has tensor parallel degree " + tp_of(actor) + " and the rollout " +
           tp_of(rollout) + ": their sums over ranks differ";
  }
  if (actor.layout.cp > 1) {
    return "the actor cuts sequences over " + std::to_string(actor.layout.cp) +
           " ranks: its attention adds up parts that the rollout does not have";
  }
  if (actor.dtypes.param != rollout.dtypes.param) {
    return "actor and rollout hold weights of different types";
  }
  return {};
}

}  // namespace

void check_batch_invariance(ObjectReader& root, const Plan& plan, const RunConfig& config) {
  if (!config.rollout.batch_invariant) return;
  auto shared = root.object("actor_rollout_ref");
  if (!shared) return;
  auto reader = shared->object("rollout");
  if (!reader) return;
  const auto refuse = [&](const std::string& why) {
    reader->refuse("batch_invariant", "false", why);
  };
  const RolePlan *actor = plan.find(Role::actor), *rollout = plan.find(Role::rollout);
  if (actor == nullptr || rollout == nullptr) return refuse("the plan does not generate");
  if (config.rollout.engine == GenerationEngine::vllm) {
    return refuse("vLLM's kernels are not the trainer's: rollout.engine tessera");
  }
  if (!config.trainer.rollout_replay.empty()) {
    return refuse("responses come from the record of trainer.rollout_replay");
  }
  if (plan.model_of(Role::actor).moe) {
    return refuse("the products of experts have as many rows as tokens chose them");
  }
  if (config.reshard.wire) {
    return refuse("reshard.wire rounds the weights on their way to the rollout");
  }
  if (const std::string why = layouts_refusal(*actor, *rollout); !why.empty()) refuse(why);
}

}  // namespace tessera
