#include "planner/search/search.h"

#include <algorithm>
#include <sstream>

#include "planner/search/space.h"

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

// Where there is only one placement the runner-up is the best plan with another actor layout.
std::vector<Solution> other_layouts(SearchProblem problem, const Solution& winner,
                                    FrontStore& store) {
  const auto all = problem.allows;
  const Candidate& chosen = winner.choice.at(Role::actor);
  problem.allows = [all, chosen](const Candidate& candidate) {
    const bool same = candidate.role == Role::actor && candidate.gpus == chosen.gpus &&
                      candidate.tp == chosen.tp && candidate.pp == chosen.pp;
    return !same && (!all || all(candidate));
  };
  problem.layouts[Role::actor] += "not tp" + std::to_string(chosen.tp) + " pp" +
                                  std::to_string(chosen.pp) + " on " + std::to_string(chosen.gpus);
  return search_exactly(problem, store).best;
}

Certificate certificate_of(const SearchProblem& problem, const SearchResult& result,
                           FrontStore& store) {
  const Solution& winner = result.best.front();
  Certificate certificate;
  certificate.objective = name_of(problem.objective);
  certificate.value = certificate.lower_bound =
      problem.objective == Objective::fewest_gpus
          ? winner.gpus()
          : value_of(problem.objective, winner.step_s, winner.gpus());
  certificate.evaluated = result.evaluated;
  certificate.pruned = result.pruned;
  std::vector<Solution> others(result.best.begin() + 1, result.best.end());
  if (others.empty()) others = other_layouts(problem, winner, store);
  for (const Solution& other : others) {
    const std::string off = other.policy_lag > 0 ? ", one step off" : "";
    certificate.runner_up.push_back(
        {describe(other.placement) + off, describe(other), other.step_s});
  }
  if (!others.empty()) {
    const auto value = [&](const Solution& solution) {
      return value_of(problem.objective, solution.step_s, solution.gpus());
    };
    const double next = value(others.front()), best = value(winner);
    certificate.margin = (next - best) / (next + best);
  }
  return certificate;
}

std::string describe(Role role, const Candidate& candidate) {
  std::string text = std::string(name_of(role)) + " tp" + std::to_string(candidate.tp);
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

/// A word of a description as --fix says it.
std::string setting_of(const std::string& word) {
  if (word == "unmap") return "offload=all";
  const std::size_t digits = word.find_first_of("0123456789=");
  std::string field = word.substr(0, digits);
  if (field == "fsdp") field = "dp_shard";
  if (field == "ulysses") field = "cp";
  return field + "=" + word.substr(word[digits] == '=' ? digits + 1 : digits);
}

}  // namespace

std::string describe(const Solution& solution) {
  std::string text;
  for (const auto& [role, candidate] : solution.choice) {
    text += (text.empty() ? "" : ", ") + describe(role, candidate);
  }
  return text;
}

std::string describe_layouts(const Plan& plan) {
  std::string text;
  for (const RolePlan& role : plan.roles) {
    const ParallelLayout& layout = role.layout;
    const Candidate candidate{.tp = layout.tp,
                              .pp = layout.pp,
                              .dp = layout.dp(),
                              .zero = layout.zero,
                              .cp = layout.cp,
                              .vpp = layout.vpp,
                              .ep = layout.ep,
                              .etp = layout.etp,
                              .dp_shard = layout.dp_shard,
                              .recompute = role.recompute,
                              .offload = role.offload};
    text += (text.empty() ? "" : ", ") + describe(role.role, candidate);
  }
  return text;
}

std::vector<std::string> settings_of(const std::string& layouts) {
  std::vector<std::string> settings;
  std::istringstream roles(layouts);
  for (std::string role; std::getline(roles, role, ',');) {
    std::istringstream words(role);
    std::string name;
    words >> name;
    for (std::string word; words >> word;) settings.push_back(name + "." + setting_of(word));
  }
  return settings;
}

struct Planner::State {
  PlanRequest request;
  CostEvaluator costs;
  FrontStore store;
  KnownReshards reshards;

  explicit State(const PlanRequest& asked) : request(with_traits(asked)), costs(request) {}

  static PlanRequest with_traits(PlanRequest asked) {
    asked.traits = traits_of(asked.engine);
    return asked;
  }

  std::optional<PlanOutcome> plan(const Capabilities& table,
                                  const std::optional<Evaluator>& evaluator, bool replanned) {
    const SearchProblem problem = search_problem(request, table, costs, evaluator, replanned);
    const SearchResult result = search_exactly(problem, store);
    if (result.best.empty()) return explain_infeasible(request, table, costs);
    Plan plan = compose_plan(request, costs, result.best.front(), &reshards);
    plan.certificate = certificate_of(problem, result, store);
    return plan;
  }
};

namespace {

std::optional<Capabilities> checked(const PlanRequest& request, Problems& problems) {
  const std::size_t before = problems.size();
  const auto table = space_of(request.engine, problems);
  check_models(request, problems);
  if (table) {
    for (const auto& [name, model] : request.models) {
      refuse_model(*table, model.spec, model.path.empty() ? name : model.path, "model_type",
                   problems);
    }
  }
  if (problems.size() != before) return std::nullopt;
  check_settings(request, problems);
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

std::vector<Solution> Planner::pareto(const FixedSettings& fixed, Problems& problems) {
  state_->request.fixed = fixed;
  const auto table = checked(state_->request, problems);
  if (!table) return {};
  constexpr std::size_t kCounts = 24;
  const std::vector<int> sizes = block_sizes(state_->request.cluster);
  const std::size_t step = std::max<std::size_t>(1, sizes.size() / kCounts);
  std::vector<int> counts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool small = sizes[i] <= state_->request.cluster.gpus_per_node;
    if (small || i % step == 0 || i + 1 == sizes.size()) counts.push_back(sizes[i]);
  }
  return pareto_front(search_problem(state_->request, *table, state_->costs), counts);
}

std::optional<PlanOutcome> make_plan(const PlanRequest& request, Problems& problems,
                                     const std::optional<Evaluator>& evaluator) {
  const auto table = checked(request, problems);
  if (!table) return std::nullopt;
  Planner::State state(request);
  return state.plan(*table, evaluator, false);
}

}  // namespace tessera
