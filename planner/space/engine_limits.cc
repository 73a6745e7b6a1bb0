#include "planner/space/engine_limits.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "cost_models/spec/expert_parallel.h"
#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
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

// A degree that the rollout's server has of this model, and why.
std::optional<std::string> refused_by_server(const Capabilities& table, const ModelSpec& model,
                                             std::int64_t tp) {
  if (table.serving.refusals == nullptr) return std::nullopt;
  const std::vector<std::string> why =
      table.serving.refusals(model, {{.tp = static_cast<int>(tp)}});
  if (why.empty()) return std::nullopt;
  return "no such degree (" + why.front() + ")";
}

// What the engine has instead of the value; nullopt where it has the value itself.
std::optional<std::string> instead(const Capabilities& table, const PlanRequest& request, Role role,
                                   Field field, std::int64_t value) {
  const std::int64_t longest = longest_sequence(request.workload);
  constexpr int kAny = std::numeric_limits<int>::max();
  const bool served = role == Role::rollout || (role == Role::reward && table.serving.reward);
  const auto degree = [&](bool has) { return beyond(value, has && !served ? kAny : 1); };
  switch (field) {
    case Field::tp:
      if (role == Role::rollout) return refused_by_server(table, model_of(request, role), value);
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
      if (value == kOffloadAll && role == Role::actor && !table.offload.actor_parameters)
        return "none or optimizer";
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

// Why no layout with the role's fixed settings has experts that the engine runs (ExpertRule); empty
// where one may. What is not fixed is taken as the rule has least against it.
std::string experts_refused(const PlanRequest& request, Role role, ExpertRule rule) {
  const auto find = [&](Field field) { return request.fixed.find(role, field); };
  const auto fixed = [&](Field field, int otherwise) {
    return static_cast<int>(find(field).value_or(otherwise));
  };
  ParallelLayout layout{
      {.tp = fixed(Field::tp, 1), .cp = fixed(Field::cp, 1), .ep = fixed(Field::ep, 1)},
      fixed(Field::zero, 0)};
  if (layout.zero > 0 && !(find(Field::tp) && find(Field::pp))) layout.zero = 0;
  const auto gpus = static_cast<int>(request.cluster.gpus());
  const int model = layout.tp * layout.cp * fixed(Field::pp, 1);
  const int dp = fixed(Field::dp, std::max(1, gpus / model));
  layout.dp = dp;
  std::string why;
  for (int shard = layout.zero == 3 ? 2 : 1; shard <= (layout.zero == 3 ? dp : 1); ++shard) {
    if (dp % shard != 0 || (find(Field::dp_shard) && *find(Field::dp_shard) != shard)) continue;
    layout.dp_shard = shard;
    for (const int etp : {1, layout.tp}) {
      for (const bool scattered : {false, true}) {
        layout.etp = fixed(Field::etp, etp);
        layout.sequence_parallel = fixed(Field::sequence_parallel, scattered ? 1 : 0) == 1;
        why = rule(model_of(request, role), layout);
        if (why.empty()) return {};
      }
    }
  }
  return why;
}

// What the engine has instead of a degree of experts that is fixed, as `instead`.
std::optional<std::string> instead_of_experts(const PlanRequest& request, const Capabilities& table,
                                              Role role, Field field) {
  const bool served = role == Role::rollout || (role == Role::reward && table.serving.reward);
  const std::int64_t ep = request.fixed.find(role, Field::ep).value_or(0);
  const bool asks = (field == Field::ep && ep > 1) || (field == Field::etp && ep == 1);
  const bool own = table.serving.experts == ServedExperts::any_part;
  const ExpertRule rule = !served ? table.training.experts : own ? served_expert_refusal : nullptr;
  if (!asks || rule == nullptr) return std::nullopt;
  const std::string why = experts_refused(request, role, rule);
  if (why.empty()) return std::nullopt;
  return (field == Field::ep ? "1" : "etp = tp") + std::string(" (not ") + why + ")";
}

// What adapters leave of a setting of their role, as `instead`.
std::optional<std::string> instead_beside_adapters(const PlanRequest& request, Role role,
                                                   Field field, std::int64_t value) {
  if (!request.lora.contains(role)) return std::nullopt;
  const AdapterTraits& adapters = request.traits.adapters;
  if (field == Field::zero && (value == 1 || value == 2) && adapters.replicated) {
    return "0 or 3 with adapters, which every replica has whole,";
  }
  const bool unmapped = field == Field::offload && role == Role::rollout && value != kOffloadNone;
  if (unmapped && adapters.minimal) return "none with adapters, whose weights move once,";
  return std::nullopt;
}

std::optional<std::string> instead_here(const Capabilities& table, const PlanRequest& request,
                                        Role role, Field field, std::int64_t value) {
  if (auto kept = instead_beside_adapters(request, role, field, value)) return kept;
  const auto has = instead(table, request, role, field, value);
  return has ? has : instead_of_experts(request, table, role, field);
}

}  // namespace

std::vector<EngineLimit> engine_limits(const PlanRequest& request, const Capabilities& table) {
  std::vector<EngineLimit> limits;
  std::vector<std::string> engines = engine_names();
  engines.emplace_back(kAnyEngine);
  for (const auto& [key, value] : request.fixed.values) {
    const auto& [role, field] = key;
    const auto has = instead_here(table, request, role, field, value);
    if (!has) continue;
    FixedSettings own;
    own.values[key] = value;
    EngineLimit limit{role, field, words_of(own).front(), *has, {}};
    for (const std::string& engine : engines) {
      const Engine& other = engine_named(engine);
      const bool even =
          field != Field::tp || role != Role::rollout ||
          divides_heads(other.capabilities.serving.heads, model_of(request, role), value);
      if (runs(other, role) && even &&
          !instead_here(other.capabilities, request, role, field, value)) {
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
  text += "; plan for engine ";
  for (const std::string& other : limit.engines) {
    const bool last = &other == &limit.engines.back();
    text += (&other == &limit.engines.front() ? "" : last ? " or " : ", ") + other;
  }
  return text;
}

}  // namespace tessera
