#include "planner/search/certificate.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cost_models/spec/node_groups.h"
#include "planner/engines/engine.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "planner/pricing/fixed.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/uncertainty.h"
#include "planner/request/candidate.h"
#include "planner/request/describe.h"
#include "planner/request/objective.h"
#include "planner/request/settings_of_candidate.h"
#include "planner/request/solution.h"
#include "planner/search/incumbent.h"
#include "planner/search/slots.h"

namespace tessera {
namespace {

// Two candidates that agree in these have one layout.
constexpr std::array kLayoutFields{Field::gpus, Field::tp,  Field::cp,         Field::context,
                                   Field::pp,   Field::vpp, Field::dp,         Field::dp_shard,
                                   Field::ep,   Field::etp, Field::head_layers};

// The best plans of a part of the space. Numbers of sequences at once between the halvings are
// searched (search_with_slots) where memory limits the winner's: where it holds all of them, plans
// like the winner are taken to hold all, too.
std::vector<Solution> best_of(const SearchProblem& part, const PlanRequest& request,
                              const Solution& winner, FrontStore& store) {
  const auto rollout = winner.choice.find(Role::rollout);
  const bool memory_decides =
      rollout != winner.choice.end() &&
      rollout->second.max_sequences < most_sequences(request.workload,
                                                     engine_named(request.engine).prompts,
                                                     rollout->second.dp);
  return search_with_slots(part, request, store, memory_decides ? 2 : 0).result.best;
}

// Where there is only one placement the runner-up is the best plan with another layout of the
// actor, or of the first role where the workload has no actor.
std::vector<Solution> other_layouts(SearchProblem problem, const PlanRequest& request,
                                    const Solution& winner, FrontStore& store) {
  constexpr std::array kDegrees{Field::gpus, Field::tp, Field::pp};
  const auto& [role, chosen] = *winner.choice.begin();
  problem.layouts[role].excluded.insert(values_of(chosen, kDegrees));
  return best_of(problem, request, winner, store);
}

// The best plan of the winner's placement in which some role has another layout, however many
// change with it: the best of those without the winner's layout of one role, role by role.
std::optional<Solution> nearest_layout(const SearchProblem& problem, const PlanRequest& request,
                                       const Solution& winner, FrontStore& store) {
  SearchProblem near = problem;
  near.placements = {winner.placement};
  near.policy_lags = {winner.policy_lag};
  std::optional<Solution> nearest;
  for (const auto& [role, chosen] : winner.choice) {
    near.layouts = problem.layouts;
    near.layouts[role].excluded.insert(values_of(chosen, kLayoutFields));
    std::vector<Solution> best = best_of(near, request, winner, store);
    if (best.empty()) continue;
    nearest = std::move(best.front());
    near.better_than = incumbent_of(*nearest);
  }
  return nearest;
}

// The best plan of the winner's placement with its blocks on other GPU types.
std::optional<Solution> on_other_types(const SearchProblem& problem, const PlanRequest& request,
                                       const Solution& winner, FrontStore& store) {
  if (problem.views.empty()) return std::nullopt;
  SearchProblem other = problem;
  other.placements = {winner.placement};
  other.policy_lags = {winner.policy_lag};
  other.allows_views = [&](const Placement& placement, const std::vector<int>& views) {
    return views != winner.views &&
           (!problem.allows_views || problem.allows_views(placement, views));
  };
  std::vector<Solution> best = best_of(other, request, winner, store);
  if (best.empty()) return std::nullopt;
  return std::move(best.front());
}

// Relative error of both plans' times at which the other one wins. GPUs are counted, not modelled:
// where they are the objective, only plans on as few of them can win.
double margin_between(const SearchProblem& problem, const Solution& winner, const Solution& other) {
  double best = winner.step_s.value, next = other.step_s.value;
  if (problem.objective == Objective::fewest_gpus) {
    if (other.gpus() != winner.gpus()) return 1;
  } else {
    best = value_of(problem.objective, winner);
    next = value_of(problem.objective, other);
  }
  return std::clamp((next - best) / (next + best), 0.0, 1.0);
}

std::vector<Rival> others_of(const PlanRequest& request, const SearchProblem& problem,
                             const SearchResult& result, FrontStore& store) {
  const Solution& winner = result.best.front();
  std::vector<Rival> others;
  for (std::size_t i = 1; i < result.best.size(); ++i) others.push_back({result.best[i], ""});
  if (others.empty()) {
    for (Solution& other : other_layouts(problem, request, winner, store)) {
      others.push_back({std::move(other), ""});
    }
  }
  if (auto nearest = nearest_layout(problem, request, winner, store)) {
    const bool known = std::any_of(others.begin(), others.end(), [&](const Rival& other) {
      return other.solution.choice == nearest->choice && other.solution.sizes == nearest->sizes;
    });
    if (!known) others.push_back({*std::move(nearest), ", another layout"});
  }
  if (auto moved = on_other_types(problem, request, winner, store)) {
    const bool known = std::any_of(others.begin(), others.end(), [&](const Rival& other) {
      return other.solution.choice == moved->choice && other.solution.sizes == moved->sizes;
    });
    if (!known) others.push_back({*std::move(moved), ", other GPU types"});
  }
  const auto value = [&](const Rival& other) {
    return value_of(problem.objective, other.solution);
  };
  std::stable_sort(others.begin(), others.end(),
                   [&](const Rival& a, const Rival& b) { return value(a) < value(b); });
  return others;
}

// By how many standard deviations of the difference a plan's objective is behind the winner's.
double deviations_between(const PlanRequest& request, const SearchProblem& problem,
                          const Solution& winner, const Solution& other) {
  const bool by_gpus =
      problem.objective == Objective::cost || problem.objective == Objective::tokens_per_gpu;
  const auto weighted = [&](const Solution& solution) {
    std::vector<Sensitivity> parts = step_sensitivities(request, solution);
    for (Sensitivity& part : parts) part.seconds *= by_gpus ? solution.gpus() : 1;
    return parts;
  };
  const auto value = [&](const Solution& solution) {
    return solution.step_s * (by_gpus ? solution.gpus() : 1);
  };
  const Seconds deviation =
      step_deviation(difference(weighted(other), weighted(winner)), request.calibration);
  return deviation > 0 ? std::max(Seconds{}, value(other) - value(winner)) / deviation : 0;
}

// Of the block that is likeliest to run out, by the bytes that the search counts.
double fits_of(const SearchProblem& problem, CostEvaluator& costs, const Solution& solution) {
  double least = 1;
  for (const std::vector<Role>& block : solution.placement) {
    std::vector<RoleCost> together;
    for (const Role role : block) {
      together.push_back(problem.evaluator.role(solution.choice.at(role)));
    }
    const PlanRequest& seen = costs.request(solution.choice.at(block.front()).view);
    least = std::min(least, fit_probability(seen, bytes_together(together)));
  }
  return least;
}

// Value, bound and gap of `plan`, made of the winner, in the objective's unit.
void set_value(Certificate& certificate, const SolvedSearch& solved, Objective objective,
               const Plan& plan) {
  const Solution& winner = solved.result.best.front();
  certificate.gap = solved.gap;
  if (objective == Objective::tokens_per_gpu) {  // the only one of which more is better
    certificate.value = plan.prediction.tokens_per_s_per_gpu;
    certificate.lower_bound = certificate.value / (1 - solved.gap);
    return;
  }
  const bool counts = objective == Objective::fewest_gpus;
  certificate.value = counts ? winner.gpus() : value_of(objective, winner);
  certificate.lower_bound = certificate.value * (1 - solved.gap);
}

}  // namespace

RunnerUp runner_up_of(const ClusterSpec& cluster, const Solution& other, const std::string& note) {
  const std::string off = other.policy_lag > 0 ? ", one step off" : "";
  const std::string types = describe_types(cluster, other);
  RunnerUp named{describe(other.placement) + off + note + (types.empty() ? "" : "," + types),
                 describe(other),
                 other.step_s,
                 other.gpus(),
                 types.empty() ? 0 : other.billed_gpus,
                 settings_of(other)};
  for (const auto& [role, candidate] : other.choice) {
    if (types.empty()) break;
    named.settings.push_back(std::string(name_of(role)) +
                             ".gpu=" + type_name(cluster, candidate.view));
  }
  return named;
}

std::vector<Rival> rivals_of(const PlanRequest& request, const SearchProblem& problem,
                             SolvedSearch& solved, FrontStore& store) {
  const auto value = [&](const Solution& solution) {
    return value_of(problem.objective, solution);
  };
  std::vector<Solution>& best = solved.result.best;
  const double bound = value(best.front()) * (1 - solved.gap);
  for (;;) {
    std::vector<Rival> others = others_of(request, problem, solved.result, store);
    if (others.empty() || value(others.front().solution) >= value(best.front())) return others;
    take_up(problem.objective, std::move(others.front().solution), best);
    solved.gap = std::max(0.0, 1 - bound / value(best.front()));
  }
}

Certificate certificate_of(const PlanRequest& request, const SearchProblem& problem,
                           const SolvedSearch& solved, const std::vector<Rival>& others,
                           const Plan& plan) {
  const SearchResult& result = solved.result;
  const Solution& winner = result.best.front();
  Certificate certificate;
  certificate.objective = name_of(problem.objective);
  certificate.risk = request.risk;
  certificate.fixed = words_of(request.fixed);
  set_value(certificate, solved, problem.objective, plan);
  certificate.evaluated = result.evaluated;
  certificate.pruned = result.pruned;
  certificate.margin = others.empty() ? 0 : 1;
  const Solution* nearest = nullptr;
  for (const auto& [other, note] : others) {
    certificate.runner_up.push_back(runner_up_of(problem.cluster, other, note));
    const double margin = margin_between(problem, winner, other);
    if (margin >= certificate.margin) continue;
    certificate.margin = margin;
    nearest = &other;
  }
  if (nearest != nullptr) {
    certificate.margin_deviations = deviations_between(request, problem, winner, *nearest);
  }
  return certificate;
}

SaferSolution find_safer(const PlanRequest& request, const SearchProblem& problem,
                         CostEvaluator& costs, SolvedSearch& solved, FrontStore& store) {
  SaferSolution safer{.risk = kSafetyStep * request.risk};
  if (safer.risk < kLeastRisk) return {};
  std::vector<Solution>& best = solved.result.best;
  safer.fits = fits_of(problem, costs, best.front());
  if (safer.fits >= 1 - safer.risk) {
    safer.best = best.front();
    return safer;
  }
  SearchProblem tighter = problem;  // its prices hold for fewer bytes as well
  tighter.memory_limit = memory_limit(request, safer.risk);
  for (std::size_t view = 0; view < tighter.views.size(); ++view) {
    tighter.views[view].memory_limit =
        memory_limit(costs.request(static_cast<int>(view)), safer.risk);
  }
  std::vector<Solution> found = search_with_slots(tighter, request, store).result.best;
  if (found.empty()) return safer;
  safer.best = std::move(found.front());
  safer.fits = fits_of(problem, costs, *safer.best);
  const auto value = [&](const Solution& one) { return value_of(problem.objective, one); };
  if (value(*safer.best) > value(best.front())) return safer;
  std::erase_if(best, [&](const Solution& other) {
    return other.placement == safer.best->placement && other.policy_lag == safer.best->policy_lag;
  });
  best.insert(best.begin(), *safer.best);
  return safer;
}

SaferPlan safer_plan(const SearchProblem& problem, const SaferSolution& safer) {
  SaferPlan plan{.risk = safer.risk};
  if (!safer.best) return plan;
  plan.fits = safer.fits;
  plan.plan = runner_up_of(problem.cluster, *safer.best, "");
  return plan;
}

}  // namespace tessera
