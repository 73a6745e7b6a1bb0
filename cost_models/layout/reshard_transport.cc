#include "cost_models/layout/reshard_transport.h"

namespace tessera {

std::string_view name_of(ReshardMode mode) {
  return mode == ReshardMode::minimal ? "minimal" : "full";
}

std::string_view name_of(ReshardTransport transport) {
  switch (transport) {
    case ReshardTransport::automatic:
      return "automatic";
    case ReshardTransport::copy_engine:
      return "copy_engine";
    case ReshardTransport::window:
      return "window";
    case ReshardTransport::all_gather:
      return "all_gather";
    case ReshardTransport::send_recv:
      return "send_recv";
    case ReshardTransport::host:
      break;
  }
  return "host";
}

std::optional<ReshardTransport> transport_from(std::string_view name) {
  for (const ReshardTransport transport : kTransports) {
    if (name_of(transport) == name) return transport;
  }
  return std::nullopt;
}

std::vector<std::string> transport_names() {
  std::vector<std::string> names;
  for (const ReshardTransport transport : kTransports) names.emplace_back(name_of(transport));
  return names;
}

}  // namespace tessera
