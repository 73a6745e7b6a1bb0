// Bytes of a rank in each phase of a candidate.
#include <algorithm>
#include <numeric>

#include "planner/pricing/evaluate_state.h"
#include "planner/pricing/full_gather.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// Largest piece of offloaded optimizer states that passes through the device at a time.
constexpr std::int64_t kStreamBytes = 1LL << 30;

}  // namespace

// Offloaded things are on the device only where they work. The rollout's weights stay mapped unless
// its parameters are "offloaded" (unmapped).
MemoryUse CostEvaluator::State::on_device(MemoryUse use, const Candidate& candidate, Phase phase,
                                          std::optional<CallKind> call) const {
  const EngineTraits& traits = request.traits;
  const bool trains = call == CallKind::train;
  const bool moves =
      phase == Phase::reshard && (candidate.role == Role::actor || candidate.role == Role::rollout);
  const Offload& offload = candidate.offload;
  if (offload.parameters && !call && !moves) use.weights = 0;
  if (moves && candidate.role == Role::rollout) use.reshard += bucket_bytes();
  if ((offload.gradients || traits.fresh_gradients) && !trains) use.gradients = 0;
  if (offload.optimizer && (!trains || traits.streamed_optimizer || traits.host_optimizer)) {
    const std::int64_t states = use.master_weights + use.optimizer;
    if (trains && !traits.host_optimizer) use.workspace += std::min(states, kStreamBytes);
    use.master_weights = use.optimizer = 0;
  }
  return use;
}

// What gathered tensors are handed to the rollout in, where an engine gathers them whole.
std::int64_t CostEvaluator::State::bucket_bytes() const {
  const auto actor = models.find(Role::actor);
  const Lora& lora = models.at(Role::rollout).lora;
  const bool adapters = lora.used() && !lora.merged;
  if (!gathers_whole(request.engine) || adapters || actor == models.end()) return 0;
  return gather_bucket_bytes(request.engine, actor->second.spec, actor->second.dtypes);
}

ParallelLayout CostEvaluator::State::shard_degrees(const Candidate& candidate) const {
  ParallelLayout layout = degrees_of(candidate);
  if (request.traits.context_shards && layout.zero == 3) {
    layout.dp_shard *= layout.cp;
    layout.cp = 1;
  }
  return layout;
}

// Adapters have gradients, master weights and states; what they stand beside has none, and is held
// in the type that the engine's parameters have (verl: fp32 unless model_dtype says otherwise).
MemoryUse CostEvaluator::State::resident(RoleModel& model, const Candidate& candidate,
                                         const StageClass& stage) {
  const ParallelLayout layout = shard_degrees(candidate);
  const bool masters = request.traits.master_parameters;
  if (!model.lora.used()) {
    MemoryUse whole = resident_memory(stage.elements, layout, model.dtypes, model.trained);
    if (layout.zero == 1 && request.traits.reduces_in_place) {
      whole.gradients = model.trained ? stage.elements.total() * size_of(model.dtypes.grad) : 0;
    }
    if (model.trained && layout.dp_shard > 1 && masters) {
      whole.weights = std::max(whole.weights, whole.master_weights);
      whole.master_weights = 0;
    }
    return whole;
  }
  const Elements adapters = trained_elements(model, candidate, stage);
  if (candidate.role == Role::rollout) {
    const MemoryUse frozen = resident_memory(stage.elements, layout, model.dtypes, false);
    return model.lora.merged ? frozen
                             : frozen + resident_memory(adapters, layout, model.dtypes, false);
  }
  RoleDTypes stored = model.dtypes;
  if (masters && size_of(stored.master) > size_of(stored.param)) stored.param = stored.master;
  const bool reference = candidate.role == Role::reference;
  if (reference && !candidate.offload.parameters) return {};  // the actor's
  return resident_memory(stage.elements, layout, stored, false) +
         resident_memory(adapters, layout, stored, model.trained);
}

// What verl's FSDP2 leaves to the root module: the head stays gathered from the forward pass on,
// and its gradient whole until all layers are done.
std::int64_t CostEvaluator::State::gathered_head(RoleModel& model, const Candidate& candidate,
                                                 bool gradients) {
  if (model.spec.head == ModelHead::value) return 0;
  return model.spec.vocab * model.spec.hidden / candidate.tp * size_of(model.dtypes.param) *
         (gradients ? 2 : 1);
}

std::optional<CallKind> CostEvaluator::State::in_memory(std::optional<CallKind> call,
                                                        const Candidate& candidate) const {
  const bool stays = candidate.role == Role::rollout && request.traits.keeps_cache &&
                     !candidate.offload.parameters;
  return stays ? CallKind::generate : call;
}

MemoryUse CostEvaluator::State::stage_memory(RoleModel& model, const Candidate& candidate,
                                             const StageClass& stage, int index, Phase phase,
                                             std::optional<double> in_flight) {
  const std::optional<CallKind> call = model.calls[static_cast<std::size_t>(phase)];
  const MemoryUse held = on_device(resident(model, candidate, stage), candidate, phase, call);
  const std::optional<CallKind> held_by = in_memory(call, candidate);
  return held_by ? held + working(model, candidate, stage, index, *held_by, in_flight) : held;
}

