#include "tests/planner/offered/checks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/engines/engine.h"
#include "planner/engines/group_degrees.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/fixed.h"
#include "planner/pricing/iteration.h"
#include "planner/pricing/memory_limit.h"
#include "planner/request/check_request.h"
#include "planner/request/describe.h"
#include "planner/request/plan_request.h"
#include "planner/request/plan_value.h"
#include "planner/request/solution.h"
#include "planner/search/search.h"
#include "planner/search/slots.h"
#include "planner/space/layout_space.h"
#include "simulator/engine/simulate.h"
#include "tests/planner/offered/random_problems.h"

namespace tessera {
namespace {

constexpr double kSame = 1e-9;

struct Answer {
  Solution best;
  double gap = 0;
};

// The best of one engine's space under changing settings, without runner-ups: prices are shared.
class Answers {
 public:
  explicit Answers(PlanRequest request)
      : request_(with_traits(std::move(request))), costs_(request_) {}

  CostEvaluator& costs() { return costs_; }
  const PlanRequest& request() const { return request_; }

  // nullopt where the settings contradict the request or nothing fits.
  std::optional<Answer> best(const FixedSettings& fixed, bool replanned) {
    request_.fixed = fixed;
    Problems problems;
    check_settings(request_, problems);
    if (allowed_placements(request_, problems).empty() || !problems.empty()) return std::nullopt;
    const SearchProblem problem = space(replanned);
    const SolvedSearch solved = search_with_slots(problem, request_, store_);
    if (solved.result.best.empty()) return std::nullopt;
    return Answer{solved.result.best.front(), solved.gap};
  }

  SearchProblem space(bool replanned) {
    return search_problem(request_, engine_named(request_.engine).capabilities, costs_,
                          std::nullopt, replanned);
  }

 private:
  static PlanRequest with_traits(PlanRequest asked) {
    asked.traits = traits_of(asked.engine, asked.choices);
    return asked;
  }

  PlanRequest request_;
  CostEvaluator costs_;
  FrontStore store_;
};

std::optional<Plan> planned(const PlanRequest& request) {
  Problems problems;
  auto outcome = make_plan(request, problems);
  if (!outcome || !std::holds_alternative<Plan>(*outcome)) return std::nullopt;
  return std::get<Plan>(*std::move(outcome));
}

// Of a plan, by what it states.
double value_of(Objective objective, const Plan& plan) {
  if (objective == Objective::fewest_gpus) {
    return tessera::value_of(objective, plan.prediction.step_s,
                             static_cast<int>(plan.certificate.value));
  }
  if (objective != Objective::tokens_per_gpu) return plan.certificate.value;
  return -plan.certificate.value;
}

// By how much of `value` the other is smaller; of rates, which are negative, of the better one: a
// gap is a part of the time.
double better_by(double value, double other) {
  return (value - other) / std::max(std::abs(value), value < 0 ? std::abs(other) : 0.0);
}

class Checking {
 public:
  Checking(const PlanRequest& request, Plan plan, const CheckOptions& options,
           std::mt19937_64& random)
      : request_(request), options_(options), random_(random), plan_(std::move(plan)) {}

  Findings run() {
    findings_.plans = 1;
    own_ = std::make_unique<Answers>(request_of_plan());
    check_listed();
    check_neighbours();
    check_fixes();
    check_more();
    check_engines();
    check_simulated();
    return std::move(findings_);
  }

 private:
  // Of --engine any a plan is of the engine that it names, with what the search took of its
  // choices.
  PlanRequest request_of_plan() const {
    PlanRequest own = request_;
    own.engine = plan_.engine;
    if (const RolePlan* const rollout = plan_.find(Role::rollout)) {
      own.choices.log_probs = rollout->log_probs;
    }
    return own;
  }

  double value() const { return value_of(request_.objective, plan_); }

  // Rates are compared as such, all else by Solution.
  double value_of_solution(const Solution& solution) const {
    if (request_.objective != Objective::tokens_per_gpu) {
      return tessera::value_of(request_.objective, solution);
    }
    const double tokens =
        plan_.prediction.tokens_per_s_per_gpu * plan_.prediction.step_s.value * gpus_of(plan_);
    return -tokens / (solution.step_s.value * solution.gpus());
  }

  void compare(const char* check, double other, const std::string& found, double gap = 0) {
    const double by = better_by(value(), other);
    if (by <= kSame + std::max(gap, plan_.certificate.gap)) return;
    findings_.violations.push_back({check, found, by});
  }

