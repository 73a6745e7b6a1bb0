// Tessera's own executor. Sources: executor/train (Trainer) and executor/model (CachedDecoder).
#include "planner/engines/rows.h"

namespace tessera {
namespace {

/// Held over counted: 13 training configurations of Qwen2-7B and Qwen2.5-32B on 4 H200 (allocated
/// and shared with peers over predicted without the reserve: 0.976 to 1.059), and two of a 7B's RL
/// steps, of which one ran out of memory. Outside the allocator there are 4.9 to 6.3 GiB (memory of
/// the device that is not free, less what torch has reserved and what peers share) where the
/// shipped reserve is 1.86.
constexpr MemoryAccuracy kMeasuredMemory{
    .bias = 0.03,
    .deviation = 0.025,
    .outside = Bytes{3'650'000'000},
    .outside_deviation = Bytes{640'000'000},
    .measured = 15,
    .source = "benchmarks/results/h200x4-train.json and docs/notes/trust.md"};

}  // namespace

Engine tessera_engine() {
  Engine engine;
  engine.name = kOwnEngine;
  Capabilities& can = engine.capabilities;
  can.roles = {kEveryRole.begin(), kEveryRole.end()};
  can.training.zero = {0, 1, 2, 3};
  can.training.recompute = {Recompute::none, Recompute::selective, Recompute::full};
  can.training.virtual_stages = can.training.fully_sharded = can.training.sequence_parallel = true;
  can.training.context_parallel = true;  // as a ring and as Ulysses
  can.offload.trained = can.offload.rollout = true;
  can.pools.rollout_lags = {0};
  can.params = kTrainableTypes;
  can.families = {ModelFamily::llama, ModelFamily::mistral, ModelFamily::qwen2, ModelFamily::qwen3};
  engine.traits.shards.overlapped = true;
  engine.traits.gradients.overlapped = true;
  engine.traits.optimizer.overlapped_parameters = true;
  engine.traits.kernels.overlapped_tensor_parallel = true;
  engine.traits.shards.transport = ShardTransport::copy_engines;
  engine.traits.shards.reduced_every_batch = true;
  engine.traits.optimizer.offloaded = OffloadedStates::on_host;
  engine.traits.decode.refills_alone = true;
  engine.prompts = PromptDealing::equal_shares;
  engine.weights.exact_ranges = true;
  engine.weights.any_rank_list = true;
  engine.weights.shares_memory = true;
  engine.memory = kMeasuredMemory;
  return engine;
}

}  // namespace tessera
