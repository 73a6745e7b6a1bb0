#include "planner/pricing/role/shards.h"

#include <algorithm>
#include <optional>

#include "cost_models/compute.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

double tensors_of_a_layer(const ParameterTable& table) {
  return static_cast<double>(std::count_if(
      table.rows.begin(), table.rows.end(),
      [&](const Parameter& row) { return row.layer == table.model.layers - 1 && row.part == 0; }));
}

// Copies into and out of lists of one tensor per rank (ShardTransport::tensor_lists).
Seconds listed_copies(const Assumptions& assumed, Traffic bytes, GroupShape group) {
  if (assumed.traits().shards.transport != ShardTransport::tensor_lists) return {};
  const Calibration& calibration = assumed.calibration();
  const Seconds copy{std::max(calibration.dispatch_s.value, calibration.kernel_floor_s.value)};
  return group.ranks * copy + stream_seconds(2 * bytes, calibration);
}

}  // namespace

bool reduces_layers(const Candidate& candidate, const EngineTraits& traits) {
  return candidate.zero == 2 && candidate.dp * candidate.cp > 1 &&
         (candidate.pp == 1 || traits.shards.reduced_every_batch);
}

int sharing_replicas(const Candidate& candidate, const EngineTraits& traits, bool training) {
  if (shard_ranks(candidate, traits) > 1) return candidate.dp_shard;
  return training && reduces_layers(candidate, traits) ? candidate.dp : 0;
}

bool shards_overlap(const Assumptions& assumed) {
  return assumed.traits().shards.overlapped && assumed.calibration().overlapped_dispatch;
}

MovedShards gather_shards(const Assumptions& assumed, Traffic bytes, GroupShape group) {
  if (group.ranks <= 1 || bytes <= 0) return {};
  const double slowdown = assumed.calibration().overlap_slowdown.value - 1;
  if (assumed.traits().shards.transport == ShardTransport::copy_engines && group.nodes == 1) {
    return {collective_seconds(Collective::copy_engine,
                               wire_bytes(Collective::all_gather, bytes, group.ranks), group,
                               assumed.cluster(), assumed.calibration()),
            {}};
  }
  const Seconds seconds = collective_seconds(Collective::all_gather, bytes, group,
                                             assumed.cluster(), assumed.calibration());
  return {seconds + listed_copies(assumed, bytes, group), slowdown * seconds};
}

MovedShards reduce_shards(const Assumptions& assumed, Traffic bytes, GroupShape group) {
  if (group.ranks <= 1 || bytes <= 0) return {};
  if (assumed.traits().shards.transport == ShardTransport::copy_engines && group.nodes == 1) {
    // Everybody's parts of the own shard are fetched, then one kernel reads all and writes the sum.
    const Seconds summed = stream_seconds(bytes * (1 + 1.0 / group.ranks), assumed.calibration());
    return {collective_seconds(Collective::copy_engine,
                               wire_bytes(Collective::reduce_scatter, bytes, group.ranks), group,
                               assumed.cluster(), assumed.calibration()) +
                summed,
            summed};
  }
  const Seconds seconds = collective_seconds(Collective::reduce_scatter, bytes, group,
                                             assumed.cluster(), assumed.calibration());
  return {seconds + listed_copies(assumed, bytes, group),
          (assumed.calibration().overlap_slowdown.value - 1) * seconds};
}

