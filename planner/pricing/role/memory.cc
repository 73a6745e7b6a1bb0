#include "planner/pricing/role/memory.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cost_models/executor/call_bytes.h"
#include "cost_models/executor/share_buffers.h"
#include "cost_models/transformers/fsdp_pass.h"
#include "planner/pricing/role/shards.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// Largest piece of offloaded optimizer states that passes through the device at a time.
constexpr Bytes kStreamBytes{1LL << 30};

bool of_own_executor(const EngineTraits& traits) {
  return traits.kernels.account == ActivationAccount::executor;
}

// Adapters and the weights beside them are held in the type that the engine's parameters have
// (verl: fp32 unless model_dtype says otherwise).
RoleDTypes stored_types(const RoleLayout& role, const Candidate& candidate) {
  RoleDTypes stored = role.model->dtypes;
  const bool masters = role.assumed->traits().shards.master_parameters;
  const bool trains = candidate.role != Role::rollout;
  if (trains && masters && size_of(stored.master) > size_of(stored.param)) {
    stored.param = stored.master;
  }
  return stored;
}

}  // namespace

// Offloaded things are on the device only where they work. The rollout's weights stay mapped unless
// its parameters are "offloaded" (unmapped). With adapters the actor is the reference, too.
MemoryUse on_device(const RoleLayout& layout, MemoryUse use, const Candidate& candidate,
                    Phase phase, std::optional<CallKind> call) {
  const EngineTraits& traits = layout.assumed->traits();
  const bool trains = call == CallKind::train;
  const bool moves =
      phase == Phase::reshard && (candidate.role == Role::actor || candidate.role == Role::rollout);
  const bool lent = phase == Phase::ref && candidate.role == Role::actor &&
                    layout.assumed->request.lora.contains(Role::reference);
  const Offload& offload = candidate.offload;
  if (offload.parameters && !call && !moves && !lent) use.weights = {};
  if (moves && candidate.role == Role::rollout) use.reshard += layout.model->bucket_bytes;
  if (!call) use.gathered += left_gathered(layout, candidate, phase);
  if ((offload.gradients || traits.gradients.fresh) && !trains) use.gradients = {};
  if (offload.optimizer && (!trains || traits.optimizer.offloaded != OffloadedStates::whole)) {
    const Bytes states = use.master_weights + use.optimizer;
    if (trains && traits.optimizer.offloaded != OffloadedStates::on_host)
      use.workspace += std::min(states, kStreamBytes);
    use.master_weights = use.optimizer = {};
  }
  return use;
}

MemoryUse frozen_weights(const RoleLayout& role, const Candidate& candidate,
                         const StageClass& stage) {
  return resident_memory(stage.elements, shard_degrees(candidate, role.assumed->traits()),
                         stored_types(role, candidate), false);
}

// Adapters have gradients, master weights and states; what they stand beside has none.
MemoryUse resident(const RoleLayout& role, const Candidate& candidate, const StageClass& stage) {
  const EngineTraits& traits = role.assumed->traits();
  const RoleModel& model = *role.model;
  const ParallelLayout layout = shard_degrees(candidate, traits);
  const bool masters = traits.shards.master_parameters;
  if (!model.lora.used()) {
    MemoryUse whole = resident_memory(stage.elements, layout, model.dtypes, model.trained);
    if (layout.zero == 1 && traits.gradients.reduced_in_place) {
      whole.gradients =
          Bytes{model.trained ? stage.elements.total() * size_of(model.dtypes.grad) : 0};
    }
    if (model.trained && layout.dp_shard > 1 && masters) {
      whole.weights = std::max(whole.weights, whole.master_weights);
      whole.master_weights = {};
    }
    if (of_own_executor(traits)) {
      return whole +
             share_buffers(shared_stage(role, candidate, stage), model.dtypes, model.trained);
    }
    return whole;
  }
  if (candidate.role == Role::reference) return {};  // the actor's
  const Elements adapters = trained_elements(role, stage);
  const ParallelLayout cut = traits.adapters.replicated ? adapter_layout(layout) : layout;
  const MemoryUse frozen = frozen_weights(role, candidate, stage);
  if (candidate.role == Role::rollout && model.lora.merged) return frozen;
  return frozen + resident_memory(adapters, cut, stored_types(role, candidate), model.trained);
}

