// The table of engines, and how a name finds its row.
#include <algorithm>
#include <array>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/preset_algorithms.h"
#include "planner/engines/engine.h"
#include "planner/engines/rows.h"

namespace tessera {
namespace {

// Rows of logits that exist at a time where a plan chooses the fused loss (chunk_size of
// FusedLinearForPPOFunction, verl/utils/experimental/torch_functional.py).
constexpr std::int64_t kFusedLogitRows = 512;

// Engines that answer those alone who name them: their times and memory are verl's FSDP with other
// meshes, which nobody has measured, and a search of every engine would take longer for them.
constexpr std::array<std::string_view, 2> kOnRequest{"verl-torchtitan", "verl-veomni"};

const Engine* find_engine(std::string_view name) {
  const std::vector<Engine>& all = every_engine();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Engine& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& each : names) all += (all.empty() ? "" : ", ") + each;
  return all;
}

}  // namespace

const std::vector<Engine>& every_engine() {
  static const std::vector<Engine> rows = {
      any_engine(),                //
      megatron_engine(),           //
      sglang_engine(),             //
      tessera_engine(),            //
      tessera_invariant_engine(),  //
      tessera_vllm_engine(),       //
      verl_engine(),               //
      verl_megatron_engine(),      //
      verl_torchtitan_engine(),    //
      verl_veomni_engine(),        //
      vllm_engine(),               //
  };
  return rows;
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const Engine& engine : every_engine()) {
    if (engine.name != kAnyEngine) names.push_back(engine.name);
  }
  return names;
}

const Engine* engine_of(std::string_view name, Problems& problems) {
  const Engine* const found = find_engine(name);
  if (found != nullptr && name != kAnyEngine) return found;
  const std::vector<std::string> known = engine_names();
  problems.push_back(
      {"", "engine", "'" + std::string(name) + "'", listed(known), did_you_mean(name, known)});
  return nullptr;
}

const Engine* requested_engine(std::string_view name, Problems& problems) {
  if (name == kAnyEngine) return find_engine(name);
  const Engine* const found = engine_of(name, problems);
  if (found != nullptr) return found;
  std::vector<std::string> names = engine_names();
  names.emplace_back(kAnyEngine);
  Problem& problem = problems.back();
  problem.file = "--engine";
  problem.place.clear();
  problem.expected += " or " + std::string(kAnyEngine);
  problem.hint = did_you_mean(name, names);
  return nullptr;
}

bool runs(const Engine& engine, Role role) {
  const std::vector<Role>& own = engine.capabilities.roles;
  return std::find(own.begin(), own.end(), role) != own.end();
}

std::vector<const Engine*> answering(const Engine& asked, const std::vector<Role>& roles) {
  std::vector<const Engine*> all{&asked};
  if (asked.name != kAnyEngine) return all;
  for (const Engine& each : every_engine()) {
    const bool every =
        std::all_of(roles.begin(), roles.end(), [&](Role role) { return runs(each, role); });
    const bool on_request =
        std::find(kOnRequest.begin(), kOnRequest.end(), each.name) != kOnRequest.end();
    // A fixed order is never the quicker one.
    if (each.name != kAnyEngine && every && !each.fixed_order && !on_request) all.push_back(&each);
  }
  return all;
}

const Engine& engine_named(std::string_view name) {
  const Engine* const found = find_engine(name);
  return found != nullptr ? *found : *find_engine(kAnyEngine);
}

ToldLogProbs quickest_log_probs(const Engine& engine, const Workload& workload) {
  const bool computed = computes_old_log_probs(workload.dataflow);
  return engine.log_prob_served && computed ? ToldLogProbs::untold : ToldLogProbs::as_engine;
}

EngineTraits traits_of(const Engine& engine, EngineChoices choices) {
  EngineTraits traits = engine.traits;
  if (!engine.has_choices) return traits;
  traits.loss.fused_with_head = choices.fused_loss;
  if (choices.fused_loss) traits.loss.rows = kFusedLogitRows;
  if (choices.host_optimizer) traits.optimizer.offloaded = OffloadedStates::on_host;
  if (choices.log_probs == ToldLogProbs::untold && engine.log_prob_served) {
    traits.decode.token_served -= *engine.log_prob_served;
  }
  return traits;
}

EngineTraits traits_of(std::string_view engine, EngineChoices choices) {
  return traits_of(engine_named(engine), choices);
}

EngineRules engine_rules() {
  static const std::vector<EngineRule> rules = [] {
    std::vector<EngineRule> all;
    for (const Engine& engine : every_engine()) all.push_back({engine.name, engine.prompts});
    return all;
  }();
  return rules;
}

}  // namespace tessera
