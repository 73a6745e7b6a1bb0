// verl 0.9.1 with its FSDP trainer (workers/engine/fsdp). FSDP has no tensor or pipeline
// parallelism; `context` is Ulysses. Stage 2 is reshard_after_forward = false, stage 0 is
// fsdp_size = 1.
#include "planner/engines/rows.h"

#include <string>

#include "cost_models/spec/families.h"

namespace tessera {
namespace {

/// Held over counted: verl's own peaks of Qwen2.5-7B on 4 H200 (0.988) and Qwen2.5-3B on 2 (1.004),
/// and those of 4 layers of four models, with and without checkpointing (1.000 to 1.081, the
/// mixture of experts at the upper end). What verl's second process, the server, keeps on a GPU
/// while it sleeps was not measured.
constexpr MemoryAccuracy kMeasuredMemory{
    .bias = 0.005,
    .deviation = 0.02,
    .outside_deviation = Bytes{3LL << 29},
    .measured = 10,
    .source = "benchmarks/results/h200x2-verl-planned.json, h200-transformers-memory.json"};

/// Models come as transformers has them, sequences packed into rows without padding.
std::string refused_model(const ModelSpec& model) {
  const char* const why = facts_of(model.family).modules.no_packing;
  if (why == nullptr) return {};
  return std::string(name_of(model.family)) + ", which cannot run on packed sequences: " + why;
}

}  // namespace

Engine verl_engine() {
  Engine engine = library_engine("verl", "0.9.1");
  add_verl_loop(engine);
  add_verl_fsdp(engine);
  Capabilities& can = engine.capabilities;
  can.training.recompute = {Recompute::none, Recompute::full};
  can.training.most_tp = 1;
  can.training.ulysses = true;
  can.offload.reference_on_host = true;  // whatever its configuration says (transformer_impl.py)
  can.params = kTrainableTypes;
  can.model = refused_model;
  engine.traits.pipeline.cut_by_tp = false;
  add_transformers_layers(engine);
  // Layers of transformers under FSDP take 1.7 to 2.8 ms of the host in a forward pass and 3.0 ms
  // more in a backward pass, whatever their size, where the executor's operators take 0.19 and 0.35
  // (benchmarks/peers/transformers_time.py, results/h200-verl-host.json).
  engine.traits.kernels.launch = 10;
  // What a micro-batch takes of the host beside its modules, in the first two of the six runs there
  // (fsdp/transformer_impl.py, forward_step). Nobody has measured verl's Megatron.
  engine.traits.software.scored = Seconds{0.045};
  engine.traits.software.trained = Seconds{0.14};
  engine.traits.shards.frozen_fetched = true;  // forward_only (fsdp/transformer_impl.py)
  engine.memory = kMeasuredMemory;
  return engine;
}

}  // namespace tessera
