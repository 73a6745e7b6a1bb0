// Megatron-LM alone: it trains an actor or a critic, and has no loop and no rollout of its own.
#include "planner/engines/rows.h"

namespace tessera {
namespace {

/// Held over counted of Megatron-LM's own peaks, as published by others: 33 rows of pipelines of 8
/// to 32 A100 (Qi et al. 2023, arXiv:2401.10241, tables 3 and 4), 1.01 to 1.09, in
/// fp16 with gradients in fp16.
constexpr MemoryAccuracy kPublishedMemory{.bias = 0.055,
                                          .deviation = 0.027,
                                          .outside_deviation = Bytes{3LL << 29},
                                          .measured = 33,
                                          .source = "tests/validation/data/zero_bubble.csv"};

}  // namespace

Engine megatron_engine() {
  Engine engine = megatron_core("megatron", "core 0.18");
  engine.capabilities.roles = {Role::actor, Role::critic};
  engine.capabilities.params = kTrainableTypes;
  engine.capabilities.families = megatron_families();
  engine.memory = kPublishedMemory;
  return engine;
}

}  // namespace tessera
