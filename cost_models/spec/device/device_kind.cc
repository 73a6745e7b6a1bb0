#include "cost_models/spec/device/device_kind.h"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

struct NamedCapability {
  std::string_view name;
  int capability;
};

constexpr std::array<NamedCapability, 12> kCapabilities{{{"A100", 80},
                                                         {"A800", 80},
                                                         {"L40S", 89},
                                                         {"H100", 90},
                                                         {"H200", 90},
                                                         {"H800", 90},
                                                         {"H20", 90},
                                                         {"GH200", 90},
                                                         {"B200", 100},
                                                         {"B300", 100},
                                                         {"GB200", 100},
                                                         {"GB300", 100}}};

}  // namespace

bool is_cpu(const DeviceSpec& device) { return device.name == "cpu" || device.name == "CPU"; }

int compute_capability(std::string_view device) {
  const auto* const found =
      std::find_if(kCapabilities.begin(), kCapabilities.end(),
                   [&](const NamedCapability& each) { return device.starts_with(each.name); });
  return found == kCapabilities.end() ? 0 : found->capability;
}

}  // namespace tessera
