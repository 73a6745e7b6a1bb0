#include "planner/search/search.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "cost_models/spec/node_groups.h"
#include "planner/plan/certified.h"
#include "planner/search/fixed.h"
#include "planner/search/role_operations.h"
#include "planner/search/settings_of_candidate.h"
#include "planner/search/slots.h"
#include "planner/search/space.h"
#include "planner/search/uncertainty.h"

namespace tessera {
namespace {

// Settings of roles that the workload does not have.
void check_settings(const PlanRequest& request, Problems& problems) {
  const std::vector<Role> roles = roles_of(request.workload);
  for (const auto& [key, value] : request.fixed.values) {
    if (std::find(roles.begin(), roles.end(), key.first) != roles.end()) continue;
    std::string present;
    for (const Role role : roles)
      present += (present.empty() ? "" : ", ") + std::string(name_of(role));
    problems.push_back({"--fix",
                        std::string(name_of(key.first)) + "." + std::string(name_of(key.second)),
                        "a role that the workload does not have", present, ""});
  }
}

// GPU types that the cluster does not have.
void check_types(const PlanRequest& request, Problems& problems) {
  std::vector<std::string> names;
  for (std::size_t view = 0; view < pool_views(request.cluster).size(); ++view) {
    names.push_back(type_name(request.cluster, static_cast<int>(view)));
  }
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  for (const auto& [role, type] : request.fixed.gpu_types) {
    if (std::find(names.begin(), names.end(), type) != names.end()) continue;
    problems.push_back({"--fix", std::string(name_of(role)) + ".gpu", "'" + type + "'", known,
                        did_you_mean(type, names)});
  }
}

void check_models(const PlanRequest& request, Problems& problems) {
  if (!request.models.contains("actor")) {
    problems.push_back({"request", "models", "no actor", "the actor's model", ""});
  }
  topological_order(request.workload.dataflow, "workload", problems);
  if (request.workload.dataflow.empty()) {
    problems.push_back({"workload", "dataflow", "no calls", "a dataflow", ""});
  }
  if (request.cluster.gpus() < 1) {
    problems.push_back({"cluster", "nodes", "no GPUs", "at least one", ""});
  }
}

// The best plans of a part of the space. Numbers of sequences between halvings are looked at where
// the winner has one: where the memory holds as many as there are, so it does for those near it.
std::vector<Solution> best_of(const SearchProblem& part, const PlanRequest& request,
                              const Solution& winner, FrontStore& store) {
  const auto rollout = winner.choice.find(Role::rollout);
  const bool memory_decides =
      rollout != winner.choice.end() &&
      rollout->second.max_sequences * rollout->second.dp < request.workload.sequences();
  return search_with_slots(part, request, store, memory_decides ? 2 : 0).result.best;
}

// Where there is only one placement the runner-up is the best plan with another actor layout.
std::vector<Solution> other_layouts(SearchProblem problem, const PlanRequest& request,
                                    const Solution& winner, FrontStore& store) {
  const auto all = problem.allows;
  const Candidate& chosen = winner.choice.at(Role::actor);
  problem.allows = [all, chosen](const Candidate& candidate) {
    const bool same = candidate.role == Role::actor && candidate.gpus == chosen.gpus &&
                      candidate.tp == chosen.tp && candidate.pp == chosen.pp;
    return !same && (!all || all(candidate));
  };
  problem.layouts[Role::actor] += "not tp" + std::to_string(chosen.tp) + " pp" +
                                  std::to_string(chosen.pp) + " on " + std::to_string(chosen.gpus);
  return best_of(problem, request, winner, store);
}

bool same_layout(const Candidate& a, const Candidate& b) {
  const auto degrees = [](const Candidate& c) {
    return std::tuple(c.gpus, c.tp, c.cp, c.ulysses, c.pp, c.vpp, c.dp, c.dp_shard, c.ep, c.etp,
                      c.head_layers);
  };
  return degrees(a) == degrees(b);
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
    near.allows = [&, role = role, chosen = chosen](const Candidate& candidate) {
      return (candidate.role != role || !same_layout(candidate, chosen)) &&
             (!problem.allows || problem.allows(candidate));
    };
    near.layouts = problem.layouts;
    near.layouts[role] += "not " + describe_layout(chosen) + " on " + std::to_string(chosen.gpus) +
                          " head" + std::to_string(chosen.head_layers);
    std::vector<Solution> best = best_of(near, request, winner, store);
    if (best.empty()) continue;
    nearest = std::move(best.front());
    near.better_than = nearest->as_incumbent();
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
  double best = winner.step_s, next = other.step_s;
  if (problem.objective == Objective::fewest_gpus) {
    if (other.gpus() != winner.gpus()) return 1;
  } else {
    best = value_of(problem.objective, winner);
    next = value_of(problem.objective, other);
  }
  return std::clamp((next - best) / (next + best), 0.0, 1.0);
}

struct Beaten {
  Solution solution;
  std::string note;
};

// The best of every other placement, and the nearest layouts of the winner's own.
std::vector<Beaten> beaten_by(const PlanRequest& request, const SearchProblem& problem,
                              const SearchResult& result, FrontStore& store) {
  const Solution& winner = result.best.front();
  std::vector<Beaten> others;
  for (std::size_t i = 1; i < result.best.size(); ++i) others.push_back({result.best[i], ""});
  if (others.empty()) {
    for (Solution& other : other_layouts(problem, request, winner, store)) {
      others.push_back({std::move(other), ""});
    }
  }
  if (auto nearest = nearest_layout(problem, request, winner, store)) {
    const bool known = std::any_of(others.begin(), others.end(), [&](const Beaten& other) {
      return other.solution.choice == nearest->choice && other.solution.sizes == nearest->sizes;
    });
    if (!known) others.push_back({*std::move(nearest), ", another layout"});
  }
  if (auto moved = on_other_types(problem, request, winner, store)) {
    const bool known = std::any_of(others.begin(), others.end(), [&](const Beaten& other) {
      return other.solution.choice == moved->choice && other.solution.sizes == moved->sizes;
    });
    if (!known) others.push_back({*std::move(moved), ", other GPU types"});
  }
  const auto value = [&](const Beaten& other) {
    return value_of(problem.objective, other.solution);
  };
  std::stable_sort(others.begin(), others.end(),
                   [&](const Beaten& a, const Beaten& b) { return value(a) < value(b); });
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
  const double deviation =
      step_deviation(difference(weighted(other), weighted(winner)), request.calibration);
  return deviation > 0 ? std::max(0.0, value(other) - value(winner)) / deviation : 0;
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

Certificate certificate_of(const PlanRequest& request, const SearchProblem& problem,
                           const SolvedSearch& solved, const Plan& plan, FrontStore& store) {
  const SearchResult& result = solved.result;
  const Solution& winner = result.best.front();
  Certificate certificate;
  certificate.objective = name_of(problem.objective);
  set_value(certificate, solved, problem.objective, plan);
  certificate.evaluated = result.evaluated;
  certificate.pruned = result.pruned;
  const std::vector<Beaten> others = beaten_by(request, problem, result, store);
  certificate.margin = others.empty() ? 0 : 1;
  const Solution* nearest = nullptr;
  for (const auto& [other, note] : others) {
    const std::string off = other.policy_lag > 0 ? ", one step off" : "";
    const std::string types = describe_types(problem.cluster, other);
    certificate.runner_up.push_back(
        {describe(other.placement) + off + note + (types.empty() ? "" : "," + types),
         describe(other), other.step_s, other.gpus(), types.empty() ? 0 : other.billed_gpus,
         settings_of(other)});
    for (const auto& [role, candidate] : other.choice) {
      if (types.empty()) break;
      certificate.runner_up.back().settings.push_back(
          std::string(name_of(role)) + ".gpu=" + type_name(problem.cluster, candidate.view));
    }
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

}  // namespace

void check_lengths(const PlanRequest& request, Problems& problems) {
  const LengthSpec& response = request.workload.response_tokens;
  for (const auto& [name, model] : request.models) {
    const std::int64_t positions = context_length(model.spec);
    const std::int64_t longest = longest_sequence(request.workload);
    if (positions == 0 || longest <= positions) continue;
    problems.push_back(
        {model.path.empty() ? name : model.path, "max_position_embeddings",
         std::to_string(positions) + " positions" +
             (positions == model.spec.max_positions ? "" : " with its rotary scaling"),
         "at least " + std::to_string(longest) + ", the workload's prompt_tokens " +
             std::to_string(request.workload.prompt_tokens) + " + response_tokens.max " +
             std::to_string(response.max),
         "shorten the workload, or extend the model's rope_scaling"});
  }
}

std::string describe_layout(const Candidate& candidate) {
  const Role role = candidate.role;
  std::string text = "tp" + std::to_string(candidate.tp);
  const auto degree = [&](const char* name, int value) {
    if (value > 1) text += " " + std::string(name) + std::to_string(value);
  };
  if (role != Role::rollout || candidate.pp > 1) text += " pp" + std::to_string(candidate.pp);
  text += " dp" + std::to_string(candidate.dp);
  degree(candidate.ulysses ? "ulysses" : "cp", candidate.cp);
  degree("vpp", candidate.vpp);
  degree("ep", candidate.ep);
  degree("etp", candidate.etp);
  degree("fsdp", candidate.dp_shard);
  if (candidate.zero > 0 && candidate.dp_shard == 1) {
    text += " zero" + std::to_string(candidate.zero);
  }
  if (candidate.recompute != Recompute::none) {
    text += " recompute=" + std::string(name_of(candidate.recompute));
  }
  if (candidate.offload.parameters) {
    text += role == Role::rollout ? " unmap" : " offload=all";
  } else if (candidate.offload.optimizer) {
    text += " offload=optimizer";
  }
  return text;
}

std::string describe_layout(const Plan& plan, const RolePlan& role) {
  return describe_layout(candidate_of(plan, role));
}

std::string describe_types(const ClusterSpec& cluster, const Solution& solution) {
  std::string text;
  if (cluster.groups.empty()) return text;
  for (const int view : solution.views) {
    text += (text.empty() ? " on " : " | ") + type_name(cluster, view);
  }
  return text;
}

std::string describe(const Solution& solution) {
  std::string text;
  for (const auto& [role, candidate] : solution.choice) {
    text +=
        (text.empty() ? "" : ", ") + std::string(name_of(role)) + " " + describe_layout(candidate);
  }
  return text;
}

std::string describe_layouts(const Plan& plan) {
  std::string text;
  for (const RolePlan& role : plan.roles) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(role.role)) + " " +
            describe_layout(plan, role);
  }
  return text;
}

std::string describe_placement(const Plan& plan) { return describe(placement_of(plan)); }

std::vector<std::string> settings_of(const Solution& solution) {
  FixedSettings settings;
  settings.placement = describe(solution.placement);
  for (const auto& [role, candidate] : solution.choice) {
    for (const Field field : fields_of(candidate)) {
      settings.values[{role, field}] = value_of(candidate, field);
    }
  }
  return words_of(settings);
}

struct Planner::State {
  PlanRequest request;
  CostEvaluator costs;
  FrontStore store;
  KnownReshards reshards;