namespace {

// Rajbhandari et al. 2020, sec. 7.2.2; Zhao et al. 2023 (FSDP). In `pieces` collectives each.
ShardSeconds shard_seconds(const RoleLayout& layout, const Candidate& candidate,
                           const Elements& elements, double pieces) {
  const Assumptions& assumed = *layout.assumed;
  const RoleModel& model = *layout.model;
  const CandidateGroups& groups = layout.groups;
  const bool gathers = shard_ranks(candidate, assumed.traits()) > 1;
  if (!gathers && !reduces_layers(candidate, assumed.traits())) return {};
  const GroupShape dense = gathers ? groups.shard : groups.replicas;
  const auto all = [&](DType type, const auto& move) {
    const double element = size_of(type);
    return pieces * move(Traffic{as_double(elements.dense) * element / pieces}, dense) +
           move(Traffic{as_double(elements.expert) * element}, groups.expert_replicas);
  };
  ShardSeconds seconds;
  if (gathers) {
    seconds.gather = all(model.dtypes.param, [&](Traffic bytes, GroupShape group) {
      return gather_shards(assumed, bytes, group);
    });
  }
  if (model.lora.used()) return seconds;  // what the adapters' gradients take is nothing beside it
  seconds.scatter = all(model.dtypes.grad, [&](Traffic bytes, GroupShape group) {
    return reduce_shards(assumed, bytes, group);
  });
  return seconds;
}

// With the way of its fp32 shards from host memory, before they are gathered.
ShardSeconds with_fetched(ShardSeconds seconds, const RoleLayout& layout,
                          const Candidate& candidate, const Elements& elements) {
  if (!fetches_layers(layout)) return seconds;
  const Traffic bytes{as_double(elements.total() * size_of(DType::fp32)) /
                      std::max(1, shard_ranks(candidate, layout.assumed->traits()))};
  seconds.gather.fetched = host_copy_seconds(bytes, layout.assumed->calibration());
  seconds.gather.seconds += seconds.gather.fetched;
  return seconds;
}

ShardSeconds end_shards(const RoleLayout& layout, const Candidate& candidate,
                        std::int64_t elements) {
  const Elements end{elements, 0};
  return with_fetched(shard_seconds(layout, candidate, end, 1), layout, candidate, end);
}

// verl's FSDP2 wraps an embedding and a head that are not tied as it wraps layers
// (utils/fsdp_utils.py, _select_fsdp2_wrap_targets): every pass fetches them. Tied ones are the
// root module's, which stays gathered.
bool ends_in_every_pass(const RoleLayout& layout) {
  return fetches_layers(layout) && !layout.model->spec.tied_embeddings;
}

}  // namespace

FetchedEnds fetched_ends(const RoleLayout& layout, const Candidate& candidate, Seconds last_layer) {
  if (!ends_in_every_pass(layout)) return {};
  const MovedShards first = end_shards(layout, candidate, layout.parts->first.front()).gather;
  const ShardSeconds last = end_shards(layout, candidate, layout.parts->last.front().total());
  return {.embedding = {first.seconds, first.fetched},
          .head = beside_layer(*layout.assumed, last, false, last_layer)};
}

bool fetches_layers(const RoleLayout& layout) {
  return layout.assumed->traits().shards.frozen_fetched && layout.model->role == Role::reference &&
         !layout.model->lora.used();
}

ShardSeconds layer_shards(const RoleLayout& layout, const Candidate& candidate, LayerKind kind) {
  const Elements layer = layout.parts->layer[static_cast<std::size_t>(kind)].front();
  const bool listed = layout.assumed->traits().shards.transport == ShardTransport::tensor_lists;
  const double pieces = listed ? tensors_of_a_layer(*layout.model->table) : 1;
  return with_fetched(shard_seconds(layout, candidate, layer, pieces), layout, candidate, layer);
}

// The embedding is gathered before and reduced after all, but for fetched_ends. Where layers
// overlap, nothing hides the first layer's gather, nor its reduction after the last backward pass.
ExposedEnds exposed_ends(const RoleLayout& layout, const Candidate& candidate, int stage) {
  ExposedEnds ends;
  const auto add = [&](const ShardSeconds& part) {
    ends.before += part.gather.seconds;
    ends.fetched += part.gather.fetched;
    ends.after += part.scatter.seconds;
  };
  if (stage == 0 && !ends_in_every_pass(layout)) {
    const ShardElements& parts = *layout.parts;
    add(end_shards(layout, candidate, parts.first.front() + parts.both.front()));
  }
  if (shards_overlap(*layout.assumed)) {
    add(layer_shards(layout, candidate, kind_of_layer(layout.model->spec, 0)));
  }
  return ends;
}

GatheredParts gathered_parts(const RoleLayout& layout, const Candidate& candidate) {
  const RoleModel& model = *layout.model;
  GatheredParts parts{.reduced_type = size_of(model.dtypes.grad), .trained = !model.lora.used()};
  const ParallelLayout degrees = shard_degrees(candidate, layout.assumed->traits());
  if (degrees.dp_shard <= 1 && candidate.zero < 2) return parts;
  for (const auto& kind : layout.parts->layer) {
    parts.layer = std::max(parts.layer, kind.front().total());
  }
  const std::int64_t end = model.spec.vocab * model.spec.hidden;
  const bool has_head = model.spec.head != ModelHead::value;
  if (has_head) parts.head = end;
  if (model.fsdp == Fsdp::fsdp1) {
    // The last norm, and a value head with its bias.
    const std::int64_t rest = model.spec.hidden + (has_head ? 0 : model.spec.hidden + 1);
    parts.root = (has_head && !model.spec.tied_embeddings ? 2 : 1) * end + rest;
    parts.padded_root = parts.root % shard_ranks(candidate, layout.assumed->traits()) != 0;
  }
  return parts;
}