MemoryUse asleep(const RoleLayout& layout, const Candidate& candidate, const StageClass& stage,
                 Phase phase) {
  const MemoryUse whole = resident(layout, candidate, stage);
  const MemoryUse here = on_device(layout, whole, candidate, phase, layout.model->calls[phase]);
  return {.weights = whole.weights - here.weights,
          .master_weights = whole.master_weights - here.master_weights,
          .optimizer = whole.optimizer - here.optimizer};
}

std::optional<CallKind> in_memory(const EngineTraits& traits, std::optional<CallKind> call,
                                  const Candidate& candidate) {
  if (!traits.decode.keeps_cache || candidate.offload.parameters) return call;
  if (candidate.role == Role::rollout) return CallKind::generate;
  return candidate.role == Role::reward ? CallKind::infer : call;
}

MemoryUse stage_memory(const RoleLayout& layout, const Candidate& candidate,
                       const StageClass& stage, int index, Phase phase,
                       const TrainedBatches& batches) {
  const std::optional<CallKind> call = layout.model->calls[phase];
  const MemoryUse held =
      on_device(layout, resident(layout, candidate, stage), candidate, phase, call);
  const std::optional<CallKind> held_by = in_memory(layout.assumed->traits(), call, candidate);
  return held_by ? held + working(layout, candidate, stage, index, *held_by, batches) : held;
}

double mini_batch_sequences(const Workload& workload, const Candidate& candidate) {
  return as_double(workload.sequences() / workload.mini_batches) / candidate.dp;
}

