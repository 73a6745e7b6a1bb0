// Tessera's own executor with vLLM 0.24's servers as its rollout (executor/vllm), on the GPUs of
// training or on others of the same host. What trains is the own executor's; how tokens are decoded
// and which layouts are held is vLLM's.
#include "planner/engines/rows.h"
#include "planner/engines/vllm_weights.h"

namespace tessera {
namespace {

/// The own executor's account, and beside it what a server keeps on a GPU that it shares while it
/// sleeps: a second process with its context, communicators and captured graphs. Nobody has
/// measured that for this pair; vLLM's own test of a 1B model holds it below 2 GiB, and below 7
/// with the buffer of logits that V1 does not give back (tests/basic_correctness/test_cumem.py).
constexpr Bytes kAsleep{3LL << 30}, kAsleepDeviation{2LL << 30};

MemoryAccuracy beside_a_server(MemoryAccuracy trainer) {
  trainer.deviation = kUnmeasuredMemory.deviation;
  trainer.outside += kAsleep;
  trainer.outside_deviation += kAsleepDeviation;
  trainer.measured = 0;
  trainer.source = "not measured: the executor's, and what vLLM's tests allow a sleeping server";
  return trainer;
}

}  // namespace

Engine tessera_vllm_engine() {
  Engine engine = tessera_engine();
  const Engine server = vllm_engine();
  engine.name = kOwnEngineWithVllm;
  engine.generation = GenerationEngine::vllm;
  Capabilities& can = engine.capabilities;
  can.serving.refusals = vllm_refusals;
  // Weights of experts are not brought to the servers (executor/vllm/placement.cc).
  can.families = {ModelFamily::llama, ModelFamily::mistral, ModelFamily::qwen2, ModelFamily::qwen3};
  can.offload.actor_parameters = false;
  can.pools.one_host = true;
  can.lora = false;  // its servers get whole weights
  engine.traits.decode = server.traits.decode;
  engine.traits.decode.keeps_cache = true;
  // Each worker copies its slices out of the trainer's memory: nothing is gathered, named or
  // packed. What is left is to wake and to map: 0.33 s of a 1.5B on one H200, 0.45 from FSDP2 to
  // TP2 on two, 0.12 of a 0.5B (benchmarks/results/h200x2-rollout-vllm.json).
  engine.traits.handover.call = Seconds{0.37};
  engine.weights.shares_memory = false;
  engine.memory = beside_a_server(engine.memory);
  return engine;
}

}  // namespace tessera
