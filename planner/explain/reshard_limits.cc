#include "planner/explain/reshard_limits.h"

#include <algorithm>
#include <span>

#include "cost_models/documents/printed.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/spec/node_groups.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

std::string milliseconds(Seconds time) { return printed("%.2f ms", time.value * 1e3); }

// What arrives passes the links of the destination's GPU type, what leaves those of the source's.
ReshardBound bound_of(const Plan& plan, const PlannedReshard& pair,
                      std::span<const ReshardDemand> demands, const Calibration& calibration) {
  const auto within = [&](Role role) {
    const int view = view_of(plan.cluster, plan.find(role)->ranks);
    return reshard_bound(demands, seen_from(plan.cluster, view), seen_from(calibration, view));
  };
  ReshardBound bound = within(pair.to);
  const bool alike = view_of(plan.cluster, plan.find(pair.to)->ranks) ==
                     view_of(plan.cluster, plan.find(pair.from)->ranks);
  if (alike) return bound;
  const ReshardBound source = within(pair.from);
  bound.leaving = source.leaving;
  bound.destination = source.destination.seconds < bound.destination.seconds ? source.destination
                                                                             : bound.destination;
  bound.seconds =
      std::max({bound.arriving.seconds, bound.leaving.seconds, bound.destination.seconds});
  return bound;
}

}  // namespace

std::vector<ReshardLimit> reshard_limits(const Plan& plan, const Calibration& calibration) {
  std::vector<ReshardLimit> limits;
  const auto predicted = plan.prediction.phases_s.find(Phase::reshard);
  for (const PlannedReshard& pair : plan.reshard) {
    const auto demands =
        reshard_demands(parameter_table(plan.model_of(pair.from)), rank_map_of(plan, pair.from),
                        rank_map_of(plan, pair.to), plan.find(pair.from)->dtypes.wire);
    limits.push_back({pair.from, pair.to, bound_of(plan, pair, demands, calibration),
                      predicted == plan.prediction.phases_s.end() ? Seconds{} : predicted->second});
  }
  return limits;
}

std::string describe(const std::vector<ReshardLimit>& limits) {
  std::string out;
  for (const ReshardLimit& limit : limits) {
    out += "reshard " + std::string(name_of(limit.from)) + " -> " + std::string(name_of(limit.to)) +
           ": " + milliseconds(limit.predicted) + " predicted, ";
    if (limit.bound.seconds <= 0) {
      out += "nothing has to move\n";
      continue;
    }
    const ReshardCut& cut = limit.bound.narrowest();
    out += "direct copies take at least " + milliseconds(limit.bound.seconds) +
           printed(" (%.2fx): %.2f GiB through %.0f GB/s, ", limit.predicted / limit.bound.seconds,
                   gib(cut.bytes), cut.rate.value / 1e9) +
           cut.where + "\n";
  }
  return out;
}

}  // namespace tessera
