#include "simulator/engine/planned_arrivals.h"

#include <algorithm>
#include <array>

#include "cost_models/spec/node_groups.h"
#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/request/plan_request.h"

namespace tessera {
namespace {

/// A pool's cluster and constants, by its GPU types.
Machines machines_of(const Plan& plan, const std::vector<int>& ranks,
                     const Calibration& calibration) {
  const int view = view_of(plan.cluster, ranks);
  return {seen_from(plan.cluster, view), seen_from(calibration, view)};
}

std::vector<Arrival> exact_arrivals(const Plan& plan, const PlannedReshard& pair,
                                    const Calibration& calibration) {
  const ReshardPlan exact = reshard_plan_of(plan, pair);
  const std::array elements{Bytes{size_of(plan.find(pair.from)->dtypes.wire)}};
  std::vector<int> ranks = plan.find(pair.from)->ranks;
  if (plan.find(pair.to)->ranks != ranks) ranks = united(ranks, plan.find(pair.to)->ranks);
  // Bytes between pools of different GPU types go at the rate of the slower.
  std::vector<Machines> ends = {machines_of(plan, plan.find(pair.to)->ranks, calibration)};
  if (!plan.cluster.groups.empty()) {
    ends.push_back(machines_of(plan, plan.find(pair.from)->ranks, calibration));
  }
  const ReshardTransport transport =
      moves_adapters_alone(plan, pair) ? ReshardTransport::send_recv : pair.transport;
  return arrivals_of(exact.transfers, elements, static_cast<int>(ranks.size()),
                     {transport, pair.bucket_bytes}, ends);
}

bool shares_ranks(const RolePlan& from, const RolePlan& to) {
  return united(from.ranks, {}) == united(to.ranks, {});
}

// The software's time on every rank of the rollout, behind its bytes where it receives some.
void add_handover(const Plan& plan, const PlannedReshard& pair, CostEvaluator& evaluator,
                  std::vector<Arrival>& arrivals) {
  const RolePlan &from = *plan.find(pair.from), &to = *plan.find(pair.to);
  const Seconds seconds =
      evaluator.handover_seconds(candidate_of(plan, to), shares_ranks(from, to));
  if (seconds <= 0) return;
  for (const int rank : to.ranks) {
    const auto at = std::find_if(arrivals.begin(), arrivals.end(),
                                 [&](const Arrival& arrival) { return arrival.rank == rank; });
    if (at == arrivals.end()) {
      arrivals.push_back({rank, 0, seconds});
    } else {
      at->seconds += seconds;
    }
  }
}

// A plan too large for exact ranges states its busiest rank's bytes: all receive as much. So do the
// ranks of an engine that gathers whole tensors, whose software takes its time where none move,
// too.
std::vector<Arrival> estimated_arrivals(const Plan& plan, const PlannedReshard& pair,
                                        CostEvaluator& evaluator) {
  const RolePlan& from = *plan.find(pair.from);
  const RolePlan& to = *plan.find(pair.to);
  const Seconds seconds = evaluator.reshard_seconds(candidate_of(plan, from),
                                                    candidate_of(plan, to), shares_ranks(from, to));
  std::vector<Arrival> arrivals;
  for (const int rank : to.ranks) arrivals.push_back({rank, pair.bytes_received, seconds});
  return arrivals;
}

}  // namespace

std::vector<Arrival> planned_arrivals(const Plan& plan, const PlannedReshard& pair,
                                      const Calibration& calibration, CostEvaluator& evaluator) {
  const bool gathers = engine_named(plan.engine).weights.gather.has_value();
  const bool exact = has_exact_reshard(pair) || (pair.bytes_received == 0 && !gathers);
  if (!exact) return estimated_arrivals(plan, pair, evaluator);
  std::vector<Arrival> arrivals = exact_arrivals(plan, pair, calibration);
  add_handover(plan, pair, evaluator, arrivals);
  return arrivals;
}

std::vector<int> united(std::vector<int> ranks, const std::vector<int>& more) {
  ranks.insert(ranks.end(), more.begin(), more.end());
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace tessera
