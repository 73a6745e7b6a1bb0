#include "executor/config/run_config_lora.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/peft_folder.h"
#include "executor/config/run_config_readers.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

constexpr Whole kRank{.least = 0, .most = 1 << 16};
constexpr const char* kAllLinear = "all-linear";

/// A name, a list of names, or all-linear, as verl takes them. nullopt: the file does not say.
std::optional<std::vector<std::string>> read_targets(ObjectReader& reader) {
  const Node* const given = reader.find("target_modules");
  if (given == nullptr || given->is(Node::Kind::null)) return std::nullopt;
  std::vector<std::string> targets;
  if (given->is(Node::Kind::string)) {
    if (given->text != kAllLinear) targets.push_back(given->text);
    return targets;
  }
  reader.list("target_modules", targets);
  if (given->is(Node::Kind::list) && targets.empty()) {
    reader.refuse("target_modules", "at least one module, or all-linear");
  }
  return targets;
}

void check_targets(ObjectReader& reader, const ParameterTable& table, const Lora& lora) {
  const std::vector<std::string> known = adapted_modules(table, {.rank = 1, .targets = {}});
  std::string all;
  for (const std::string& module : known) all += (all.empty() ? "" : ", ") + module;
  for (const std::string& target : lora.targets) {
    if (std::ranges::find(known, target) != known.end()) continue;
    reader.refuse("target_modules", '"' + target + '"', "all-linear, or some of " + all,
                  did_you_mean(target, known));
  }
}

/// The same modules, in whatever order; empty: all of them.
bool same_targets(const ParameterTable& table, const Lora& a, const Lora& b) {
  return adapted_rows(table, {.rank = 1, .targets = a.targets}) ==
         adapted_rows(table, {.rank = 1, .targets = b.targets});
}

/// What the folder's adapters are, held against what the file says.
void take_folder(ObjectReader& reader, const ParameterTable& table,
                 const std::optional<std::vector<std::string>>& targets, ActorConfig& actor) {
  const auto settings = read_peft_settings(actor.adapters, reader.problems());
  if (!settings) return;
  const Lora* const found = &settings->lora;
  const Lora stated{.rank = reader.find("lora_rank") != nullptr ? actor.lora.rank : 0,
                    .targets = targets.value_or(found->targets)};
  if (stated.used() && stated.rank != found->rank) {
    reader.refuse("lora_rank", std::to_string(found->rank) + ", as lora_adapter_path has",
                  "leave the key out");
  }
  if (reader.find("lora_alpha") != nullptr && actor.lora.alpha != found->alpha) {
    reader.refuse("lora_alpha", "the scale that lora_adapter_path has", "leave the key out");
  }
  if (!same_targets(table, stated, *found)) {
    reader.refuse("target_modules", "the modules that lora_adapter_path has", "leave the key out");
  }
  actor.lora = *found;
}

/// Other adapters than those that the plan counts: its memory and its reshard are of these.
void refuse_others(ObjectReader& reader, const ParameterTable& table, const Lora& planned,
                   const ActorConfig& actor) {
  if (!planned.used()) return;
  constexpr const char* kHint =
      "leave the key out, or plan again with other --lora-rank and "
      "--lora-targets";
  const char* const folder = actor.adapters.empty() ? nullptr : "lora_adapter_path";
  if (actor.lora.rank != planned.rank) {
    reader.refuse(folder != nullptr ? folder : "lora_rank",
                  "adapters of rank " + std::to_string(planned.rank) + ", as the plan has", kHint);
  } else if (!same_targets(table, actor.lora, planned)) {
    reader.refuse(folder != nullptr ? folder : "target_modules",
                  "the matrices that the plan's adapters have", kHint);
  }
}

}  // namespace

void read_lora(ObjectReader& reader, const Plan& plan, ActorConfig& actor) {
  const Lora planned = actor.lora;
  reader.optional("lora_rank", actor.lora.rank, kRank);
  reader.optional("lora_alpha", actor.lora.alpha, kAboveZero);
  const auto targets = read_targets(reader);
  std::string folder;
  reader.optional("lora_adapter_path", folder);
  actor.adapters = folder;
  if (targets) actor.lora.targets = *targets;
  if (!actor.lora.used() && !planned.used() && folder.empty()) return;
  const ModelSpec model = plan.model_of(Role::actor);
  if (model.moe) {
    reader.refuse(actor.lora.used() ? "lora_rank" : "lora_adapter_path", "a model without experts",
                  "the products of experts have no adapters");
    return;
  }
  const ParameterTable table = parameter_table(model);
  if (!folder.empty()) take_folder(reader, table, targets, actor);
  check_targets(reader, table, actor.lora);
  refuse_others(reader, table, planned, actor);
}

std::string adapter_note(const Plan& plan, const Lora& lora) {
  const RolePlan* const actor = plan.find(Role::actor);
  if (!lora.used() || actor == nullptr || actor->lora.used()) return {};
  return "[Start] adapters of rank " + std::to_string(lora.rank) +
         " are trained, and the plan was made without them: its memory, times and bytes are those "
         "of training every weight (tessera plan --lora-rank " +
         std::to_string(lora.rank) + " counts them)";
}

void refuse_lora(ObjectReader& reader) {
  constexpr const char* kWhole = "the critic is trained whole";
  refuse_unsupported(reader, {{"lora_rank", kWhole},
                              {"lora_alpha", kWhole},
                              {"target_modules", kWhole},
                              {"lora_adapter_path", kWhole}});
}

void check_lora(ObjectReader& root, const Plan& plan, const RunConfig& config) {
  if (!config.actor.lora.used()) return;
  auto shared = root.object("actor_rollout_ref", false);
  auto reader = shared ? shared->object("model", false) : std::nullopt;
  ObjectReader& place = reader ? *reader : shared ? *shared : root;
  const char* const key = !reader || reader->has("lora_rank") ? "lora_rank" : "lora_adapter_path";
  const auto refuse_if = [&](bool is, const char* what, const char* why) {
    if (is) place.refuse(key, std::string("no adapters with ") + what, why);
  };
  refuse_if(config.rollout.engine == GenerationEngine::vllm, "rollout.engine vllm",
            "its servers get whole weights: rollout.engine tessera");
  refuse_if(config.rollout.batch_invariant, "rollout.batch_invariant",
            "the adapters' products are not in the fixed order");
  const ReshardConfig& reshard = config.reshard;
  refuse_if(reshard.overlap, "reshard.overlap", "what moves after an update is small");
  refuse_if(reshard.incremental, "reshard.incremental", "the adapters alone move");
  refuse_if(reshard.wire.has_value(), "reshard.wire", "adapters move as they are");
  refuse_if(reshard.verify, "reshard.verify", "rollout.verify_weights proves what has arrived");
  const RolePlan *actor = plan.find(Role::actor), *rollout = plan.find(Role::rollout);
  refuse_if(rollout != nullptr && rollout->dtypes.param != actor->dtypes.param,
            "weights of different types in training and generation", "adapters move as they are");
}

}  // namespace tessera
