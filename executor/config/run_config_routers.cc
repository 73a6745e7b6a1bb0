#include "executor/config/run_config_routers.h"

#include <array>
#include <string>

#include "cost_models/spec/enum_names.h"
#include "cost_models/spec/expert_parallel.h"
#include "executor/config/run_config_readers.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

constexpr std::array kReplayModes{RouterReplayMode::disabled, RouterReplayMode::r2,
                                  RouterReplayMode::r3};
constexpr auto kReplayNames =
    enum_names<RouterReplayMode>({{RouterReplayMode::disabled, "disabled"},
                                  {RouterReplayMode::r2, "R2"},
                                  {RouterReplayMode::r3, "R3"}});

void read_balance_loss(ObjectReader& reader, const Plan& plan, double& coefficient) {
  reader.optional("router_aux_loss_coef", coefficient, kFromZero);
  const RolePlan* const planned = plan.find(Role::actor);
  if (coefficient == 0 || planned == nullptr) return;
  const std::string why = balance_refusal(plan.model_of(Role::actor), planned->layout,
                                          planned->recompute == Recompute::full);
  if (!why.empty()) {
    reader.refuse("router_aux_loss_coef", "0", "tessera does not train with " + why);
  }
}

/// The plan trains a model without routers.
bool dense(const Plan& plan) {
  return plan.find(Role::actor) != nullptr && !plan.model_of(Role::actor).moe;
}

void read_replay(ObjectReader& actor, const Plan& plan, RouterReplayMode& mode) {
  auto reader = actor.object("router_replay", false);
  if (!reader) return;
  reader->optional("mode", mode, kReplayModes);
  if (mode != RouterReplayMode::disabled && dense(plan)) {
    reader->refuse("mode", "disabled", "the model has no experts, and so no routers");
  }
  refuse_unsupported(*reader, {{"record_file", "choices stay in memory"},
                               {"replay_file", "choices stay in memory"}});
  reader->refuse_unknown_keys();
}

}  // namespace

std::string_view name_of(RouterReplayMode mode) { return kReplayNames[mode]; }

void read_routers(ObjectReader& actor, const Plan& plan, ActorConfig& config) {
  read_balance_loss(actor, plan, config.router_aux_loss_coef);
  actor.optional("router_z_loss_coef", config.router_z_loss_coef, kFromZero);
  if (config.router_z_loss_coef != 0 && dense(plan)) {
    actor.refuse("router_z_loss_coef", "0", "the model has no experts, and so no routers");
  }
  read_replay(actor, plan, config.router_replay);
}

void check_router_replay(ObjectReader& root, const RunConfig& config) {
  const RouterReplayMode mode = config.actor.router_replay;
  if (mode == RouterReplayMode::disabled) return;
  auto shared = root.object("actor_rollout_ref");
  auto actor = shared->object("actor");
  auto reader = actor->object("router_replay");
  const auto refuse_if = [&](bool is, const std::string& expected, const std::string& hint) {
    if (is) reader->refuse("mode", expected, hint);
  };
  if (mode == RouterReplayMode::r2) {
    refuse_if(config.algorithm.bypass_mode, "R3, or disabled",
              "in bypass mode no pass of the old policy chooses experts");
    return;
  }
  refuse_if(config.rollout.engine == GenerationEngine::vllm, "R2, or disabled",
            "vLLM's servers are not asked for the experts that they choose");
  refuse_if(!config.trainer.rollout_replay.empty(), "R2, or disabled",
            "the record of trainer.rollout_replay has no experts");
}

}  // namespace tessera
