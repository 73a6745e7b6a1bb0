#include "cost_models/derived_calibration.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>

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

// One-way NVLink or PCIe rate per GPU of the machine behind a shipped calibration, bytes/s (data
// sheets; PCIe 4 x16 for L40S).
struct LinkRate {
  std::string_view name;
  double rate;
};
constexpr std::array<LinkRate, 7> kLinks = {{{"a100", 300e9},
                                             {"h100", 450e9},
                                             {"h200", 450e9},
                                             {"h20", 450e9},
                                             {"h800", 200e9},
                                             {"b200", 900e9},
                                             {"l40s", 32e9}}};

std::string lower(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string nearest_shipped(const DeviceSpec& device) {
  const std::string name = lower(device.name);
  for (const Kinship& kin : kKinships) {
    if (name.find(kin.part) != std::string::npos) return std::string(kin.nearest);
  }
  // Unknown: by the ratio of compute to memory rate, flop per byte, of the nearest generation.
  const double intensity = device.peak_bf16.value / device.hbm.value;
  return intensity < 60 ? "h20" : intensity < 220 ? "a100" : intensity < 350 ? "h100" : "l40s";
}

void scale_links(Calibration& calibration, const std::string& shipped, const ClusterSpec& cluster) {
  const auto* base = std::find_if(kLinks.begin(), kLinks.end(),
                                  [&](const LinkRate& link) { return link.name == shipped; });
  if (base == kLinks.end() || !(cluster.intra_per_gpu.value > 0)) return;
  const double ratio = cluster.intra_per_gpu.value / base->rate;
  // Descriptions state a data sheet's rate or a measured one: both are the same link.
  if (ratio > 0.75 && ratio < 1.34) return;
  for (CollectiveConstants& entry : calibration.collectives) {
    if (entry.nodes > 1) continue;
    entry.bandwidth *= ratio;
    entry.error = std::max(entry.error, 0.2);
    entry.measured = false;
    entry.origin += "; bandwidth scaled to the cluster's link";
  }
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

}  // namespace

std::optional<Calibration> calibration_for_cluster(const ClusterSpec& cluster, Problems& problems) {
  const auto own = shipped_calibration(cluster.device);
  const std::string shipped = own ? *own : nearest_shipped(cluster.device);
  auto calibration = find_calibration(shipped, problems);
  if (!calibration) return std::nullopt;
  scale_links(*calibration, shipped, cluster);
  if (own) return calibration;
  const std::string origin = "the cluster's description; ratios of " + shipped;
  set_rate(calibration->matmul_flops, cluster.device.peak_bf16.value, origin);
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

}  // namespace tessera
