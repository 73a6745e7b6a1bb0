#include "executor/tensor/fused_settings.h"

#include "executor/tensor/fused.h"

#include <atomic>

namespace tessera::fused {
namespace {

std::atomic<bool> kernels_enabled{true};
std::atomic<bool> deterministic_asked{false};

}  // namespace

void enable(bool on) { kernels_enabled = on; }
bool enabled() { return kernels_enabled; }

void set_deterministic(bool on) {
  deterministic_asked = on;
  at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/true);
  at::globalContext().setDeterministicFillUninitializedMemory(false);  // nothing reads it
}
bool deterministic() { return deterministic_asked; }

}  // namespace tessera::fused