namespace {

// Tokens of a micro-batch, and of all that a replica has at once. A sequence that is alone in its
// micro-batch may be longer than the limit, and all of a replica's may be shorter.
struct BatchTokens {
  double each = 0, most = 0;
};

BatchTokens batch_tokens(const Workload& workload, const Candidate& candidate, bool trains) {
  const std::int64_t longest = longest_sequence(workload);
  const std::int64_t calls = trains ? workload.mini_batches : 1;
  const std::int64_t present =
      std::max<std::int64_t>(1, (workload.sequences() / calls + candidate.dp - 1) / candidate.dp);
  const double most = as_double(present) * as_double(longest);
  return {std::max(std::min(as_double(candidate.tokens), most), as_double(longest)), most};
}

// Buffers of collectives and of gathered parameters.
MemoryUse communication_buffers(const RoleLayout& role, const Candidate& candidate,
                                const StageClass& stage, const RankModel& rank, double tokens,
                                std::int64_t layers, bool whole_gradients) {
  const EngineTraits& traits = role.assumed->traits();
  const ParallelLayout layout = shard_degrees(candidate, traits);
  Elements fullest_layer;
  for (const auto& kind : role.parts->layer) {
    if (kind.front().total() > fullest_layer.total()) fullest_layer = kind.front();
  }
  MemoryUse buffers = communication_memory(rank, layout, fullest_layer, tokens, role.model->dtypes,
                                           whole_gradients, layers);
  const bool whole_head = traits.loss.rows == 0 || traits.loss.fused_with_head;
  if (whole_head && stage.last && layout.dp_shard > 1) {
    buffers.gathered += gathered_head(*role.model, candidate, whole_gradients);
  }
  return buffers;
}

// Micro-batches whose activations a stage holds at once; parts where its chunks have unequal
// layers.
double batches_in_flight(const RoleLayout& role, const Candidate& candidate, int index,
                         std::int64_t layers, int count) {
  const std::int64_t chunks = std::int64_t{candidate.pp} * candidate.vpp;
  const std::int64_t all = role.model->spec.layers;
  if (candidate.vpp > 1 && layers > 0 && (role.cut != nullptr || all % chunks != 0)) {
    ParallelLayout cut = layout_of(candidate, all);
    if (role.cut != nullptr) cut.stages = *role.cut;
    return layers_in_flight(cut, count, index) / as_double(layers);
  }
  return stage_batches_in_flight(count, candidate.pp, candidate.vpp, index);
}

// torch.optim.AdamW's default over lists of tensors makes the square roots of all second moments at
// once (_multi_tensor_adam; its documentation: "about the size of the parameters"). FSDP casts its
// parameters for the passes alone: the last layer's backward pass frees what is left of that copy
// (FSDPParamGroup.post_backward; tests/cost_models/fsdp_memory_oracle.py). Stated less what the
// stage holds.
MemoryUse optimizer_step(const EngineTraits& traits, const MemoryUse& held) {
  MemoryUse step;
  const bool cast = traits.shards.master_parameters && held.master_weights > Bytes{0};
  if (cast) step.weights = -held.weights;
  if (!traits.optimizer.fused && traits.optimizer.offloaded != OffloadedStates::on_host)
    step.workspace = held.optimizer / 2;
  return step;
}

// Of a call that trains, where every backward pass makes its gradients: with one micro-batch there
// are none when all activations are (`forward`, the first moment), and all where one layer's are
// left (the second; between them one grows as the other falls). Then the optimizer reads them, with
// copies of its own. Gradients are stated less what the stage holds of them between calls.
MemoryUse worst_moment(const RoleLayout& layout, const Candidate& candidate,
                       const StageClass& stage, const RankModel& rank, const StageLoad& load,
                       MemoryUse forward, const MemoryUse& buffers, double batches) {
  const EngineTraits& traits = layout.assumed->traits();
  const MemoryUse held = resident(layout, candidate, stage);
  if (batches <= 1) forward.gradients = -held.gradients;
  const auto layers = std::accumulate(load.layers.begin(), load.layers.end(), std::int64_t{0});
  StageLoad last = load;
  last.in_flight = std::min(load.in_flight, 1.0 / as_double(std::max<std::int64_t>(layers, 1)));
  const MemoryUse backward = buffers + training_memory(rank, last, candidate.recompute);
  const MemoryUse step = optimizer_step(traits, held);
  const auto larger = [](const MemoryUse& a, const MemoryUse& b) { return a.total() < b.total(); };
  return std::max({forward, backward, step}, larger);
}

// One moment's bytes, by class.
MemoryUse memory_of(const PassBytes& bytes) {
  // More than any memory holds, and little enough that sums of them stay integers.
  const auto rounded = [](double value) {
    return Bytes{static_cast<std::int64_t>(std::ceil(std::min(value, 1.0 * (1LL << 56))))};
  };
  return {.activations = rounded(bytes.activations),
          .logits = rounded(bytes.logits),
          .gathered = rounded(bytes.gathered),
          .workspace = rounded(bytes.workspace)};
}

// Of one of several micro-batches, into which sequences are dealt so that all have nearly as many
// tokens (verl 0.9.1's rearrange_micro_batches): the fuller of two halves has one sequence more.
double tokens_of_several(const BatchTokens& batch, double longest) {
  return std::min(batch.each, (batch.most + longest) / 2);
}

// A call of transformers' modules under FSDP, at its largest moment. Gradients are stated less
// what the stage holds of them between calls: a first micro-batch has none before its first layer
// is done. Then the optimizer reads them (worst_moment). Where lengths decide whether a mini-batch
// is one micro-batch or several, the one is full and has no gradients beside its logits yet, and
// the others share what there is at most.
MemoryUse transformers_working(const RoleLayout& layout, const Candidate& candidate,
                               const StageClass& stage, const RankModel& rank,
                               const BatchTokens& batch, const TrainedBatches& batches,
                               bool trains) {
  const ModuleRun run{
      .type = rank.dtype, .ulysses = rank.ulysses ? rank.cp : 1, .adapter_rank = rank.adapter_rank};
  const GatheredParts parts = gathered_parts(layout, candidate);
  PassLoad load{.tokens = batch.each / rank.cp,
                .layers = stage.layers,
                .checkpointed = candidate.recompute == Recompute::full};
  if (!trains) {
    load.logits = inference_memory(rank, stage.last, batch.each).logits;
    return memory_of(scoring_moment(rank.model, run, parts, load));
  }
  const auto moments_of = [&](double tokens, const GatheredParts& gathered) {
    load.tokens = tokens / rank.cp;
    load.logits =
        training_memory(rank, {.last = stage.last, .tokens = tokens}, Recompute::none).logits;
    return training_moments(rank.model, run, gathered, load);
  };
  const MemoryUse held = resident(layout, candidate, stage);
  const EngineTraits& traits = layout.assumed->traits();
  MemoryUse most = optimizer_step(traits, held);
  const auto add = [&](const PassBytes& moment, Bytes gradients) {
    MemoryUse use = memory_of(moment);
    use.gradients = gradients;
    if (use.total() > most.total()) most = use;
  };
  const auto add_all = [&](double tokens, Bytes at_logits, Bytes in_layers) {
    const auto moments = moments_of(tokens, parts);
    for (std::size_t i = 0; i < moments.size(); ++i) {
      add(moments[i], static_cast<Moment>(i) < Moment::first_layer ? at_logits : in_layers);
    }
  };
  const bool fresh = traits.gradients.fresh;
  const bool dealt = fresh && candidate.sequences == 0;
  if (fresh && (dealt || batches.count <= 1)) add_all(batch.each, -held.gradients, Bytes{});
  if (fresh && batches.count <= 1) return most;
  const double tokens =
      dealt ? tokens_of_several(batch, as_double(longest_sequence(layout.assumed->workload())))
            : batch.each;
  const bool unreduced = layout.model->no_sync && batches.count > 1;
  const UnreducedGradients kept =
      unreduced ? unreduced_gradients(layout, candidate, stage) : UnreducedGradients{};
  add_all(tokens, unreduced ? kept.all - held.gradients : Bytes{}, kept.root);
  if (!unreduced) return most;
  // Of a micro-batch before the last, whose gradients join those of others before it.
  const auto before = moments_of(tokens, without_reduction(parts));
  const Bytes gradients = (batches.count > 2 ? kept.all : kept.all - kept.root) - held.gradients;
  for (const Moment moment : {Moment::first_layer, Moment::root}) {
    add(before[static_cast<std::size_t>(moment)], gradients);
  }
  return most;
}

// A call of Tessera's own executor; blocks of a ring and of Ulysses as communication_memory counts
// them.
MemoryUse executor_working(const RoleLayout& layout, const Candidate& candidate,
                           const StageClass& stage, const RankModel& rank, const StageLoad& load,
                           bool trains) {
  const RoleDTypes& dtypes = layout.model->dtypes;
  MemoryUse use = trains ? executor_training_bytes(rank, load, candidate.recompute)
                         : executor_scoring_bytes(rank, stage.last, load.tokens);
  use.gathered = gathered_bytes(shared_stage(layout, candidate, stage), dtypes,
                                trains && rank.traits.shards.kept_gathered);
  use.communication +=
      communication_memory(rank, {}, {}, load.tokens, dtypes, trains).communication;
  return use;
}

}  // namespace

