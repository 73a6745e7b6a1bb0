// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/plan_answer.h"

#include <chrono>
#include <optional>
#include <utility>

#include "cost_models/documents/stopped.h"
#include "cost_models/documents/utc_now.h"
#include "gui/document/text.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_constants.h"
#include "planner/request/plan_request.h"
#include "planner/request/plan_value.h"
#include "planner/request/request.h"

namespace tessera::gui {
namespace {

/// `plan` appends to the Problems it is given where it makes none.
template <class Search>
PlanAnswer timed(Problems problems, const Search& plan) {
  if (!problems.empty()) return {std::move(problems)};
  const auto start = std::chrono::steady_clock::now();
  std::optional<PlanOutcome> outcome = plan(problems);
  PlanAnswer answer{std::move(problems)};
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!outcome) return answer;
  if (Plan* plan = std::get_if<Plan>(&*outcome)) {
    answer.result = std::make_shared<const Plan>(std::move(*plan));
  } else {
    answer.result = std::get<Infeasible>(*std::move(outcome));
  }
  return answer;
}

PlanAnswer search(const PlanRequest& request, Problems problems, const std::stop_token& stop) {
  return timed(std::move(problems),
               [&](Problems& found) { return make_plan(request, found, std::nullopt, stop); });
}

bool same_prices(const PlanRequest& a, const PlanRequest& b) {
  return a.models == b.models && a.cluster == b.cluster && a.workload == b.workload &&
         a.calibration == b.calibration && a.engine == b.engine && a.choices == b.choices &&
         a.lora == b.lora && a.risk == b.risk && a.one_step_off == b.one_step_off;
}

// The certificate of a plan that lost says so: what was fixed to have it is not what was asked.
SharedPlan beside(const Plan& first, SharedPlan other) {
  if (worse_by(first, priced(*other)) < 0) return other;  // `first` was no best one itself
  Plan lost = *other;
  const RunnerUp& better = first.certificate.better;
  lost.certificate.better = better.used() ? better : summary_of(first);
  lost.certificate.digest = certified_digest(lost);
  return std::make_shared<const Plan>(std::move(lost));
}

template <class Body>
PlanAnswer without_exceptions(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    return {error.problems()};
  } catch (const std::exception& error) {
    return {Problems{{"planner", "", error.what(), "a plan", ""}}};
  }
}

}  // namespace

PlanAnswer answer(const PlanQuery& query, const std::stop_token& stop) {
  return without_exceptions([&] {
    Problems problems;
    const PlanRequest request = request_from(query, problems);
    return search(request, std::move(problems), stop);
  });
}

std::vector<std::string> refusal_of(PlanQuery query) {
  query.fixed.clear();
  Problems problems;
  request_from(query, problems);
  std::vector<std::string> faults;
  for (const Problem& problem : problems) faults.push_back(problemText(problem).toStdString());
  return faults;
}

PlanAnswer KeptPlanner::answer(const PlanQuery& query, const std::stop_token& stop) {
  return without_exceptions([&] {
    Problems problems;
    const PlanRequest request = request_from(query, problems);
    const std::scoped_lock lock(busy_);
    end_if_stopped(stop);
    return timed(std::move(problems),
                 [&](Problems& found) { return replan(request, found, stop); });
  });
}

void KeptPlanner::keep(const PlanRequest& request) {
  if (planner_ && same_prices(request_, request)) return;
  request_ = request;
  planner_ = std::make_unique<Planner>(request_);
}

std::vector<std::string> KeptPlanner::against(const PlanQuery& query, const std::stop_token& stop) {
  std::vector<std::string> reasons;
  Problems problems;
  try {
    const PlanRequest request = request_from(query, problems);
    const std::scoped_lock lock(busy_);
    if (problems.empty()) {
      keep(request);
      reasons = planner_->against(request.fixed, problems, stop);
    }
  } catch (const std::exception& error) {
    reasons.emplace_back(error.what());
  }
  for (const Problem& problem : problems) {
    reasons.push_back(problemText(problem).toStdString());
  }
  return reasons;
}

std::optional<PlanOutcome> KeptPlanner::replan(const PlanRequest& request, Problems& problems,
                                               const std::stop_token& stop) {
  keep(request);
  auto outcome = planner_->plan(request.fixed, request.objective, problems, stop);
  if (!outcome) return outcome;
  Plan* const plan = std::get_if<Plan>(&*outcome);
  // A setting may name a layout that the kept candidates do not have.
  if (plan == nullptr) return make_plan(request, problems, std::nullopt, stop);
  plan->provenance.created = request.created;
  return outcome;
}

PlanAnswer answer(const Plan& plan, const RunnerUp& other, const std::stop_token& stop) {
  return without_exceptions([&] {
    Problems problems;
    if (other.settings.empty()) {
      return PlanAnswer{Problems{{"the plan's certificate", "runner_up", "no settings",
                                  "a plan of this version", "plan again"}}};
    }
    auto constants = constants_of(plan, problems);
    if (!constants) return PlanAnswer{std::move(problems)};
    PlanRequest request = request_of(plan, std::move(constants->calibration));
    request.tessera_version = TESSERA_VERSION;
    request.created = utc_now();
    request.fixed = parse_settings(other.settings, problems);
    PlanAnswer found = search(request, std::move(problems), stop);
    if (auto* own = std::get_if<SharedPlan>(&found.result)) *own = beside(plan, *own);
    return found;
  });
}

}  // namespace tessera::gui
