// torch's random generators, saved before a reshard to generation and put back after it.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <vector>

namespace tessera {

struct GeneratorState {
  std::vector<torch::Tensor> states;  // CPU generator, and the device's on a GPU
  std::uint64_t digest = 0;           // xxh3 of their bytes
};

GeneratorState save_generators(const torch::Device& device);
void restore_generators(const GeneratorState& state, const torch::Device& device);

}  // namespace tessera
