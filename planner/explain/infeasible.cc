#include "planner/explain/infeasible.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/node_groups.h"
#include "planner/engines/group_degrees.h"
#include "planner/explain/nearest_fix.h"
#include "planner/plan/amounts.h"
#include "planner/pricing/fixed.h"
#include "planner/pricing/memory_limit.h"
#include "planner/request/candidate.h"
#include "planner/request/describe.h"
#include "planner/request/solution.h"
#include "planner/search/exact.h"
#include "planner/search/search.h"
#include "planner/space/degree_limits.h"
#include "planner/space/engine_limits.h"
#include "planner/space/layout_space.h"
#include "planner/space/place_pools.h"

namespace tessera {
namespace {

// The candidate of a role on `gpus` ranks that needs the least memory, with that need.
std::optional<std::pair<Candidate, RoleCost>> leanest(const PlanRequest& request,
                                                      const Capabilities& capabilities,
                                                      CostEvaluator& costs, Role role, int gpus,
                                                      int view = 0) {
  std::optional<std::pair<Candidate, RoleCost>> best;
  for (Candidate& candidate : enumerate_candidates(request, capabilities, role, gpus)) {
    candidate.view = view;
    const RoleCost cost = costs.cost(candidate);
    if (!best || cost.peak < best->second.peak) best = {candidate, cost};
  }
  return best;
}

Phase worst_phase(const PlanRequest& request, CostEvaluator& costs, const Candidate& candidate) {
  Phase worst = Phase::save_checkpoint;
  std::int64_t most = -1;
  for (const Phase phase : phases_of(request.workload, candidate.role)) {
    const std::int64_t total = costs.memory(candidate, phase).total();
    if (total > most) {
      most = total;
      worst = phase;
    }
  }
  return worst;
}

// Of a view's types, the one that its memory limit is from.
std::string least_memory_type(const PlanRequest& request, int view) {
  const GroupRange range = pool_views(request.cluster)[static_cast<std::size_t>(view)];
  const auto begin = request.cluster.groups.begin();
  return std::min_element(begin + range.first, begin + range.last + 1,
                          [](const NodeGroup& a, const NodeGroup& b) {
                            return a.device.memory.value < b.device.memory.value;
                          })
      ->device.name;
}

MemoryShortage shortage_of(const PlanRequest& request, CostEvaluator& costs,
                           const Candidate& candidate, Bytes others) {
  MemoryShortage shortage;
  shortage.role = candidate.role;
  shortage.phase = worst_phase(request, costs, candidate);
  const MemoryUse use = costs.memory(candidate, shortage.phase);
  shortage.rank = first_rank_of_stage(candidate, costs.request().traits,
                                      costs.fullest_stage(candidate, shortage.phase));
  shortage.layout = describe_layout(candidate) + " on " + std::to_string(candidate.gpus);
  std::tie(shortage.tensor_class, shortage.class_bytes) = largest_class(use);
  // With the reserve, as every peak that is shown.
  const PlanRequest& seen = costs.request(candidate.view);
  shortage.limit = usable_memory(seen);
  shortage.needed = Bytes{use.total()} + others + shortage.limit - memory_limit(seen);
  if (!request.cluster.groups.empty()) shortage.gpu = least_memory_type(request, candidate.view);
  return shortage;
}

std::string sentence(const MemoryShortage& shortage) {
  return "rank " + std::to_string(shortage.rank) +
         (shortage.gpu.empty() ? "" : " of a pool on " + shortage.gpu) + " in phase " +
         std::string(name_of(shortage.phase)) + " (" + std::string(name_of(shortage.role)) + ", " +
         shortage.layout + "): needs " + in_gib(shortage.needed) + " of " + in_gib(shortage.limit) +
         ", " + in_gib(shortage.missing()) + " too much; largest part " + shortage.tensor_class +
         ", " + in_gib(shortage.class_bytes);
}

bool allowed_on(const PlanRequest& request, Role role, int view) {
  const auto wanted = request.fixed.gpu_types.find(role);
  return wanted == request.fixed.gpu_types.end() ||
         wanted->second == type_name(request.cluster, view);
}

// Roles of one pool in every allowed placement that are to be on different GPU types; empty = none.
std::string two_types(const PlanRequest& request) {
  Problems none;
  const auto& types = request.fixed.gpu_types;
  std::string why;
  for (const Placement& placement : allowed_placements(request, none)) {
    std::string here;
    for (const auto& [role, type] : types) {
      for (const auto& [other, second] : types) {
        const bool together = std::any_of(placement.begin(), placement.end(),
                                          [&, a = role, b = other](const auto& block) {
                                            return std::count(block.begin(), block.end(), a) > 0 &&
                                                   std::count(block.begin(), block.end(), b) > 0;
                                          });
        if (!together || type == second || !here.empty()) continue;
        here = std::string(name_of(role)) + ".gpu=" + type + " and " + std::string(name_of(other)) +
               ".gpu=" + second + ": placement '" + describe(placement) +
               "' has both roles in one pool, whose GPUs are all of the types "
               "that one name says";
      }
    }
    if (here.empty()) return {};
    if (why.empty()) why = here;
  }
  return why;
}

// Fixed degrees in which roles differ that have one set of process groups in every allowed
// placement; empty = none.
std::string two_sets_of_groups(const PlanRequest& request, const Capabilities& capabilities) {
  constexpr std::array kFields{Field::tp, Field::pp, Field::vpp, Field::cp, Field::ep, Field::etp};
  Problems none;
  std::string why;
  for (const Placement& placement : allowed_placements(request, none)) {
    std::string here;
    for (const std::vector<Role>& block : placement) {
      for (const Field field : kFields) {
        std::optional<std::pair<Role, std::int64_t>> first;
        for (const Role role : block) {
          const auto value = request.fixed.find(role, field);
          if (!value || !shares_groups(capabilities, role)) continue;
          if (!first) first = {role, *value};
          if (first->second == *value || !here.empty()) continue;
          const auto word = [&](Role of, std::int64_t degree) {
            return std::string(name_of(of)) + "." + std::string(name_of(field)) + "=" +
                   std::to_string(degree);
          };
          here = word(first->first, first->second) + " and " + word(role, *value) + ": " +
                 why_groups_agree(request.engine);
        }
      }
    }
    if (here.empty()) return {};
    if (why.empty()) why = here;
  }
  return why;
}

// Shortages of roles that do not even fit alone, each at its leanest over all sizes.
void alone(const PlanRequest& request, const Capabilities& capabilities, CostEvaluator& costs,
           Infeasible& result) {
  for (const Role role : roles_of(request.workload)) {
    std::optional<std::pair<Candidate, RoleCost>> best;
    const auto missing = [&](const std::pair<Candidate, RoleCost>& one) {
      return one.second.peak - memory_limit(costs.request(one.first.view));
    };
    for (std::size_t v = 0; v < pool_views(request.cluster).size(); ++v) {
      const auto view = static_cast<int>(v);
      if (!allowed_on(request, role, view)) continue;
      for (const int gpus : block_sizes(request.cluster)) {
        if (!fits_view(request.cluster, gpus, view)) continue;
        const auto here = leanest(request, capabilities, costs, role, gpus, view);
        if (here && (!best || missing(*here) < missing(*best))) best = here;
      }
    }
    const std::string why = best ? std::string() : refused_degrees(request, capabilities, role);
    if (!why.empty()) {
      result.reasons.push_back(why);
    } else if (!best) {
      result.reasons.push_back(
          "no layout of the " + std::string(name_of(role)) + " on up to " +
          std::to_string(request.cluster.gpus()) +
          " GPUs satisfies the fixed settings, the model's heads and layers and a dp that divides "
          "its batch");
    } else if (missing(*best) > 0) {
      result.shortages.push_back(shortage_of(request, costs, best->first, {}));
    }
  }
}

// A plan of those that need the least memory beyond what every GPU has, to 1 %; none = even with 64
// times as much nothing fits.
std::optional<Solution> leanest_plan(const SearchProblem& problem) {
  std::optional<Solution> leanest;
  const auto fits = [&](double factor) {
    const auto scaled = [&](Bytes& limit) {
      limit = Bytes{static_cast<std::int64_t>((factor * limit).value)};
    };
    SearchProblem larger = problem;
    scaled(larger.memory_limit);
    for (SearchProblem::View& view : larger.views) scaled(view.memory_limit);
    FrontStore store;
    std::optional<Solution> found = any_plan(larger, store);
    if (!found) return false;
    leanest = std::move(found);
    return true;
  };
  double low = 1, high = 2;
  for (; high <= 64 && !fits(high); high *= 2) low = high;
  if (!leanest) return std::nullopt;
  while (high > 1.01 * low) {
    const double middle = std::sqrt(low * high);
    (fits(middle) ? high : low) = middle;
  }
  return leanest;
}

// What binds where roles share GPUs: a phase of the role that adds most to what all keep, or the
// reshard, in which the rollout's weights are there as well.
MemoryShortage shortage_together(const PlanRequest& request, CostEvaluator& costs,
                                 const std::vector<Candidate>& block) {
  std::vector<RoleCost> roles;
  for (const Candidate& candidate : block) roles.push_back(costs.cost(candidate));
  std::size_t worst = 0;
  Bytes resident, in_reshard;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    resident += roles[i].resident;
    in_reshard += roles[i].in_reshard - roles[i].resident;
    if (roles[i].peak - roles[i].resident > roles[worst].peak - roles[worst].resident) worst = i;
  }
  const RoleCost& cost = roles[worst];
  MemoryShortage shortage = shortage_of(request, costs, block[worst], resident - cost.resident);
  if (in_reshard <= cost.peak - cost.resident) return shortage;
  const auto rollout = std::find_if(block.begin(), block.end(), [](const Candidate& candidate) {
    return candidate.role == Role::rollout;
  });
  if (rollout == block.end()) return shortage;
  shortage = shortage_of(request, costs, *rollout, {});
  const PlanRequest& seen = costs.request(rollout->view);
  shortage.needed = resident + in_reshard + shortage.limit - memory_limit(seen);
  shortage.phase = Phase::reshard;
  shortage.tensor_class = "weights";
  shortage.class_bytes = Bytes{costs.memory(*rollout, Phase::gen).weights};
  return shortage;
}

// Every role fits alone: the plan that comes nearest to fitting.
void together(const PlanRequest& request, const Capabilities& capabilities, CostEvaluator& costs,
              Infeasible& result) {
  const SearchProblem problem = search_problem(request, capabilities, costs);
  if (const auto leanest = leanest_plan(problem)) {
    std::optional<MemoryShortage> most;
    for (const std::vector<Role>& roles : leanest->placement) {
      std::vector<Candidate> block;
      for (const Role role : roles) block.push_back(leanest->choice.at(role));
      MemoryShortage shortage = shortage_together(request, costs, block);
      if (!most || shortage.missing() > most->missing()) most = std::move(shortage);
    }
    if (most->missing() > 0) {
      result.shortages.push_back(*std::move(most));
      return;
    }
  }
  result.reasons.push_back(
      "every role fits alone, but no placement and split of " +
      std::to_string(request.cluster.gpus()) + " GPUs that the settings allow holds them all" +
      (capabilities.pools.one_set_of_groups ? "; " + why_groups_agree(request.engine) : ""));
}

}  // namespace