  explicit State(const PlanRequest& asked) : request(with_traits(asked)), costs(request) {}

  static PlanRequest with_traits(PlanRequest asked) {
    asked.traits = traits_of(asked.engine, asked.choices);
    return asked;
  }

  std::optional<PlanOutcome> plan(const Capabilities& table,
                                  const std::optional<Evaluator>& evaluator, bool replanned) {
    const SearchProblem problem = search_problem(request, table, costs, evaluator, replanned);
    const SolvedSearch solved = search_with_slots(problem, request, store);
    if (solved.result.best.empty()) return explain_infeasible(request, table, costs);
    Plan plan = compose_plan(request, costs, solved.result.best.front(), &reshards);
    plan.certificate = certificate_of(request, problem, solved, plan, store);
    plan.certificate.digest = certified_digest(plan);
    return plan;
  }
};

namespace {

std::optional<Capabilities> checked(const PlanRequest& request, Problems& problems) {
  const std::size_t before = problems.size();
  const auto table = space_of(request.engine, problems);
  check_models(request, problems);
  check_lengths(request, problems);
  if (table) {
    for (const auto& [name, model] : request.models) {
      refuse_model(*table, model.spec, model.path.empty() ? name : model.path, "model_type",
                   problems);
    }
  }
  if (problems.size() != before) return std::nullopt;
  check_settings(request, problems);
  check_types(request, problems);
  allowed_placements(request, problems);
  if (problems.size() != before) return std::nullopt;
  return table;
}

}  // namespace

Planner::Planner(const PlanRequest& request) : state_(std::make_unique<State>(request)) {}
Planner::~Planner() = default;

std::optional<PlanOutcome> Planner::plan(const FixedSettings& fixed, Objective objective,
                                         Problems& problems) {
  state_->request.fixed = fixed;
  state_->request.objective = objective;
  const auto table = checked(state_->request, problems);
  if (!table) return std::nullopt;
  return state_->plan(*table, std::nullopt, true);
}

std::vector<int> pareto_counts(const ClusterSpec& cluster) {
  constexpr std::int64_t kMostNodes = 24;
  std::vector<int> counts;
  const auto per_node = static_cast<int>(cluster.gpus_per_node);
  for (int gpus = 1; gpus <= per_node; ++gpus) counts.push_back(gpus);  // blocks of 1 and 2 make 3
  const std::int64_t step = std::max<std::int64_t>(1, (cluster.nodes - 1) / kMostNodes);
  for (std::int64_t nodes = 2; nodes <= cluster.nodes; nodes += step) {
    counts.push_back(static_cast<int>(nodes) * per_node);
  }
  const auto all = static_cast<int>(cluster.gpus());
  if (counts.back() != all) counts.push_back(all);
  return counts;
}

std::vector<Solution> Planner::pareto(const FixedSettings& fixed, Problems& problems) {
  state_->request.fixed = fixed;
  const auto table = checked(state_->request, problems);
  if (!table) return {};
  const std::vector<int> counts = pareto_counts(state_->request.cluster);
  const SearchProblem problem = search_problem(state_->request, *table, state_->costs);
  return pareto_front(problem, counts, [&](const SearchProblem& limited) {
    return search_with_slots(limited, state_->request, state_->store).result;
  });
}

std::optional<PlanOutcome> make_plan(const PlanRequest& request, Problems& problems,
                                     const std::optional<Evaluator>& evaluator) {
  const auto table = checked(request, problems);
  if (!table) return std::nullopt;
  Planner::State state(request);
  return state.plan(*table, evaluator, false);
}

}  // namespace tessera
