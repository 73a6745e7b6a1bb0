// Tessera's own executor with rollout.batch_invariant: every sum of a sample's forward pass, and of
// the actor's log-probs of it, runs in an order that its own text decides. What a run refuses of it
// (executor/config/run_config_invariant.cc) is not planned.
#include "planner/engines/rows.h"

namespace tessera {
namespace {

/// Generation of Qwen2.5-1.5B and 7B on one H200 with and without the mode, 1,024 + 512 tokens
/// (benchmarks/results/h200-batch-invariant.json). A decode step takes 12.9 and 45.7 us a layer
/// longer at 64 and 256 sequences of the 1.5B, 30.9 and 92.7 of the 7B, while the device's memory
/// reads its keys and values in 17.5, 69.9, 35.0 and 139.8 us: this line is at most 4.5 us off.
/// Prompts take 1.93 to 2.02 us a token longer (1.5B) and 5.54 to 5.65 (7B), 36 to 46 TFLOP/s of
/// their attention's products, a 24th of the full rate.
constexpr FixedOrder kMeasured{.start = Seconds{4.4e-6}, .reads = 0.63, .products = 24};

}  // namespace

Engine tessera_invariant_engine() {
  Engine engine = tessera_engine();
  engine.name = kInvariantEngine;
  Capabilities& can = engine.capabilities;
  can.training.context_parallel = can.training.expert_parallel = false;
  can.training.experts = nullptr;
  can.serving.experts = ServedExperts::together;
  can.training.heads = can.serving.heads = HeadRule::query_heads;
  can.pools.rollout_lags = {};
  can.params = {DType::fp32, DType::bf16};
  can.families = {ModelFamily::llama, ModelFamily::mistral, ModelFamily::qwen2, ModelFamily::qwen3};
  engine.fixed_order = kMeasured;
  return engine;
}

}  // namespace tessera