namespace {

// Whether the role's last pass before a phase scored, in a step that follows others. Phases of no
// call are between steps.
bool scored_last(const RoleModel& model, const Dataflow& calls, Phase phase) {
  bool scored = false;
  for (int step = 0; step < 2; ++step) {
    for (const Call& call : calls) {
      if (step == 1 && call.phase == phase) return scored;
      const std::optional<CallKind> own = model.calls[call.phase];
      if (own == CallKind::infer || own == CallKind::train) scored = own == CallKind::infer;
    }
  }
  return scored;
}

}  // namespace

Bytes left_gathered(const RoleLayout& layout, const Candidate& candidate, Phase phase) {
  const RoleModel& model = *layout.model;
  const Assumptions& assumed = *layout.assumed;
  const bool over_all = candidate.dp_shard > 1 && candidate.dp_shard == candidate.dp;
  const bool modules = assumed.traits().kernels.account == ActivationAccount::transformers;
  if (model.fsdp != Fsdp::fsdp1 || !over_all || !modules || phase == Phase::load) return {};
  if (!scored_last(model, assumed.workload().dataflow, phase)) return {};
  return Bytes{gathered_parts(layout, candidate).root * size_of(model.dtypes.param)};
}

UnreducedGradients unreduced_gradients(const RoleLayout& layout, const Candidate& candidate,
                                       const StageClass& stage) {
  const RoleModel& model = *layout.model;
  const bool first = model.fsdp == Fsdp::fsdp1;
  const std::int64_t element = size_of(first ? model.dtypes.param : model.dtypes.grad);
  const Bytes all{trained_elements(layout, stage).total() * element};
  if (model.lora.used()) return {all, {}};
  const std::int64_t root =
      first ? gathered_parts(layout, candidate).root : model.spec.vocab * model.spec.hidden;
  return {all, Bytes{root * element}};
}

GatheredParts without_reduction(GatheredParts parts) {
  parts.reduced_type = 0;
  parts.padded_root = false;
  return parts;
}

SharedStage shared_stage(const RoleLayout& role, const Candidate& candidate,
                         const StageClass& stage) {
  const ParallelLayout layout = shard_degrees(candidate, role.assumed->traits());
  const ShardElements& parts = *role.parts;
  SharedStage shared{.all = stage.elements.total(),
                     .zero = layout.dp_shard > 1 ? 3 : layout.zero,
                     .ranks = zero_shards(layout).dense};
  for (const auto& kind : parts.layer) shared.layer = std::max(shared.layer, kind.front().total());
  for (const std::int64_t layers : stage.layers) shared.layers += layers;
  shared.outside = (stage.first ? parts.first.front() : 0) +
                   (stage.last ? parts.last.front().total() : 0) +
                   (stage.first || stage.last ? parts.both.front() : 0);
  return shared;
}

Bytes gathered_head(const RoleModel& model, const Candidate& candidate, bool gradients) {
  if (model.spec.head == ModelHead::value) return {};
  return Bytes{model.spec.vocab * model.spec.hidden / candidate.tp * size_of(model.dtypes.param) *
               (gradients ? 2 : 1)};
}

ShownShards beside_layer(const Assumptions& assumed, const ShardSeconds& moved, bool backward,
                         Seconds layer) {
  const bool kept = backward && assumed.traits().shards.kept_gathered;
  const MovedShards all = kept       ? moved.scatter
                          : backward ? moved.gather + moved.scatter
                                     : moved.gather;
  if (!shards_overlap(assumed)) return {all.seconds, all.fetched};
  const Seconds shown = std::max(Seconds{}, all.seconds - layer) + std::min(all.lost, layer);
  // What does not stick out is of both kinds in proportion.
  return {shown, all.fetched > 0 ? shown * (all.fetched / all.seconds) : Seconds{}};
}

}  // namespace tessera
