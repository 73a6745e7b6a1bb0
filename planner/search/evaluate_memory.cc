// Bytes of a rank in each phase of a candidate.
#include <algorithm>

#include "planner/search/evaluate_state.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// Largest piece of offloaded optimizer states that passes through the device at a time.
constexpr std::int64_t kStreamBytes = 1LL << 30;

// What of the resident bytes is on the device in a phase: offloaded things only where they work.
// The rollout's weights stay mapped unless its parameters are "offloaded" (unmapped).
MemoryUse on_device(MemoryUse use, const Candidate& candidate, const EngineTraits& traits,
                    bool needs_weights, bool trains) {
  const Offload& offload = candidate.offload;
  if (offload.parameters && !needs_weights) use.weights = 0;
  if (offload.gradients && !trains) use.gradients = 0;
  if (offload.optimizer && (!trains || traits.streamed_optimizer || traits.host_optimizer)) {
    const std::int64_t states = use.master_weights + use.optimizer;
    if (trains && !traits.host_optimizer) use.workspace += std::min(states, kStreamBytes);
    use.master_weights = use.optimizer = 0;
  }
  return use;
}

}  // namespace

MemoryUse CostEvaluator::State::stage_memory(RoleModel& model, const Candidate& candidate,
                                             const StageClass& stage, int index, Phase phase,
                                             std::optional<double> in_flight) {
  const Workload& workload = request.workload;
  const bool trained = model.trained;
  const ParallelLayout layout = degrees_of(candidate);
  MemoryUse whole = resident_memory(stage.elements, layout, model.dtypes, trained);
  if (trained && layout.dp_shard > 1 && request.traits.master_parameters) {
    whole.weights = std::max(whole.weights, whole.master_weights);
    whole.master_weights = 0;
  }
  const Call* call = nullptr;
  for (const Call& each : workload.dataflow) {
    const Role runs = each.kind == CallKind::generate ? Role::rollout : each.role;
    if (each.phase == phase && runs == candidate.role && each.kind != CallKind::compute) {
      call = &each;
    }
  }
  const bool trains = call != nullptr && call->kind == CallKind::train;
  const bool moves =
      phase == Phase::reshard && (candidate.role == Role::actor || candidate.role == Role::rollout);
  const MemoryUse resident =
      on_device(whole, candidate, request.traits, call != nullptr || moves, trains);
  if (call == nullptr) return resident;
  LayerKind widest = LayerKind::dense;
  std::int64_t layers = 0;
  for (std::size_t kind = 0; kind < stage.layers.size(); ++kind) {
    layers += stage.layers[kind];
    if (stage.layers[kind] > 0) widest = static_cast<LayerKind>(kind);  // sparse wins
  }
  LayerRun run = layer_run(candidate);
  run.recompute = Recompute::none;  // no part of a RankModel
  const RankModel& rank = rank_model(model, run, widest);
  if (call->kind == CallKind::generate) {
    return resident + rollout_memory(rank, model.dtypes.kv, candidate.max_sequences,
                                     longest_sequence(workload), as_double(candidate.tokens),
                                     layers);
  }
  // A sequence that is alone in its micro-batch may be longer than the limit.
  const auto tokens = as_double(std::max(candidate.tokens, longest_sequence(workload)));
  const auto& by_kind = shards(model, candidate.tp, candidate.ep, candidate.etp).layer;
  Elements fullest_layer;
  for (const auto& kind : by_kind) {
    if (kind.front().total() > fullest_layer.total()) fullest_layer = kind.front();
  }
  const MemoryUse buffers =
      communication_memory(rank, layout, fullest_layer, tokens, model.dtypes, trains, layers);
  if (!trains) return resident + buffers + inference_memory(rank, stage.last, tokens);
  if (!in_flight) {
    const double sequences = as_double(workload.sequences() / workload.mini_batches) / candidate.dp;
    const auto count = static_cast<int>(micro_batches(candidate, sequences));
    in_flight = stage_batches_in_flight(count, candidate.pp, candidate.vpp, index);
    const std::int64_t chunks = std::int64_t{candidate.pp} * candidate.vpp;
    if (candidate.vpp > 1 && layers > 0 && model.spec.layers % chunks != 0) {
      const ParallelLayout cut = layout_of(candidate, model.spec.layers);
      in_flight = layers_in_flight(cut, count, index) / as_double(layers);
    }
  }
  const StageLoad load{.layers = stage.layers,
                       .last = stage.last,
                       .tokens = tokens,
                       .sequence = as_double(longest_sequence(workload)),
                       .in_flight = *in_flight};
  return resident + buffers + training_memory(rank, load, candidate.recompute);
}

// The stages whose ranks hold most in a phase.
CostEvaluator::State::Fullest CostEvaluator::State::fullest(RoleModel& model,
                                                            const Candidate& candidate,
                                                            Phase phase) {
  Fullest best;
  std::int64_t most = -1;
  for (const StageClass& stage : stages(model, candidate)) {
    const MemoryUse use = stage_memory(model, candidate, stage, stage.index, phase);
    if (use.total() <= most) continue;
    most = use.total();
    best = {&stage, use};
  }
  return best;
}

}  // namespace tessera
