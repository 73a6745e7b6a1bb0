// The search problem that a request poses.
#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/node_groups.h"
#include "planner/engines/engine.h"
#include "planner/engines/group_degrees.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/role/role_pricer.h"
#include "planner/request/candidate.h"
#include "planner/request/describe.h"
#include "planner/request/request.h"
#include "planner/request/settings_of_candidate.h"
#include "planner/search/exact.h"
#include "planner/search/search.h"
#include "planner/space/context_degrees.h"
#include "planner/space/layout_space.h"
#include "planner/space/placements.h"

namespace tessera {
namespace {

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

// The names of each block's roles. A placement is the same in whatever order it is written.
using Blocks = std::multiset<std::multiset<std::string>>;

Blocks blocks_of(const Placement& placement) {
  Blocks blocks;
  for (const std::vector<Role>& block : placement) {
    std::multiset<std::string> roles;
    for (const Role role : block) roles.emplace(name_of(role));
    blocks.insert(std::move(roles));
  }
  return blocks;
}

// Of "critic+reference | actor+rollout". A rollout that is not named is beside the actor.
Blocks blocks_in(const std::string& words) {  // without spaces
  std::vector<std::multiset<std::string>> blocks(1);
  std::string role;
  bool rollout = false;
  for (const char c : words + "|") {
    if (c != '+' && c != '|') {
      role += c;
      continue;
    }
    rollout = rollout || role == name_of(Role::rollout);
    blocks.back().insert(std::exchange(role, {}));
    if (c == '|') blocks.emplace_back();
  }
  blocks.pop_back();
  for (auto& block : blocks) {
    if (!rollout && block.contains(std::string(name_of(Role::actor)))) {
      block.emplace(name_of(Role::rollout));
    }
  }
  return {blocks.begin(), blocks.end()};
}

// Degrees of a layout that are tried whether they are fixed or not; cp apart.
bool is_tried(Field field) {
  constexpr std::array kTried = {Field::gpus, Field::tp,  Field::pp,       Field::dp,
                                 Field::ep,   Field::etp, Field::dp_shard, Field::head_layers};
  return std::find(kTried.begin(), kTried.end(), field) != kTried.end();
}

// One pool of GPUs for all that trains; the rollout and the reward model may have their own, the
// latter must beside a rollout with its own (verl's trainer/ppo/v1/trainer_separate_async.py).
bool has_one_pool(const Placement& placement) {
  const auto alone = [&](Role role) {
    return std::find(placement.begin(), placement.end(), std::vector{role}) != placement.end();
  };
  const auto& pool = placement.front();
  const bool reward_inside = std::find(pool.begin(), pool.end(), Role::reward) != pool.end();
  const bool rollout = alone(Role::rollout);
  if (rollout && reward_inside) return false;
  return placement.size() == std::size_t{1} + (rollout ? 1 : 0) + (alone(Role::reward) ? 1 : 0);
}

// The reference, which is the actor without its adapters, is where the actor is.
bool has_them_together(const Placement& placement) {
  return std::any_of(placement.begin(), placement.end(), [](const std::vector<Role>& block) {
    const auto has = [&](Role role) {
      return std::find(block.begin(), block.end(), role) != block.end();
    };
    return has(Role::actor) && has(Role::reference);
  });
}

// Steps ahead that a rollout with GPUs of its own may generate.
std::vector<int> allowed_lags(const PlanRequest& request, const Capabilities& capabilities) {
  std::vector<int> lags = capabilities.pools.rollout_lags;
  if (!request.one_step_off) std::erase_if(lags, [](int lag) { return lag > 0; });
  return lags;
}

// Views on which every role has the GPU type that is fixed for it.
std::function<bool(const Placement&, const std::vector<int>&)> fixed_types(
    const PlanRequest& request) {
  return [cluster = request.cluster, types = request.fixed.gpu_types](
             const Placement& placement, const std::vector<int>& views) {
    for (std::size_t block = 0; block < views.size(); ++block) {
      for (const Role role : placement[block]) {
        const auto wanted = types.find(role);
        if (wanted != types.end() && type_name(cluster, views[block]) != wanted->second) {
          return false;
        }
      }
    }
    return true;
  };
}

FieldValues values_about(Role role, const FixedSettings& settings) {
  FieldValues own;
  for (const auto& [key, value] : settings.values) {
    if (key.first == role) own[key.second] = value;
  }
  return own;
}

}  // namespace

std::vector<Placement> allowed_placements(const PlanRequest& request, Problems& problems) {
  const Capabilities& table = engine_named(request.engine).capabilities;
  const std::string wanted = without_spaces(request.fixed.placement);
  std::vector<Placement> all =
      all_placements(roles_of(request.workload), !allowed_lags(request, table).empty());
  if (table.pools.colocated) {
    std::erase_if(all, [](const Placement& placement) { return !has_one_pool(placement); });
  }
  if (request.lora.contains(Role::reference)) {
    std::erase_if(all, [](const Placement& placement) { return !has_them_together(placement); });
  }
  if (wanted.empty()) return all;
  const bool ahead = !request.one_step_off && !table.pools.rollout_lags.empty() &&
                     allowed_lags(request, table).empty();
  if (wanted == "standalone" && !ahead) return {all.back()};
  const Blocks blocks = blocks_in(wanted);
  std::vector<std::string> names;
  for (const Placement& placement : all) {
    names.push_back(without_spaces(describe(placement)));
    if (names.back() == wanted || blocks == blocks_of(placement)) return {placement};
  }
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  problems.push_back(
      {"--fix", "placement", wanted, known,
       ahead ? "a rollout with GPUs of its own generates one step ahead in engine '" +
                   request.engine + "', which is another algorithm: --one-step-off allows it"
             : did_you_mean(wanted, names)});
  return {};
}

SearchProblem search_problem(const PlanRequest& request, const Capabilities& capabilities,
                             CostEvaluator& costs, const std::optional<Evaluator>& evaluator,
                             bool replanned) {
  Problems none;
  SearchProblem problem;
  problem.cluster = request.cluster;
  problem.roles = roles_of(request.workload);
  problem.schedule = default_schedule(request.workload);
  problem.fixed_seconds = compute_call_seconds(request);
  problem.memory_limit = problem.priced_limit = memory_limit(request);
  if (const auto views = pool_views(request.cluster).size(); views > 1) {
    for (std::size_t view = 0; view < views; ++view) {
      const PlanRequest& seen = costs.request(static_cast<int>(view));
      const Bytes limit = memory_limit(seen);
      problem.views.push_back({compute_call_seconds(seen), limit, limit});
    }
  }
  problem.placements = allowed_placements(request, none);
  PlanRequest enumerated = request;
  FixedSettings degrees;
  for (const auto& [key, value] : request.fixed.values) {
    const bool tried =
        key.second == Field::cp ? tries_context(request.workload, value) : is_tried(key.second);
    if (replanned && tried) degrees.values[key] = value;
  }
  for (const auto& [key, value] : degrees.values) enumerated.fixed.values.erase(key);
  for (const Role role : problem.roles) {
    problem.settings[role].fixed = values_about(role, enumerated.fixed);
    problem.layouts[role].required = values_about(role, degrees);
    problem.shares_groups[role] = shares_groups(capabilities, role);
  }
  if (request.lora.contains(Role::reference)) {
    problem.alike_layouts = true;
    problem.shares_groups[Role::actor] = problem.shares_groups[Role::reference] = true;
  }
  problem.spaces = [enumerated, capabilities,
                    limits = std::make_shared<DistinctLimits>(request.workload)](Role role,
                                                                                 int gpus) {
    return enumerate_layouts(enumerated, capabilities, role, gpus, *limits);
  };
  problem.objective = request.objective;
  problem.equal_tp = engine_named(request.engine).fixed_order.has_value();
  if (!request.fixed.gpu_types.empty()) problem.allows_views = fixed_types(request);
  if (const std::vector<int> lags = allowed_lags(request, capabilities); !lags.empty()) {
    problem.policy_lags = lags;
  }
  problem.evaluator = evaluator.value_or(costs.evaluator());
  if (!evaluator) {
    problem.held = [&costs](const Candidate& candidate) {
      RolePricer& own = costs.pricer(candidate.role, candidate.view);
      return SearchProblem::Held{own.held(candidate), own.held_in_reshard(candidate)};
    };
  }
  return problem;
}

}  // namespace tessera
