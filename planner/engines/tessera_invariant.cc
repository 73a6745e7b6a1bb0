// Tessera's own executor with rollout.batch_invariant: every sum of a sample's forward pass, and of
// the actor's log-probs of it, runs in an order that its own text decides. What a run refuses of it
// (executor/config/run_config_invariant.cc) is not planned.
#include "planner/engines/rows.h"

namespace tessera {
namespace {

/// Generation of Qwen2.5-1.5B and 7B on one H200 with and without the mode, 1,024 + 512 tokens
/// (benchmarks/results/h200-batch-invariant.json). A decode step takes 9.8 and 13.3 us a layer
/// longer at 64 and 256 sequences of the 1.5B, 7.0 and 22.4 of the 7B, while the device's memory
/// reads its keys and values in 20, 80, 40 and 160 us: this line is at most 2.5 us off.
/// Prompts take 0.46 to 0.52 us a token longer (1.5B) and 1.21 to 1.24 (7B), 166 to 190 TFLOP/s of
/// their attention's products.
constexpr FixedOrder kMeasured{.start = Seconds{5.5e-6}, .reads = 0.1, .products = 4.4};

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
  can.lora = false;  // their products are not in the fixed order
  can.params = {DType::fp32, DType::bf16};
  can.families = {ModelFamily::llama, ModelFamily::mistral, ModelFamily::qwen2, ModelFamily::qwen3};
  engine.fixed_order = kMeasured;
  return engine;
}

}  // namespace tessera
