// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/plan_query.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "cost_models/documents/utc_now.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/planner.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/request/request_reader.h"

namespace tessera::gui {
namespace {

PlanRequest request_from(const PlanQuery& query, Problems& problems) {
  PlanRequest request = read_request({.model = query.model,
                                      .cluster = query.cluster,
                                      .workload = query.workload,
                                      .fixed = query.fixed},
                                     problems);
  if (!problems.empty()) return request;
  request.created = utc_now();
  request.tessera_version = TESSERA_VERSION;
  request.cluster = resized(std::move(request.cluster), query.nodes, query.gpus_per_node);
  if (auto calibration = calibration_for_cluster(request.cluster, problems)) {
    request.calibration = *std::move(calibration);
  }
  return request;
}

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
    answer.result = std::move(*plan);
  } else {
    answer.result = std::get<Infeasible>(*std::move(outcome));
  }
  return answer;
}

PlanAnswer search(const PlanRequest& request, Problems problems) {
  return timed(std::move(problems), [&](Problems& found) { return make_plan(request, found); });
}

bool same_prices(const PlanRequest& a, const PlanRequest& b) {
  return a.models == b.models && a.cluster == b.cluster && a.workload == b.workload &&
         a.calibration == b.calibration && a.engine == b.engine;
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

ClusterSpec resized(ClusterSpec cluster, std::int64_t nodes, std::int64_t gpus_per_node) {
  // Another number of nodes is one of the weakest of several GPU types.
  const bool other = (nodes > 0 && nodes != cluster.nodes) ||
                     (gpus_per_node > 0 && gpus_per_node != cluster.gpus_per_node);
  if (other) cluster.groups.clear();
  if (nodes > 0) cluster.nodes = nodes;
  if (gpus_per_node > 0 && cluster.gpus_per_node > 0) {
    const std::int64_t cards = cluster.nics_per_node * gpus_per_node / cluster.gpus_per_node;
    if (cluster.nics_per_node > 0) cluster.nics_per_node = std::max<std::int64_t>(1, cards);
    cluster.gpus_per_node = gpus_per_node;
  }
  return cluster;
}

PlanAnswer answer(const PlanQuery& query) {
  return without_exceptions([&] {
    Problems problems;
    const PlanRequest request = request_from(query, problems);
    return search(request, std::move(problems));
  });
}

PlanAnswer KeptPlanner::answer(const PlanQuery& query) {
  return without_exceptions([&] {
    Problems problems;
    const PlanRequest request = request_from(query, problems);
    const std::unique_lock lock(busy_, std::try_to_lock);
    if (!problems.empty() || !lock.owns_lock()) return search(request, std::move(problems));
    return timed(std::move(problems), [&](Problems& found) { return replan(request, found); });
  });
}

std::optional<PlanOutcome> KeptPlanner::replan(const PlanRequest& request, Problems& problems) {
  if (!planner_ || !same_prices(request_, request)) {
    request_ = request;
    planner_ = std::make_unique<Planner>(request_);
  }
  auto outcome = planner_->plan(request.fixed, request.objective, problems);
  if (!outcome) return outcome;
  Plan* const plan = std::get_if<Plan>(&*outcome);
  // A setting may name a layout that the kept candidates do not have.
  if (plan == nullptr) return make_plan(request, problems);
  plan->provenance.created = request.created;
  return outcome;
}

PlanAnswer answer(const Plan& plan, const RunnerUp& other) {
  return without_exceptions([&] {
    Problems problems;
    if (other.settings.empty()) {
      return PlanAnswer{Problems{{"the plan's certificate", "runner_up", "no settings",
                                  "a plan of this version", "plan again"}}};
    }
    auto calibration = calibration_named(plan.provenance.calibration, plan.cluster, problems);
    if (!calibration) return PlanAnswer{std::move(problems)};
    PlanRequest request = request_of(plan, *std::move(calibration));
    request.tessera_version = TESSERA_VERSION;
    request.created = utc_now();
    request.fixed = parse_settings(other.settings, problems);
    return search(request, std::move(problems));
  });
}

}  // namespace tessera::gui
