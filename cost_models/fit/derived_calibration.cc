#include "cost_models/fit/derived_calibration.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "cost_models/documents/printed.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/node_groups.h"

namespace tessera {
namespace {

// Devices by a part of their name, looked at in this order.
struct Kinship {
  std::string_view part, nearest;
};
constexpr std::array<Kinship, 26> kKinships = {{
    {"gh200", "h200"}, {"gb200", "b200"},    {"gb300", "b200"}, {"b300", "b200"}, {"b100", "b200"},
    {"b200", "b200"},  {"h200", "h200"},     {"h800", "h800"},  {"h100", "h100"}, {"h20", "h20"},
    {"a100", "a100"},  {"a800", "a100"},     {"a40", "a100"},   {"a30", "a100"},  {"a10", "a100"},
    {"a6000", "a100"}, {"3090", "a100"},     {"3080", "a100"},  {"l40", "l40s"},  {"l4", "l40s"},
    {"4090", "l40s"},  {"6000 ada", "l40s"}, {"v100", "a100"},  {"t4", "a100"},   {"titan", "a100"},
    {"mi300", "h100"},
}};

// Rates of the machine behind a shipped calibration: 16-bit peak, memory and one-way NVLink or PCIe
// per GPU (data sheets; PCIe 4 x16 for L40S).
struct Figures {
  std::string_view name;
  double peak, hbm, link;
};
constexpr std::array<Figures, 7> kFigures = {{{"a100", 312e12, 2039e9, 300e9},
                                              {"h100", 989e12, 3350e9, 450e9},
                                              {"h200", 989e12, 4800e9, 450e9},
                                              {"h20", 148e12, 4000e9, 450e9},
                                              {"h800", 989e12, 3350e9, 200e9},
                                              {"b200", 2250e12, 8000e9, 900e9},
                                              {"l40s", 362e12, 864e9, 32e9}}};

// Largest rate of 16-bit products in torch over that of the fitted machine, where data sheets
// promise another (stas00/ml-engineering, compute/accelerator: MAMF 1822 TFLOP/s on GB200, 1769 on
// B300, 1745 on B200; sheets say 2500, 2250, 2250).
struct Reached {
  std::string_view part;
  double sheet, ratio;
};
constexpr std::array<Reached, 2> kReached = {
    {{"gb200", 2500e12, 1822.0 / 1745}, {"b300", 2250e12, 1769.0 / 1745}}};

const Figures* figures_of(const std::string& shipped) {
  const auto* found = std::find_if(kFigures.begin(), kFigures.end(),
                                   [&](const Figures& figures) { return figures.name == shipped; });
  return found == kFigures.end() ? nullptr : found;
}

// The cluster's figure over the fitted machine's; 1 where it is not stated or is the same figure in
// another rounding.
double ratio_of(double stated, double fitted, double tolerance) {
  if (!(stated > 0)) return 1;
  const double ratio = stated / fitted;
  return ratio > 1 / tolerance && ratio < tolerance ? 1 : ratio;
}

std::string nearest_shipped(const DeviceSpec& device) {
  const std::string name = lower_case(device.name);
  for (const Kinship& kin : kKinships) {
    if (name.find(kin.part) != std::string::npos) return std::string(kin.nearest);
  }
  // Unknown: by the ratio of compute to memory rate, flop per byte, of the nearest generation.
  const double intensity = device.peak_bf16.value / device.hbm.value;
  return intensity < 60 ? "h20" : intensity < 220 ? "a100" : intensity < 350 ? "h100" : "l40s";
}

void widen(Constant& constant, double error) {
  constant.error = std::max(constant.error, error);
  constant.measured = false;
}

void set_rate(Constant& constant, double value, const std::string& origin) {
  constant.value = value;
  constant.origin = origin;
  widen(constant, 0.15);
}

// The product rate of a device that is not shipped: the fitted machine's by what both were seen to
// reach, or the stated peak.
double product_rate(const DeviceSpec& device, double shipped) {
  const std::string name = lower_case(device.name);
  for (const Reached& seen : kReached) {
    const std::size_t found = name.find(seen.part);
    if (found == std::string::npos || (found > 0 && name[found - 1] == 'g')) continue;
    return shipped * seen.ratio * device.peak_bf16.value / seen.sheet;
  }
  return device.peak_bf16.value;
}

void scale(Constant& constant, double ratio) {
  constant.value *= ratio;
  constant.origin += "; scaled to the cluster's figure";
  widen(constant, 0.15);
}

// Bandwidths within a node; returns by how much.
double scale_links(Calibration& calibration, const Figures& fitted, const ClusterSpec& cluster) {
  // Descriptions state a data sheet's rate or a measured one: both are the same link.
  constexpr double kSameLink = 1.34;
  const double ratio = ratio_of(cluster.intra_per_gpu.value, fitted.link, kSameLink);
  if (ratio == 1) return ratio;
  for (CollectiveConstants& entry : calibration.collectives) {
    if (entry.nodes > 1) continue;
    entry.bandwidth *= ratio;
    entry.error = std::max(entry.error, 0.2);
    entry.measured = false;
    entry.origin += "; bandwidth scaled to the cluster's link";
  }
  return ratio;
}

// A cluster of a shipped device whose stated rates are not those of the machine that was fitted
// (another form factor, a power limit, a what-if): its constants follow the figures, and its name
// says so.
void scale_to_figures(Calibration& calibration, const Figures& fitted, const DeviceSpec& device,
                      double link) {
  constexpr double kRounding = 1.06;  // 1935 and 2039 GB/s are two form factors of one A100
  const double peak = ratio_of(device.peak_bf16.value, fitted.peak, kRounding);
  const double hbm = ratio_of(device.hbm.value, fitted.hbm, kRounding);
  std::string scaled;
  const auto say = [&](const char* what, double ratio) {
    if (ratio == 1) return;
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%s%s x%.3g", scaled.empty() ? "" : ", ", what, ratio);
    scaled += text.data();
  };
  say("peak", peak);
  say("memory rate", hbm);
  say("link", link);
  if (peak != 1) scale(calibration.matmul_flops, peak);
  if (hbm != 1) {
    scale(calibration.memory_bandwidth, hbm);
    scale(calibration.stream_bandwidth, hbm);
  }
  if (scaled.empty()) return;
  calibration.name += ", scaled to the cluster's figures: " + scaled;
  calibration.note +=
      " The cluster's figures are not those of the machine behind it: " + scaled + ".";
}

std::optional<Calibration> calibration_for_type(const ClusterSpec& cluster, Problems& problems) {
  const auto own = shipped_calibration(cluster.device);
  const std::string shipped = own ? *own : nearest_shipped(cluster.device);
  auto calibration = find_calibration(shipped, problems);
  if (!calibration) return std::nullopt;
  const Figures* const fitted = figures_of(shipped);
  const double link = fitted == nullptr ? 1 : scale_links(*calibration, *fitted, cluster);
  if (own) {
    if (fitted != nullptr) scale_to_figures(*calibration, *fitted, cluster.device, link);
    return calibration;
  }
  const std::string origin = "the cluster's description; ratios of " + shipped;
  set_rate(calibration->matmul_flops, product_rate(cluster.device, calibration->matmul_flops.value),
           origin);
  set_rate(calibration->memory_bandwidth, cluster.device.hbm.value, origin);
  const double streamed = calibration->stream_bandwidth.value;
  const double shipped_rate = find_calibration(shipped, problems)->memory_bandwidth.value;
  set_rate(calibration->stream_bandwidth, streamed / shipped_rate * cluster.device.hbm.value,
           origin);
  calibration->name = cluster.device.name + ", derived from " + shipped;
  calibration->device = cluster.device.name;
  calibration->note = "Derived: no calibration is shipped for " + cluster.device.name +
                      "; the ratios are those of " + shipped +
                      ". tessera calibrate measures the machine itself.";
  return calibration;
}

}  // namespace

std::optional<Calibration> calibration_for_cluster(const ClusterSpec& cluster, Problems& problems) {
  auto calibration = calibration_for_type(seen_from(cluster, 0), problems);
  if (!calibration || cluster.groups.empty()) return calibration;
  const auto views = pool_views(cluster);
  std::string names;
  for (std::size_t view = 1; view < views.size(); ++view) {
    auto own = calibration_for_type(seen_from(cluster, static_cast<int>(view)), problems);
    if (!own) return std::nullopt;
    if (views[view].single()) names += (names.empty() ? "" : " + ") + own->name;
    calibration->views.push_back(*std::move(own));
  }
  calibration->name = names;
  return calibration;
}

std::optional<Calibration> calibration_named(const std::string& name, const ClusterSpec& cluster,
                                             Problems& problems) {
  Problems ignored;
  if (cluster.groups.empty()) {
    if (auto same = find_calibration(name, ignored)) return same;
  }
  return calibration_for_cluster(cluster, problems);
}

}  // namespace tessera