Infeasible why_infeasible(const PlanRequest& request, const Capabilities& capabilities,
                          CostEvaluator& costs) {
  Infeasible result;
  for (const EngineLimit& limit : engine_limits(request, capabilities)) {
    result.reasons.push_back(describe(limit, request.engine));
  }
  if (!result.reasons.empty()) return result;
  alone(request, capabilities, costs, result);
  if (const std::string why = two_types(request); !why.empty()) result.reasons.push_back(why);
  if (const std::string why = two_sets_of_groups(request, capabilities); !why.empty()) {
    result.reasons.push_back(why);
  }
  if (result.shortages.empty() && result.reasons.empty()) {
    together(request, capabilities, costs, result);
  }
  for (const MemoryShortage& shortage : result.shortages) {
    result.reasons.push_back(sentence(shortage));
  }
  return result;
}

Infeasible explain_infeasible(const PlanRequest& request, const Capabilities& capabilities,
                              CostEvaluator& costs) {
  Infeasible result = why_infeasible(request, capabilities, costs);
  const std::vector<EngineLimit> beyond = engine_limits(request, capabilities);
  const NearestFix fix = beyond.empty() ? nearest_fix(request, capabilities)
                                        : fix_of_limits(request, capabilities, beyond);
  result.nearest_fix = fix.words;
  result.change = fix.change;
  return result;
}

}  // namespace tessera
