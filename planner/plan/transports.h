// Every way in which a switch may carry weights, in the order that help texts name them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cost_models/layout/reshard_plan.h"

namespace tessera {

inline constexpr std::array kTransports{ReshardTransport::automatic, ReshardTransport::copy_engine,
                                        ReshardTransport::window,    ReshardTransport::all_gather,
                                        ReshardTransport::send_recv, ReshardTransport::host};

inline std::vector<std::string> transport_names() {
  std::vector<std::string> names;
  for (const ReshardTransport transport : kTransports) names.emplace_back(name_of(transport));
  return names;
}

}  // namespace tessera
