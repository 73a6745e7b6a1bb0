// Which GPU of the host one of CUDA's is: CUDA numbers those that CUDA_VISIBLE_DEVICES names.
#pragma once

#include <string>

namespace tessera {

/// "0000:65:00.0" of CUDA's device; empty where CUDA does not tell. Any thread.
std::string pci_bus_id_of(int device);

}  // namespace tessera
