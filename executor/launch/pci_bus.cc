#include "executor/launch/pci_bus.h"

#include <cuda_runtime_api.h>

#include <array>

namespace tessera {

std::string pci_bus_id_of(int device) {
  std::array<char, 32> id{};
  const auto room = static_cast<int>(id.size());
  return cudaDeviceGetPCIBusId(id.data(), room, device) == cudaSuccess ? id.data() : "";
}

}  // namespace tessera