  void check_listed() {
    for (const RunnerUp& other : plan_.certificate.runner_up) {
      ++findings_.listed;
      if (request_.objective == Objective::step_time) {
        compare("listed", other.step_s.value, other.description);
      }
    }
    const RunnerUp& safer = plan_.certificate.safer.plan;
    if (safer.step_s > 0 && request_.objective == Objective::step_time) {
      compare("safer", safer.step_s.value, safer.description);
    }
  }

  // Every other way to run one role of the plan, all else as it is: priced, not searched.
  void check_neighbours() {
    const Solution winner = solution_of(plan_);
    if (request_.objective != Objective::step_time) return;
    const SearchProblem space = own_->space(false);
    std::map<Role, RoleCost> costs;
    for (const auto& [role, candidate] : winner.choice) {
      costs[role] = own_->costs().cost(candidate);
    }
    for (std::size_t block = 0; block < winner.placement.size(); ++block) {
      for (const Role role : winner.placement[block]) {
        vary(space, winner, costs, block, role);
      }
    }
  }

  void vary(const SearchProblem& space, const Solution& winner,
            const std::map<Role, RoleCost>& costs, std::size_t block, Role role) {
    const Candidate& own = winner.choice.at(role);
    const Bytes limit = memory_limit(own_->costs().request(own.view));
    std::vector<LayoutSpace> layouts = space.spaces(role, own.gpus);
    std::vector<Candidate> all = candidates_of(layouts);
    std::shuffle(all.begin(), all.end(), random_);
    all.resize(std::min<std::size_t>(all.size(), 3000));
    for (Candidate& candidate : all) {
      candidate.view = own.view;
      if (!agrees(winner, block, role, candidate)) continue;
      ++findings_.neighbours;
      std::map<Role, Candidate> choice = winner.choice;
      choice[role] = candidate;
      std::vector<RoleCost> together;
      for (const Role other : winner.placement[block]) {
        together.push_back(other == role ? own_->costs().cost(candidate) : costs.at(other));
      }
      if (bytes_together(together) > limit) continue;
      const PhaseSeconds seconds =
          iteration_seconds(own_->costs(), choice, rollout_apart(winner.placement));
      const auto schedule = schedule_of(default_schedule(own_->request().workload),
                                        winner.placement, winner.policy_lag);
      const Seconds step =
          Iteration(schedule, blocks_of(schedule, winner.placement)).step_seconds(seconds);
      compare("neighbour", step.value,
              std::string(name_of(role)) + " " + describe_layout(candidate) + " " +
                  std::to_string(candidate.tokens) + "/" + std::to_string(candidate.update_tokens) +
                  "/" + std::to_string(candidate.max_sequences));
    }
  }

  // Roles of one set of process groups have the same degrees, and where sums run in a fixed order
  // actor and rollout the same tensor parallelism.
  bool agrees(const Solution& winner, std::size_t block, Role role,
              const Candidate& candidate) const {
    const Engine& engine = engine_named(plan_.engine);
    const Capabilities& can = engine.capabilities;
    const auto peer = winner.choice.find(role == Role::actor ? Role::rollout : Role::actor);
    if (engine.fixed_order && (role == Role::actor || role == Role::rollout) &&
        peer != winner.choice.end() && peer->second.tp != candidate.tp) {
      return false;
    }
    if (!shares_groups(can, role)) return true;
    return std::all_of(winner.placement[block].begin(), winner.placement[block].end(),
                       [&](Role other) {
                         return other == role || !shares_groups(can, other) ||
                                group_degrees(winner.choice.at(other)) == group_degrees(candidate);
                       });
  }

  static std::string joined(const FixedSettings& fixed) {
    std::string text;
    for (const std::string& word : words_of(fixed))
      text += (text.empty() ? "'" : " '") + word + "'";
    return text;
  }

  void check_fixes() {
    const auto start = std::chrono::steady_clock::now();
    const Solution winner = solution_of(plan_);
    int whole = 0;
    for (int tries = 0; tries < 8 * options_.fixes && findings_.fixed < options_.fixes; ++tries) {
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      if (options_.seconds > 0 && taken.count() > options_.seconds) break;
      const FixedSettings fixed = random_settings(own_->request(), winner, random_);
      const auto answer = own_->best(fixed, tries % 2 == 0);
      if (!answer) continue;
      ++findings_.fixed;
      compare("fixed", value_of_solution(answer->best), joined(fixed));
      if (whole >= options_.whole) continue;
      ++whole;
      PlanRequest asked = request_;
      asked.fixed = fixed;
      const auto other = planned(asked);
      if (!other) continue;
      ++findings_.whole;
      compare("planned", value_of(request_.objective, *other), joined(fixed));
    }
  }

