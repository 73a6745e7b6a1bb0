#include "planner/search/reshard_limits.h"

#include <array>
#include <cstdio>

#include "cost_models/layout/parameter_table.h"

namespace tessera {
namespace {

template <class... Values>
std::string text(const char* format, Values... values) {
  std::array<char, 256> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, values...);
  return buffer.data();
}

std::string milliseconds(double seconds) { return text("%.2f ms", seconds * 1e3); }

}  // namespace

std::vector<ReshardLimit> reshard_limits(const Plan& plan, const Calibration& calibration) {
  std::vector<ReshardLimit> limits;
  const auto predicted = plan.prediction.phases_s.find(Phase::reshard);
  for (const PlannedReshard& pair : plan.reshard) {
    const auto demands =
        reshard_demands(parameter_table(plan.model_of(pair.from)), rank_map_of(plan, pair.from),
                        rank_map_of(plan, pair.to), plan.find(pair.from)->dtypes.wire);
    limits.push_back({pair.from, pair.to, reshard_bound(demands, plan.cluster, calibration),
                      predicted == plan.prediction.phases_s.end() ? 0 : predicted->second});
  }
  return limits;
}

std::string describe(const std::vector<ReshardLimit>& limits) {
  std::string out;
  for (const ReshardLimit& limit : limits) {
    out += "reshard " + std::string(name_of(limit.from)) + " -> " + std::string(name_of(limit.to)) +
           ": " + milliseconds(limit.predicted_s) + " predicted, ";
    if (limit.bound.seconds <= 0) {
      out += "nothing has to move\n";
      continue;
    }
    const ReshardCut& cut = limit.bound.narrowest();
    out += "direct copies take at least " + milliseconds(limit.bound.seconds) +
           text(" (%.2fx): %.2f GiB through %.0f GB/s, ", limit.predicted_s / limit.bound.seconds,
                cut.bytes / (1LL << 30), cut.rate / 1e9) +
           cut.where + "\n";
  }
  return out;
}

}  // namespace tessera