double cached_tokens(const Assumptions& assumed, const Candidate& candidate) {
  const Workload& workload = assumed.workload();
  if (!assumed.cache) return as_double(longest_sequence(workload));
  const std::int64_t sequences = most_sequences(workload, assumed.prompts, candidate.dp);
  return assumed.cache->tokens(as_double(sequences), as_double(candidate.max_sequences)) /
         as_double(candidate.max_sequences);
}

double paged_tokens(const Assumptions& assumed, const Candidate& candidate) {
  if (!assumed.cache) return 0;
  return cached_tokens(assumed, candidate) * as_double(candidate.max_sequences);
}

namespace {

// Of the language model alone.
MemoryUse model_working(const RoleLayout& layout, const Candidate& asked, const StageClass& stage,
                        int index, CallKind kind, const TrainedBatches& batches) {
  const Workload& workload = layout.assumed->workload();
  const RoleModel& model = *layout.model;
  const bool trains = kind == CallKind::train;
  const Candidate candidate = in_call(asked, trains);
  const auto [layers, widest] = layers_of(stage);
  const RankModel& rank = (*layout.ranks)[static_cast<std::size_t>(widest)];
  if (kind == CallKind::generate) {
    return rollout_memory(rank, model.dtypes.kv, candidate.max_sequences,
                          cached_tokens(*layout.assumed, candidate), as_double(candidate.tokens),
                          layers);
  }
  const BatchTokens batch = batch_tokens(workload, candidate, trains);
  if (layout.assumed->traits().kernels.account == ActivationAccount::transformers) {
    return transformers_working(layout, candidate, stage, rank, batch, batches, trains);
  }
  const auto [tokens, most] = batch;
  const double in_flight = batches.in_flight ? *batches.in_flight
                                             : batches_in_flight(layout, candidate, index, layers,
                                                                 static_cast<int>(batches.count));
  const StageLoad load{.layers = stage.layers,
                       .last = stage.last,
                       .tokens = tokens,
                       .sequence = as_double(longest_sequence(workload)),
                       // The last micro-batch is what is left.
                       .in_flight = std::min(in_flight, most / tokens)};
  if (of_own_executor(layout.assumed->traits())) {
    return executor_working(layout, candidate, stage, rank, load, trains);
  }
  const bool whole_gradients = trains && !model.lora.used();
  const MemoryUse buffers =
      communication_buffers(layout, candidate, stage, rank, tokens, layers, whole_gradients);
  if (!trains) return buffers + inference_memory(rank, stage.last, tokens);
  const MemoryUse use = buffers + training_memory(rank, load, candidate.recompute);
  if (!layout.assumed->traits().gradients.fresh) return use;
  return worst_moment(layout, candidate, stage, rank, load, use, buffers, batches.count);
}

// Images of what a rank works on at once: of a prefill's prompts, or of sequences of the mean
// length, one at least.
ImageBatch images_at_once(const RoleLayout& layout, const Candidate& candidate, CallKind kind) {
  const Workload& workload = layout.assumed->workload();
  if (kind == CallKind::generate) {
    const double prompts = as_double(candidate.tokens) / as_double(workload.prompt_tokens);
    return images_of(workload, std::clamp(prompts, 1.0, as_double(workload.prompts_per_step)));
  }
  const auto [tokens, most] = batch_tokens(workload, candidate, kind == CallKind::train);
  const double present = most / as_double(longest_sequence(workload));
  return images_of(workload, std::clamp(tokens / layout.assumed->sequence, 1.0, present));
}

}  // namespace

MemoryUse working(const RoleLayout& layout, const Candidate& asked, const StageClass& stage,
                  int index, CallKind kind, const TrainedBatches& batches) {
  const MemoryUse use = model_working(layout, asked, stage, index, kind, batches);
  if (!layout.model->tower || !stage.first) return use;
  const Candidate candidate = in_call(asked, kind == CallKind::train);
  const ImageBatch images = images_at_once(layout, candidate, kind);
  const bool trains = kind == CallKind::train && !layout.model->lora.used();
  const int count = static_cast<int>(batches.count);
  const double in_flight = !trains ? 0
                           : batches.in_flight
                               ? *batches.in_flight
                               : batches_in_flight(layout, candidate, index, 0, count);
  return beside_tower(use, *layout.model->tower, images, candidate.recompute, in_flight);
}

}  // namespace tessera