  void check_more() {
    if (request_.objective == Objective::fewest_gpus) return;
    const auto more = [&](const char* what, const auto& change) {
      PlanRequest asked = request_of_plan();
      change(asked.cluster);
      for (NodeGroup& group : asked.cluster.groups) change(group);
      Problems problems;
      if (auto constants = calibration_for_cluster(asked.cluster, problems)) {
        asked.calibration = *std::move(constants);
      }
      ++findings_.more;
      Answers answers(std::move(asked));
      const auto answer = answers.best({}, false);
      if (!answer) {
        findings_.violations.push_back({what, "nothing fits", 1});
        return;
      }
      const double by = better_by(value_of_solution(answer->best), value());
      if (by > kSame + answer->gap)
        findings_.violations.push_back({what, describe(answer->best), by});
    };
    more("more memory", [](auto& cluster) {
      const double bytes = static_cast<double>(cluster.device.memory.value);
      cluster.device.memory = Bytes{static_cast<std::int64_t>(1.07 * bytes)};
    });
    more("faster links", [](auto& cluster) {
      cluster.intra_per_gpu = 1.25 * cluster.intra_per_gpu;
      cluster.nic = 1.25 * cluster.nic;
    });
    if (plan_.cluster.groups.empty()) {
      more("more nodes", [](auto& cluster) { cluster.nodes += 1; });
    }
  }

  // None that a plan for any engine can be made for has a better one: those that answer such a
  // request, and those whose fixed order is never the quicker one.
  void check_engines() {
    if (request_.engine != kAnyEngine) return;
    const std::vector<const Engine*> asked_all =
        answering(engine_named(kAnyEngine), {kEveryRole.begin(), kEveryRole.end()});
    for (const std::string& name : engine_names()) {
      const Engine& engine = engine_named(name);
      const bool asks = std::find(asked_all.begin(), asked_all.end(), &engine) != asked_all.end();
      if (!asks && !engine.fixed_order) continue;
      const auto asked = part_for_engine(request_, name);
      if (!asked) continue;
      Answers answers(*asked);
      const auto answer = answers.best({}, false);
      if (!answer) continue;
      ++findings_.engines;
      compare("engine", value_of_solution(answer->best), name + ": " + describe(answer->best));
    }
  }

  void check_simulated() {
    if (options_.draws == 0) return;
    double sum = 0, squares = 0;
    const bool drawn = request_.workload.response_tokens.cv > 0;
    const int draws = drawn ? options_.draws : 1;
    for (int draw = 0; draw < draws; ++draw) {
      SimulationOptions options;
      options.seed = static_cast<std::uint64_t>(draw) + 1;
      options.rollout_segments = 1;
      const Simulation simulated = simulate(plan_, request_.calibration, options);
      // Plans count an equal share of links for every GPU.
      const double seconds =
          simulated.shared.any ? simulated.shared.equal_step_s : simulated.step_s;
      const double step = seconds / plan_.prediction.step_s.value;
      sum += step;
      squares += step * step;
    }
    const double mean = sum / draws;
    const double doubt =
        draws > 1 ? std::sqrt(std::max(0.0, squares / draws - mean * mean) / (draws - 1)) : 0;
    ++findings_.simulated;
    const double beyond = std::max(0.0, std::abs(mean - 1) - 2 * doubt);
    findings_.worst_simulated = std::max(findings_.worst_simulated, beyond);
    if (beyond > 0.05) {
      findings_.violations.push_back({"simulated", describe_layouts(plan_), mean - 1});
    }
  }

  const PlanRequest& request_;
  const CheckOptions& options_;
  std::mt19937_64& random_;
  Plan plan_;
  std::unique_ptr<Answers> own_;
  Findings findings_;
};

}  // namespace

Findings& Findings::operator+=(const Findings& other) {
  plans += other.plans;
  listed += other.listed;
  fixed += other.fixed;
  whole += other.whole;
  neighbours += other.neighbours;
  more += other.more;
  engines += other.engines;
  simulated += other.simulated;
  worst_simulated = std::max(worst_simulated, other.worst_simulated);
  violations.insert(violations.end(), other.violations.begin(), other.violations.end());
  return *this;
}

Findings check_offered(const PlanRequest& request, const CheckOptions& options,
                       std::mt19937_64& random) {
  auto plan = planned(request);
  if (!plan) return {};
  return Checking(request, *std::move(plan), options, random).run();
}

}  // namespace tessera
