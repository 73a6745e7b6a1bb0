#include "planner/space/engine_limits.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "planner/engines/engine.h"
#include "planner/plan/recompute.h"

namespace tessera {
namespace {

std::optional<std::string> beyond(std::int64_t value, int most) {
  if (value <= most) return std::nullopt;
  return most == 1 ? "1" : "at most " + std::to_string(most);
}

template <class T, class Name>
std::optional<std::string> outside(const std::vector<T>& known, T value, const Name& name) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return std::nullopt;
  std::string all;
  for (const T& each : known) all += (all.empty() ? "" : " or ") + name(each);
  return all;
}

// What the engine has instead of the value; nullopt where it has the value itself. `longest`:
// tokens of a longest sequence.
std::optional<std::string> instead(const Capabilities& table, Role role, Field field,
                                   std::int64_t value, std::int64_t longest) {
  constexpr int kAny = std::numeric_limits<int>::max();
  const bool served = role == Role::rollout || (role == Role::reward && table.serving.reward);
  const auto degree = [&](bool has) { return beyond(value, has && !served ? kAny : 1); };
  switch (field) {
    case Field::tp:
      return beyond(value, served ? kAny : table.training.most_tp);
    case Field::pp:
      return beyond(value, served ? table.serving.most_pp : table.training.most_pp);
    case Field::cp:
      return degree(table.training.context_parallel);
    case Field::vpp:
      return degree(table.training.virtual_stages);
    case Field::ep:
    case Field::etp:
      return beyond(value, (served ? table.serving.experts != ServedExperts::together
                                   : table.training.expert_parallel)
                               ? kAny
                               : 1);
    case Field::dp_shard:
      return degree(table.training.fully_sharded);
    case Field::zero:
      return outside(table.training.zero, static_cast<int>(value),
                     [](int stage) { return std::to_string(stage); });
    case Field::recompute:
      return outside(table.training.recompute, static_cast<Recompute>(value),
                     [](Recompute mode) { return std::string(name_of(mode)); });
    case Field::offload:
      if (value == kOffloadNone && role == Role::reference && table.offload.reference_on_host)
        return "all";
      if (value == kOffloadNone ||
          (role == Role::rollout ? table.offload.rollout : table.offload.trained))
        return std::nullopt;
      return "none";
    case Field::context:
      if (table.training.ulysses.value_or(value == 1) == (value == 1)) return std::nullopt;
      return *table.training.ulysses ? "ulysses" : "ring";
    case Field::sequence_parallel:
      if (value == 0 || (table.training.sequence_parallel && !served)) return std::nullopt;
      return "0";
    case Field::tokens:
    case Field::update_tokens:
      if (served || !table.training.whole_sequences || value >= longest) return std::nullopt;
      return "at least a longest sequence, " + std::to_string(longest) + ",";
    case Field::head_layers:
    case Field::gpus:
    case Field::dp:
    case Field::max_sequences:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::vector<EngineLimit> engine_limits(const PlanRequest& request, const Capabilities& table) {
  std::vector<EngineLimit> limits;
  std::vector<std::string> engines = engine_names();
  engines.emplace_back(kAnyEngine);
  const std::int64_t longest = longest_sequence(request.workload);
  for (const auto& [key, value] : request.fixed.values) {
    const auto& [role, field] = key;
    const auto has = instead(table, role, field, value, longest);
    if (!has) continue;
    FixedSettings own;
    own.values[key] = value;
    EngineLimit limit{role, field, words_of(own).front(), *has, {}};
    for (const std::string& engine : engines) {
      const Engine& other = engine_named(engine);
      if (runs(other, role) && !instead(other.capabilities, role, field, value, longest)) {
        limit.engines.push_back(engine);
      }
    }
    limits.push_back(std::move(limit));
  }
  return limits;
}

std::string describe(const EngineLimit& limit, const std::string& engine) {
  std::string text =
      limit.setting + " is beyond engine '" + engine + "', which has " + limit.limit + " there";
  if (limit.engines.empty()) return text;
  text += "; plan with --engine ";
  for (const std::string& other : limit.engines) {
    const bool last = &other == &limit.engines.back();
    text += (&other == &limit.engines.front() ? "" : last ? " or " : ", ") + other;
  }
  return text;
}

}  // namespace tessera
