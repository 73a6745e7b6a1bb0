#include "cost_models/calibration.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/printed.h"
#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

constexpr auto kCollectiveNames =
    enum_names<Collective>({{Collective::all_reduce, "all_reduce"},
                            {Collective::all_gather, "all_gather"},
                            {Collective::reduce_scatter, "reduce_scatter"},
                            {Collective::all_to_all, "all_to_all"},
                            {Collective::broadcast, "broadcast"},
                            {Collective::send_receive, "send_receive"},
                            {Collective::copy_engine, "copy_engine"}});

// Position of `value` on an ascending axis: the cell's lower index and the weight of its upper
// edge.
struct AxisPosition {
  std::size_t lower = 0, upper = 0;
  double weight = 0;
};

AxisPosition position_on(const std::vector<double>& axis, double value) {
  if (value <= axis.front()) return {};
  if (value >= axis.back()) return {axis.size() - 1, axis.size() - 1, 0};
  const auto upper =
      static_cast<std::size_t>(std::upper_bound(axis.begin(), axis.end(), value) - axis.begin());
  const double low = axis[upper - 1];
  return {upper - 1, upper, std::log(value / low) / std::log(axis[upper] / low)};
}

}  // namespace

std::string_view name_of(Collective collective) { return kCollectiveNames[collective]; }

std::string name_of(const CollectiveConstants& curve) {
  return std::string(name_of(curve.collective)) + "/" + std::to_string(curve.ranks) + "x" +
         std::to_string(curve.nodes);
}

std::optional<Collective> collective_from(std::string_view name) {
  return kCollectiveNames.find(name);
}

double RatioTable::at(std::span<const double> point) const {
  if (axes.empty()) return 1.0;
  TESSERA_CHECK(point.size() == axes.size());
  double log_ratio = 0;
  std::array<AxisPosition, 4> positions;
  for (std::size_t d = 0; d < axes.size(); ++d) positions[d] = position_on(axes[d], point[d]);
  for (std::size_t corner = 0; corner < (std::size_t{1} << axes.size()); ++corner) {
    double weight = 1;
    std::size_t index = 0;
    for (std::size_t d = 0; d < axes.size(); ++d) {
      const bool up = (corner >> d & 1) != 0;
      weight *= up ? positions[d].weight : 1 - positions[d].weight;
      index = index * axes[d].size() + (up ? positions[d].upper : positions[d].lower);
    }
    if (weight > 0) log_ratio += weight * std::log(ratio[index]);
  }
  return std::exp(log_ratio);
}

double core_share(const Calibration& calibration, double busy) {
  if (calibration.cores <= 0 || busy <= calibration.cores) return 1.0;
  return calibration.cores / busy;
}

double core_share(const Calibration& calibration, double busy, double waiting) {
  return core_share(calibration, busy + waiting * calibration.idle_share.value);
}

bool is_stated(const NamedConstant& named, const Calibration& calibration) {
  const bool of_software = named.member == &Calibration::handover ||
                           named.member == &Calibration::software ||
                           named.member == &Calibration::serving;
  return !of_software || calibration.*named.member != Calibration{}.*named.member;
}

std::vector<std::string> constant_names(const Calibration& calibration, bool measured) {
  std::vector<std::string> names;
  for (const NamedConstant& entry : kConstants) {
    if (!is_stated(entry, calibration)) continue;
    if ((calibration.*entry.member).measured == measured) names.emplace_back(entry.name);
  }
  for (const auto& entry : calibration.collectives) {
    if (entry.measured != measured) continue;
    names.push_back(name_of(entry));
  }
  return names;
}

std::optional<std::string> shipped_calibration(const DeviceSpec& device) {
  const std::string name = lower_case(device.name);
  static constexpr std::array<std::string_view, 8> kShipped = {"cpu",  "a100", "h100", "h800",
                                                               "h200", "h20",  "b200", "l40s"};
  for (const std::string_view candidate : kShipped) {
    const bool whole = name.size() == candidate.size() ||
                       (name.size() > candidate.size() &&
                        std::isalnum(static_cast<unsigned char>(name[candidate.size()])) == 0);
    if (name.starts_with(candidate) && whole) return std::string(candidate);
  }
  return std::nullopt;
}

}  // namespace tessera
