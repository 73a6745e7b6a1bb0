#include "planner/explain/type_reasons.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "cost_models/spec/node_groups.h"
#include "planner/plan/amounts.h"
#include "planner/plan/phase_seconds.h"
#include "planner/plan/plan.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/space/place_pools.h"

namespace tessera {
namespace {

Seconds sum_of(const PhaseSeconds& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), Seconds{});
}

std::string line_of(const OnOtherType& one) {
  const std::string where = "  " + std::string(name_of(one.role)) + " on " + one.types +
                            " (ranks " + std::to_string(one.first_rank) + "-" +
                            std::to_string(one.last_rank) + "): ";
  if (!one.has_room) return where + "there are too few " + one.other + "\n";
  if (one.needed > 0) {
    return where + "does not fit on " + one.other + ", " + in_gib(one.needed) + " of " +
           in_gib(one.limit) + " alone\n";
  }
  std::array<char, 32> ratio{};
  const bool faster = one.other_s >= one.seconds;
  const double times = faster ? one.other_s / one.seconds : one.seconds / one.other_s;
  std::snprintf(ratio.data(), ratio.size(), "%.2fx %s", times, faster ? "faster" : "slower");
  return where + ratio.data() + " than the same layout on " + one.other + "\n";
}

}  // namespace

std::vector<OnOtherType> on_other_types(const Plan& plan, const Calibration& calibration) {
  std::vector<OnOtherType> all;
  if (plan.cluster.groups.empty()) return all;
  CostEvaluator costs = evaluator_of(plan, calibration);
  const auto views = pool_views(plan.cluster);
  for (const RolePlan& role : plan.roles) {
    const Candidate own = candidate_of(plan, role);
    const auto [first, last] = std::minmax_element(role.ranks.begin(), role.ranks.end());
    for (std::size_t view = 0; view < views.size(); ++view) {
      Candidate moved = own;
      moved.view = static_cast<int>(view);
      if (!views[view].single() || moved.view == own.view) continue;
      OnOtherType other{.role = role.role,
                        .types = type_name(plan.cluster, own.view),
                        .other = type_name(plan.cluster, moved.view),
                        .first_rank = *first,
                        .last_rank = *last};
      const RoleCost there = costs.cost(moved);
      const PlanRequest& seen = costs.request(moved.view);
      const Bytes limit = memory_limit(seen);
      other.seconds = sum_of(costs.seconds(own));
      other.has_room = fits_view(plan.cluster, own.gpus, moved.view);
      if (std::max(there.peak, there.in_reshard) > limit) {
        other.limit = usable_memory(seen);
        other.needed = std::max(there.peak, there.in_reshard) + other.limit - limit;
      } else {
        other.other_s = sum_of(there.seconds);
      }
      all.push_back(std::move(other));
    }
  }
  return all;
}

std::string describe_type_reasons(const Plan& plan, const Calibration& calibration) {
  if (plan.cluster.groups.empty()) return {};
  std::string out = "GPU types:\n";
  for (const OnOtherType& one : on_other_types(plan, calibration)) {
    if (one.seconds > 0) out += line_of(one);
  }
  for (const std::vector<Role>& block : placement_of(plan)) {
    const RolePlan& first = *plan.find(block.front());
    if (first.gpu_types.size() < 2) continue;
    std::string roles;
    for (const Role role : block) {
      roles += (roles.empty() ? "" : "+") + std::string(name_of(role));
    }
    out += "  note: " + roles + " spans " +
           type_name(plan.cluster, view_of(plan.cluster, first.ranks)) +
           ": priced at the weakest figures of these, as its ranks work in step\n";
  }
  return out;
}

}  // namespace tessera
