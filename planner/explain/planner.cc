#include "planner/explain/planner.h"

#include "cost_models/documents/problem.h"
#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "planner/request/check_request.h"
#include "planner/request/objective.h"
#include "planner/request/request.h"
#include "planner/search/certificate.h"
#include "planner/search/exact.h"
#include "planner/search/search.h"
#include "planner/search/slots.h"

namespace tessera {

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

  std::optional<PlanOutcome> plan(const Capabilities& capabilities,
                                  const std::optional<Evaluator>& evaluator, bool replanned) {
    const SearchProblem problem =
        search_problem(request, capabilities, costs, evaluator, replanned);
    SolvedSearch solved = search_with_slots(problem, request, store);
    if (solved.result.best.empty()) return explain_infeasible(request, capabilities, costs);
    const SaferSolution safer = find_safer(request, problem, costs, solved);
    const std::vector<Rival> rivals = rivals_of(request, problem, solved, store);
    Plan plan = compose_plan(request, costs, solved.result.best.front(), &reshards);
    plan.certificate = certificate_of(request, problem, solved, rivals, plan);
    plan.certificate.safer = safer_plan(problem, safer);
    plan.certificate.digest = certified_digest(plan);
    return plan;
  }
};

namespace {

// The request's engine; nullptr and Problems where the request contradicts itself.
const Engine* checked(const PlanRequest& request, Problems& problems) {
  const std::size_t before = problems.size();
  const Engine* const engine = requested_engine(request.engine, problems);
  check_models(request, problems);
  check_lengths(request, problems);
  if (engine != nullptr) {
    for (const auto& [name, model] : request.models) {
      refuse_model(*engine, model.spec, model.path.empty() ? name : model.path, "model_type",
                   problems);
    }
  }
  if (problems.size() != before) return nullptr;
  check_settings(request, problems);
  allowed_placements(request, problems);
  if (problems.size() != before) return nullptr;
  return engine;
}

}  // namespace

Planner::Planner(const PlanRequest& request) : state_(std::make_unique<State>(request)) {}
Planner::~Planner() = default;

std::optional<PlanOutcome> Planner::plan(const FixedSettings& fixed, Objective objective,
                                         Problems& problems) {
  state_->request.fixed = fixed;
  state_->request.objective = objective;
  const Engine* const engine = checked(state_->request, problems);
  if (engine == nullptr) return std::nullopt;
  return state_->plan(engine->capabilities, std::nullopt, true);
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
  const Engine* const engine = checked(state_->request, problems);
  if (engine == nullptr) return {};
  const std::vector<int> counts = pareto_counts(state_->request.cluster);
  const SearchProblem problem =
      search_problem(state_->request, engine->capabilities, state_->costs);
  return pareto_front(problem, counts, [&](const SearchProblem& limited) {
    return search_with_slots(limited, state_->request, state_->store).result;
  });
}

std::optional<PlanOutcome> make_plan(const PlanRequest& request, Problems& problems,
                                     const std::optional<Evaluator>& evaluator) {
  const Engine* const engine = checked(request, problems);
  if (engine == nullptr) return std::nullopt;
  Planner::State state(request);
  return state.plan(engine->capabilities, evaluator, false);
}

}  // namespace tessera
