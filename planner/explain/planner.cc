#include "planner/explain/planner.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/stopped.h"
#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/explain/nearest_fix.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "planner/pricing/role/role_model.h"
#include "planner/request/check_request.h"
#include "planner/request/objective.h"
#include "planner/request/plan_constants.h"
#include "planner/request/request.h"
#include "planner/search/certificate.h"
#include "planner/search/exact.h"
#include "planner/search/incumbent.h"
#include "planner/search/search.h"
#include "planner/search/slots.h"
#include "planner/space/degree_limits.h"
#include "planner/space/engine_limits.h"

namespace tessera {

// One engine's answer to a request: its prices and what searches of it share.
struct EngineSpace {
  const Engine& engine;
  PlanRequest request;
  CostEvaluator costs;
  FrontStore store;
  KnownReshards reshards;

  EngineSpace(const PlanRequest& asked, const Engine& of, ModelTables& tables)
      : engine(of), request(for_engine(asked, of)), costs(request, tables) {}

  static PlanRequest for_engine(PlanRequest asked, const Engine& of) {
    asked.engine = of.name;
    if (asked.choices.log_probs == ToldLogProbs::as_engine) {
      asked.choices.log_probs = quickest_log_probs(of, asked.workload);
    }
    asked.traits = traits_of(of, asked.choices);
    return asked;
  }

  SearchProblem problem(const std::optional<Evaluator>& evaluator, bool replanned,
                        const std::stop_token& stop) {
    SearchProblem all = search_problem(request, engine.capabilities, costs, evaluator, replanned);
    all.stop = stop;
    return all;
  }
  SolvedSearch solve(const SearchProblem& problem) {
    return search_with_slots(problem, request, store);
  }
};

namespace {

// What the engine does not run of the models that are asked for.
void refuse_models(const Engine& engine, const PlanRequest& request, Problems& problems) {
  for (const auto& [name, model] : request.models) {
    const std::string& file = model.path.empty() ? name : model.path;
    refuse_model(engine, model, file, "model_type", problems);
    const auto roles = roles_of(request.workload);
    const auto runs = std::find_if(roles.begin(), roles.end(),
                                   [&](Role role) { return model_key(request, role) == name; });
    if (runs == roles.end()) continue;
    refuse_type(engine, dtypes_of(request, *runs).param, file, "torch_dtype", problems);
  }
  for (const auto& [role, lora] : request.lora) {
    if (role == Role::reference || (role == Role::rollout && request.lora.contains(Role::actor)))
      continue;  // the actor's
    refuse_adapters(engine, model_of(request, role), lora, "adapters", std::string(name_of(role)),
                    problems);
  }
  if (request.models.contains("actor")) {
    refuse_prediction_layers(engine, request.models.at("actor").spec, request.mtp[Role::actor],
                             "actor", "mtp", problems);
  }
}

// The engines' spaces that answer a request, the one that is asked for first.
std::vector<std::unique_ptr<EngineSpace>> spaces_of(const PlanRequest& request) {
  std::vector<std::unique_ptr<EngineSpace>> spaces;
  ModelTables tables;  // of all
  const Engine& asked = engine_named(request.engine);
  for (const Engine* engine : answering(asked, roles_of(request.workload))) {
    Problems refused;
    refuse_models(*engine, request, refused);
    refuse_cluster(*engine, request.cluster, "", "", refused);
    if (engine != &asked && !refused.empty()) continue;
    spaces.push_back(std::make_unique<EngineSpace>(request, *engine, tables));
  }
  return spaces;
}

}  // namespace

struct Planner::State {
  PlanRequest request;
  std::vector<std::unique_ptr<EngineSpace>> spaces;

  explicit State(const PlanRequest& asked) : request(asked), spaces(spaces_of(asked)) {}

  // To every engine's request.
  void set(const FixedSettings& fixed, Objective objective) {
    const auto change = [&](PlanRequest& each) {
      each.fixed = fixed;
      each.objective = objective;
    };
    change(request);
    for (const auto& space : spaces) change(space->request);
  }

  std::optional<PlanOutcome> plan(const std::optional<Evaluator>& evaluator, bool replanned,
                                  const std::stop_token& stop) {
    std::size_t winner = 0;
    SearchProblem problem = spaces.front()->problem(evaluator, replanned, stop);
    SolvedSearch solved = spaces.front()->solve(problem);
    const double others = search_others(evaluator, replanned, winner, problem, solved);
    EngineSpace& own = *spaces[winner];
    if (solved.result.best.empty()) {
      return explain_infeasible(own.request, own.engine.capabilities, own.costs);
    }
    const SaferSolution safer = find_safer(own.request, problem, own.costs, solved, own.store);
    const std::vector<Rival> rivals = rivals_of(own.request, problem, solved, own.store);
    end_if_stopped(stop);
    solved.gap = std::max(solved.gap, others);
    Plan plan = compose_plan(own.request, own.costs, solved.result.best.front(), &own.reshards);
    state_constants(plan, own.request.calibration);
    end_if_stopped(stop);
    plan.certificate = certificate_of(own.request, problem, solved, rivals, plan);
    plan.certificate.safer = safer_plan(problem, safer);
    plan.certificate.digest = certified_digest(plan);
    return plan;
  }

