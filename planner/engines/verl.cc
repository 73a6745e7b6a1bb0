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
  engine.traits.kernels.account = ActivationAccount::transformers;
  engine.memory = kMeasuredMemory;
  return engine;
}

}  // namespace tessera
