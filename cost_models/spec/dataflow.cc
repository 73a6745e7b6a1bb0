// Names of roles, phases and call kinds, the presets' calls, and the order of a dataflow.
#include <algorithm>
#include <array>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <iterator>
#include <map>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/enum_names.h"
#include "cost_models/spec/preset_algorithms.h"
#include "cost_models/spec/workload.h"

namespace tessera {
namespace {

constexpr auto kRoles = enum_names<Role>({{Role::actor, "actor"},
                                          {Role::rollout, "rollout"},
                                          {Role::critic, "critic"},
                                          {Role::reference, "reference"},
                                          {Role::reward, "reward"}});
static_assert(has_enumerators<Role, kEveryRole.size()>(),
              "list every role in kEveryRole (cost_models/spec/workload.h)");
constexpr auto kPhases = enum_names<Phase>({{Phase::load, "load"},
                                            {Phase::gen, "gen"},
                                            {Phase::reshard, "reshard"},
                                            {Phase::old_log_prob, "old_log_prob"},
                                            {Phase::ref, "ref"},
                                            {Phase::values, "values"},
                                            {Phase::reward, "reward"},
                                            {Phase::adv, "adv"},
                                            {Phase::update_critic, "update_critic"},
                                            {Phase::update_actor, "update_actor"},
                                            {Phase::save_checkpoint, "save_checkpoint"}});
static_assert(has_enumerators<Phase, kEveryPhase.size()>(),
              "list every phase in kEveryPhase (cost_models/spec/workload.h)");
constexpr auto kKinds = enum_names<CallKind>({{CallKind::generate, "generate"},
                                              {CallKind::infer, "infer"},
                                              {CallKind::train, "train"},
                                              {CallKind::compute, "compute"}});
constexpr auto kKlPlaces = enum_names<KlPlace>(
    {{KlPlace::none, "none"}, {KlPlace::loss, "loss"}, {KlPlace::reward, "reward"}});

/// Consumer -> producer, so that a depth-first visit in the calls' own order keeps that order where
/// it is already valid.
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

std::string cycle_of(const Graph& graph, const Dataflow& dataflow) {
  std::vector<int> component(dataflow.size());
  boost::strong_components(graph, boost::make_iterator_property_map(
                                      component.begin(), boost::get(boost::vertex_index, graph)));
  const auto looping = [&](std::size_t i) {
    return std::count(component.begin(), component.end(), component[i]) > 1 ||
           boost::edge(i, i, graph).second;
  };
  std::string names;
  int reported = -1;
  for (std::size_t i = 0; i < dataflow.size(); ++i) {
    if (!looping(i) || (reported >= 0 && component[i] != reported)) continue;
    reported = component[i];
    names += (names.empty() ? "" : ", ") + std::string(name_of(dataflow[i].phase));
  }
  return names;
}

}  // namespace

std::string_view name_of(Role role) { return kRoles[role]; }
std::string_view name_of(Phase phase) { return kPhases[phase]; }
std::string_view name_of(CallKind kind) { return kKinds[kind]; }
std::string_view name_of(KlPlace place) { return kKlPlaces[place]; }
std::optional<Role> role_from(std::string_view name) { return kRoles.find(name); }
std::optional<Phase> phase_from(std::string_view name) { return kPhases.find(name); }

Dataflow preset_dataflow(std::string_view algorithm, KlPlace kl, bool reward_model) {
  const bool critic = algorithm == "ppo";
  Dataflow calls{
      {Phase::gen, Role::rollout, CallKind::generate, {"prompts"}, {"responses"}},
      {Phase::old_log_prob, Role::actor, CallKind::infer, {"responses"}, {"old_log_probs"}}};
  if (kl != KlPlace::none) {
    calls.push_back(
        {Phase::ref, Role::reference, CallKind::infer, {"responses"}, {"ref_log_probs"}});
  }
  if (critic) {
    calls.push_back({Phase::values, Role::critic, CallKind::infer, {"responses"}, {"values"}});
  }
  calls.push_back({Phase::reward,
                   Role::reward,
                   reward_model ? CallKind::infer : CallKind::compute,
                   {"responses"},
                   {"scores"}});
  Call adv{Phase::adv, Role::actor, CallKind::compute, {"scores"}, {"advantages"}};
  if (kl == KlPlace::reward) {
    adv.inputs.insert(adv.inputs.end(), {"old_log_probs", "ref_log_probs"});
  }
  if (critic) {
    adv.inputs.push_back("values");
    adv.outputs.push_back("returns");
  }
  calls.push_back(std::move(adv));
  if (critic) {
    calls.push_back({Phase::update_critic,
                     Role::critic,
                     CallKind::train,
                     {"responses", "values", "returns"},
                     {}});
  }
  Call update{Phase::update_actor,
              Role::actor,
              CallKind::train,
              {"responses", "old_log_probs", "advantages"},
              {}};
  if (kl == KlPlace::loss) update.inputs.push_back("ref_log_probs");
  calls.push_back(std::move(update));
  return calls;
}

Dataflow bypassing(Dataflow calls) {
  std::vector<std::string> made;
  std::erase_if(calls, [&](const Call& call) {
    if (call.phase != Phase::old_log_prob) return false;
    made.insert(made.end(), call.outputs.begin(), call.outputs.end());
    return true;
  });
  for (Call& call : calls) {
    if (call.kind == CallKind::generate) {
      call.outputs.insert(call.outputs.end(), made.begin(), made.end());
    }
  }
  return calls;
}

bool computes_old_log_probs(const Dataflow& calls) {
  return std::ranges::find(calls, Phase::old_log_prob, &Call::phase) != calls.end();
}

std::vector<int> topological_order(const Dataflow& dataflow, const std::string& file,
                                   Problems& problems) {
  const std::size_t before = problems.size();
  const auto refuse = [&](std::size_t call, std::string found, std::string expected,
                          std::string hint = {}) {
    problems.push_back({file,
                        "dataflow call " + std::to_string(call) + " (" +
                            std::string(name_of(dataflow[call].phase)) + ")",
                        std::move(found), std::move(expected), std::move(hint)});
  };
  std::map<std::string, std::size_t> producer;
  std::map<Phase, std::size_t> first;
  for (std::size_t i = 0; i < dataflow.size(); ++i) {
    if (!first.emplace(dataflow[i].phase, i).second) {
      refuse(i, "the call a second time", "every call once");
    }
    for (const std::string& output : dataflow[i].outputs) {
      if (output == "prompts") {
        refuse(i, "the output 'prompts'", "another name", "prompts come from the data");
      } else if (!producer.emplace(output, i).second) {
        refuse(i, "the output '" + output + "' a second time", "one producer");
      }
    }
  }
  Graph graph(dataflow.size());
  std::vector<std::string> names{"prompts"};
  for (const auto& [name, call] : producer) names.push_back(name);
  for (std::size_t i = 0; i < dataflow.size(); ++i) {
    for (const std::string& input : dataflow[i].inputs) {
      const auto made = producer.find(input);
      if (made != producer.end()) {
        boost::add_edge(i, made->second, graph);
      } else if (input != "prompts") {
        refuse(i, "the input '" + input + "'", "an output of a call, or prompts",
               did_you_mean(input, names));
      }
    }
  }
  std::vector<int> order;
  try {
    boost::topological_sort(graph, std::back_inserter(order));
  } catch (const boost::not_a_dag&) {
    problems.push_back({file,
                        "dataflow",
                        "a cycle through " + cycle_of(graph, dataflow),
                        "calls that can be put in an order",
                        {}});
  }
  return problems.size() == before ? order : std::vector<int>{};
}

}  // namespace tessera
