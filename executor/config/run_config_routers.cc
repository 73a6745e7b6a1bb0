#include "executor/config/run_config_routers.h"

#include <array>
#include <string>

#include "cost_models/spec/enum_names.h"
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

/// The plan trains a model without routers.
bool dense(const Plan& plan) {
  return plan.find(Role::actor) != nullptr && !plan.model_of(Role::actor).moe;
}

/// Of a loss of the routers.
void read_coefficient(ObjectReader& actor, const Plan& plan, const char* key, double& coefficient) {
  actor.optional(key, coefficient, kFromZero);
  if (coefficient == 0 || !dense(plan)) return;
  actor.refuse(key, "0", "the model has no experts, and so no routers");
}

void read_replay(ObjectReader& actor, const Plan& plan, ActorConfig& config) {
  auto reader = actor.object("router_replay", false);
  if (!reader) return;
  RouterReplayMode& mode = config.router_replay;
  reader->optional("mode", mode, kReplayModes);
  if (mode != RouterReplayMode::disabled && dense(plan)) {
    reader->refuse("mode", "disabled", "the model has no experts, and so no routers");
  }
  reader->optional("record", config.record_experts);
  if (config.record_experts && mode != RouterReplayMode::r3) {
    reader->refuse("record", "mode: R3 beside it", "it writes the rollout's choices");
  }
  refuse_unsupported(*reader,
                     {{"record_file", "router_replay.record: true writes them to samples.jsonl"},
                      {"replay_file", "trainer.rollout_replay reads them from there"}});
  reader->refuse_unknown_keys();
}

}  // namespace

std::string_view name_of(RouterReplayMode mode) { return kReplayNames[mode]; }

void read_routers(ObjectReader& actor, const Plan& plan, ActorConfig& config) {
  read_coefficient(actor, plan, "router_aux_loss_coef", config.router_aux_loss_coef);
  read_coefficient(actor, plan, "router_z_loss_coef", config.router_z_loss_coef);
  read_replay(actor, plan, config);
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
}

}  // namespace tessera