 private:
  // Every other engine's space has to beat the best so far; `problem` and `solved` become the
  // winner's. By how much a plan of the others may still be better, as a part of its value.
  double search_others(const std::optional<Evaluator>& evaluator, bool replanned,
                       std::size_t& winner, SearchProblem& problem, SolvedSearch& solved) {
    double gap = 0;
    std::int64_t evaluated = 0, pruned = 0;
    for (std::size_t i = 1; i < spaces.size(); ++i) {
      SearchProblem next = spaces[i]->problem(evaluator, replanned, problem.stop);
      if (!solved.result.best.empty()) next.better_than = incumbent_of(solved.result.best.front());
      SolvedSearch found = spaces[i]->solve(next);
      std::size_t beaten = i;
      if (!found.result.best.empty()) {
        beaten = std::exchange(winner, i);
        problem = std::move(next);
        std::swap(solved, found);
      }
      if (!replanned) spaces[beaten].reset();  // only other settings would ask it again
      // Of the one that is beaten.
      gap = std::max(gap, found.gap);
      evaluated += found.result.evaluated;
      pruned += found.result.pruned;
    }
    if (problem.better_than.found()) {  // runner-ups need not beat the other engines' best
      problem.better_than = {};
      solved = spaces[winner]->solve(problem);
    }
    solved.result.evaluated += evaluated;
    solved.result.pruned += pruned;
    return gap;
  }
};

namespace {

// False and Problems where the request contradicts itself.
bool checked(const PlanRequest& request, Problems& problems) {
  const std::size_t before = problems.size();
  const Engine* const engine = requested_engine(request.engine, problems);
  check_models(request, problems);
  check_lengths(request, problems);
  if (engine != nullptr) {
    refuse_models(*engine, request, problems);
    refuse_cluster(*engine, request.cluster, request.cluster.name, "nodes", problems);
  }
  if (problems.size() != before) return false;
  check_settings(request, problems);
  allowed_placements(request, problems);
  return problems.size() == before;
}

}  // namespace

namespace {

// What speaks against a request's settings without any search; empty = a search has to tell.
std::vector<std::string> plainly_against(const EngineSpace& space) {
  std::vector<std::string> reasons;
  for (const EngineLimit& limit : engine_limits(space.request, space.engine.capabilities)) {
    reasons.push_back(describe(limit, space.request.engine));
  }
  if (!reasons.empty()) return reasons;
  for (const Role role : roles_of(space.request.workload)) {
    std::string why = refused_degrees(space.request, space.engine.capabilities, role);
    if (!why.empty()) reasons.push_back(std::move(why));
  }
  return reasons;
}

}  // namespace

Planner::Planner(const PlanRequest& request) : state_(std::make_unique<State>(request)) {}
Planner::~Planner() = default;

std::optional<PlanOutcome> Planner::plan(const FixedSettings& fixed, Objective objective,
                                         Problems& problems, const std::stop_token& stop) {
  state_->set(fixed, objective);
  if (!checked(state_->request, problems)) return std::nullopt;
  return state_->plan(std::nullopt, true, stop);
}

std::vector<std::string> Planner::against(const FixedSettings& fixed, Problems& problems,
                                          const std::stop_token& stop) {
  state_->set(fixed, state_->request.objective);
  if (!checked(state_->request, problems)) return {};
  std::vector<std::string> plain = plainly_against(*state_->spaces.front());
  if (state_->spaces.size() == 1 && !plain.empty()) return plain;
  for (const auto& space : state_->spaces) {
    if (any_plan(space->problem(std::nullopt, true, stop), space->store)) return {};
  }
  // A setting may name a layout that the kept candidates do not have.
  for (const auto& space : state_->spaces) {
    FrontStore fresh;
    if (any_plan(space->problem(std::nullopt, false, stop), fresh)) return {};
  }
  EngineSpace& own = *state_->spaces.front();
  return why_infeasible(own.request, own.engine.capabilities, own.costs).reasons;
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

std::vector<Solution> Planner::pareto(const FixedSettings& fixed, Problems& problems,
                                      const std::stop_token& stop) {
  state_->set(fixed, Objective::step_time);
  if (!checked(state_->request, problems)) return {};
  const std::vector<int> counts = pareto_counts(state_->request.cluster);
  std::vector<SearchProblem> others;
  for (const auto& space : state_->spaces) {
    others.push_back(space->problem(std::nullopt, false, stop));
  }
  return pareto_front(others.front(), counts, [&](const SearchProblem& limited) {
    SearchResult best;
    for (std::size_t i = 0; i < others.size(); ++i) {
      others[i].gpus = limited.gpus;
      others[i].objective = limited.objective;
      others[i].better_than =
          best.best.empty() ? limited.better_than : incumbent_of(best.best.front());
      SearchResult found = state_->spaces[i]->solve(others[i]).result;
      if (!found.best.empty()) best = std::move(found);
    }
    return best;
  });
}

std::vector<NearestFix> fixes_of(const PlanRequest& request, std::size_t most) {
  Problems problems;
  if (!checked(request, problems)) return {};
  const auto spaces = spaces_of(request);
  const EngineSpace& own = *spaces.front();
  if (!engine_limits(own.request, own.engine.capabilities).empty()) return {};
  return fixes_of(own.request, own.engine.capabilities, most);
}

std::optional<PlanOutcome> make_plan(const PlanRequest& request, Problems& problems,
                                     const std::optional<Evaluator>& evaluator,
                                     const std::stop_token& stop) {
  if (!checked(request, problems)) return std::nullopt;
  Planner::State state(request);
  return state.plan(evaluator, false, stop);
}

}  // namespace tessera
