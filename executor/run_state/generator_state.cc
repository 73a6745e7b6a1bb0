#include "executor/run_state/generator_state.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <mutex>

namespace tessera {
namespace {

std::vector<at::Generator> generators(const torch::Device& device) {
  std::vector<at::Generator> all{at::globalContext().defaultGenerator(torch::kCPU)};
  if (device.is_cuda()) all.push_back(at::globalContext().defaultGenerator(device));
  return all;
}

}  // namespace

GeneratorState save_generators(const torch::Device& device) {
  GeneratorState saved;
  for (at::Generator& generator : generators(device)) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    const torch::Tensor state = generator.get_state().clone();
    saved.digest = XXH3_64bits_withSeed(state.data_ptr(), state.nbytes(), saved.digest);
    saved.states.push_back(state);
  }
  return saved;
}

void restore_generators(const GeneratorState& state, const torch::Device& device) {
  std::vector<at::Generator> all = generators(device);
  for (size_t i = 0; i < all.size(); ++i) {
    const std::lock_guard<std::mutex> lock(all[i].mutex());
    all[i].set_state(state.states.at(i));
  }
}

}  // namespace tessera