MemoryUse CostEvaluator::State::working(RoleModel& model, const Candidate& asked,
                                        const StageClass& stage, int index, CallKind kind,
                                        std::optional<double> in_flight) {
  const Workload& workload = request.workload;
  const bool trains = kind == CallKind::train;
  const Candidate candidate = in_call(asked, trains);
  const ParallelLayout layout = shard_degrees(candidate);
  LayerKind widest = LayerKind::dense;
  std::int64_t layers = 0;
  for (std::size_t kind = 0; kind < stage.layers.size(); ++kind) {
    layers += stage.layers[kind];
    if (stage.layers[kind] > 0) widest = static_cast<LayerKind>(kind);  // sparse wins
  }
  LayerRun run = layer_run(candidate);
  run.recompute = Recompute::none;  // no part of a RankModel
  const RankModel& rank = rank_model(model, run, widest);
  if (kind == CallKind::generate) {
    return rollout_memory(rank, model.dtypes.kv, candidate.max_sequences,
                          longest_sequence(workload), as_double(candidate.tokens), layers);
  }
  // A sequence that is alone in its micro-batch may be longer than the limit, and all of a
  // replica's may be shorter.
  const std::int64_t longest = longest_sequence(workload);
  const std::int64_t calls = trains ? workload.mini_batches : 1;
  const std::int64_t present =
      std::max<std::int64_t>(1, (workload.sequences() / calls + candidate.dp - 1) / candidate.dp);
  const double most = as_double(present) * as_double(longest);
  const double tokens = std::max(std::min(as_double(candidate.tokens), most), as_double(longest));
  const auto& by_kind = shards(model, candidate.tp, candidate.ep, candidate.etp).layer;
  Elements fullest_layer;
  for (const auto& kind : by_kind) {
    if (kind.front().total() > fullest_layer.total()) fullest_layer = kind.front();
  }
  const bool whole_gradients = trains && !model.lora.used();
  MemoryUse buffers = communication_memory(rank, layout, fullest_layer, tokens, model.dtypes,
                                           whole_gradients, layers);
  const bool whole_head = request.traits.logit_rows == 0 || request.traits.fused_loss;
  if (whole_head && stage.last && layout.dp_shard > 1) {
    buffers.communication += gathered_head(model, candidate, whole_gradients);
  }
  if (!trains) return buffers + inference_memory(rank, stage.last, tokens);
  if (!in_flight) {
    const auto count = static_cast<int>(mini_batch_parts(candidate));
    in_flight = stage_batches_in_flight(count, candidate.pp, candidate.vpp, index);
    const std::int64_t chunks = std::int64_t{candidate.pp} * candidate.vpp;
    if (candidate.vpp > 1 && layers > 0 && model.spec.layers % chunks != 0) {
      const ParallelLayout cut = layout_of(candidate, model.spec.layers);
      in_flight = layers_in_flight(cut, count, index) / as_double(layers);
    }
  }
  in_flight = std::min(*in_flight, most / tokens);  // the last micro-batch is what is left
  const StageLoad load{.layers = stage.layers,
                       .last = stage.last,
                       .tokens = tokens,
                       .sequence = as_double(longest_sequence(workload)),
                       .in_flight = *in_flight};
  const MemoryUse use = buffers + training_memory(rank, load, candidate.recompute);
  if (!gradients_come_and_go(candidate)) return use;
  return worst_moment(model, candidate, stage, rank, load, use, buffers);
}

bool CostEvaluator::State::gradients_come_and_go(const Candidate& candidate) const {
  return request.traits.fresh_gradients && shard_ranks(candidate, request.traits) > 1;
}

double CostEvaluator::State::mini_batch_parts(const Candidate& candidate) {
  const Workload& workload = request.workload;
  return micro_batches(candidate,
                       as_double(workload.sequences() / workload.mini_batches) / candidate.dp);
}

// Where every backward pass makes its gradients: with one micro-batch there are none when all
// activations are (the first moment), and all where one layer's are left (the second; between
// them one grows as the other falls). Then the optimizer reads them, with copies of its own.
MemoryUse CostEvaluator::State::worst_moment(RoleModel& model, const Candidate& candidate,
                                             const StageClass& stage, const RankModel& rank,
                                             const StageLoad& load, MemoryUse forward,
                                             const MemoryUse& buffers) {
  const MemoryUse held = resident(model, candidate, stage);
  if (mini_batch_parts(candidate) <= 1) forward.gradients = -held.gradients;
  const auto layers = std::accumulate(load.layers.begin(), load.layers.end(), std::int64_t{0});
  StageLoad last = load;
  last.in_flight = std::min(load.in_flight, 1.0 / as_double(std::max<std::int64_t>(layers, 1)));
  const MemoryUse backward = buffers + training_memory(rank, last, candidate.recompute);
  MemoryUse step;
  // torch.optim.AdamW's default over lists of tensors makes the square roots of all second moments
  // at once (_multi_tensor_adam; its documentation: "about the size of the parameters").
  if (!request.traits.fused_optimizer && !request.traits.host_optimizer)
    step.workspace = held.optimizer / 2;
  const auto larger = [](const MemoryUse& a, const MemoryUse& b) { return a.total() < b.total(); };
  return std::max({forward, backward, step}, larger);
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
