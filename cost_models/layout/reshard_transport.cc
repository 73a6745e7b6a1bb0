#include "cost_models/layout/reshard_transport.h"

#include "cost_models/spec/enum_names.h"

namespace tessera {
namespace {

constexpr auto kModes =
    enum_names<ReshardMode>({{ReshardMode::minimal, "minimal"}, {ReshardMode::full, "full"}});
constexpr auto kTransportNames =
    enum_names<ReshardTransport>({{ReshardTransport::automatic, "automatic"},
                                  {ReshardTransport::copy_engine, "copy_engine"},
                                  {ReshardTransport::window, "window"},
                                  {ReshardTransport::all_gather, "all_gather"},
                                  {ReshardTransport::send_recv, "send_recv"},
                                  {ReshardTransport::host, "host"}});
static_assert(kTransportNames.pairs.size() == kTransports.size());

}  // namespace

std::string_view name_of(ReshardMode mode) { return kModes[mode]; }
std::string_view name_of(ReshardTransport transport) { return kTransportNames[transport]; }

std::optional<ReshardTransport> transport_from(std::string_view name) {
  return kTransportNames.find(name);
}

std::vector<std::string> transport_names() { return kTransportNames.names(); }

}  // namespace tessera
