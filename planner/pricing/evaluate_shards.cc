// What shards of layers move beside their kernels (FSDP, ZeRO-2).
#include <algorithm>

#include "planner/pricing/evaluate_state.h"
#include "planner/request/candidate.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

double tensors_of_a_layer(const ParameterTable& table) {
  return static_cast<double>(std::count_if(
      table.rows.begin(), table.rows.end(),
      [&](const Parameter& row) { return row.layer == table.model.layers - 1 && row.part == 0; }));
}

}  // namespace

// Under pipelines engines sum a step's micro-batches before they reduce (torch's FSDP without
// gradient synchronisation; Llama Team 2024, arXiv:2407.21783, sec. 3.3.2).
bool CostEvaluator::State::reduces_layers(const Candidate& candidate) const {
  return candidate.zero == 2 && candidate.dp * candidate.cp > 1 &&
         (candidate.pp == 1 || request.traits.reduces_every_batch);
}

bool CostEvaluator::State::shards_overlap() const {
  return request.traits.overlapped_shards && calibration().overlapped_dispatch;
}

// One gather (of parameters) or reduction (of gradients) over a group, by what the engine does it
// with.
MovedShards CostEvaluator::State::gather_shards(double bytes, GroupShape group) const {
  if (group.ranks <= 1 || bytes <= 0) return {};
  const double slowdown = calibration().overlap_slowdown.value - 1;
  if (request.traits.copied_shards && group.nodes == 1) {
    return {collective_seconds(Collective::copy_engine,
                               wire_bytes(Collective::all_gather, bytes, group.ranks), group,
                               cluster(), calibration()),
            0};
  }
  const double seconds =
      collective_seconds(Collective::all_gather, bytes, group, cluster(), calibration());
  return {seconds + listed_copies(bytes, group), slowdown * seconds};
}

MovedShards CostEvaluator::State::reduce_shards(double bytes, GroupShape group) const {
  if (group.ranks <= 1 || bytes <= 0) return {};
  if (request.traits.copied_shards && group.nodes == 1) {
    // Everybody's parts of the own shard are fetched, then one kernel reads all and writes the sum.
    const double summed = stream_seconds(bytes * (1 + 1.0 / group.ranks), calibration());
    return {collective_seconds(Collective::copy_engine,
                               wire_bytes(Collective::reduce_scatter, bytes, group.ranks), group,
                               cluster(), calibration()) +
                summed,
            summed};
  }
  const double seconds =
      collective_seconds(Collective::reduce_scatter, bytes, group, cluster(), calibration());
  return {seconds + listed_copies(bytes, group),
          (calibration().overlap_slowdown.value - 1) * seconds};
}

double CostEvaluator::State::listed_copies(double bytes, GroupShape group) const {
  if (!request.traits.listed_shards) return 0;
  const double copy = std::max(calibration().dispatch_s.value, calibration().kernel_floor_s.value);
  return group.ranks * copy + stream_seconds(2 * bytes, calibration());
}

// Rajbhandari et al. 2020, sec. 7.2.2; Zhao et al. 2023 (FSDP). In `pieces` collectives each.
ShardSeconds CostEvaluator::State::shard_seconds(const RoleModel& model, const Candidate& candidate,
                                                 const CandidateGroups& groups,
                                                 const Elements& elements, double pieces) const {
  const bool gathers = shard_ranks(candidate, request.traits) > 1;
  if (!gathers && !reduces_layers(candidate)) return {};
  const GroupShape dense = gathers ? groups.shard : groups.replicas;
  const auto all = [&](DType type, const auto& move) {
    const double element = size_of(type);
    return pieces * move(as_double(elements.dense) * element / pieces, dense) +
           move(as_double(elements.expert) * element, groups.expert_replicas);
  };
  ShardSeconds seconds;
  if (gathers) {
    seconds.gather = all(model.dtypes.param, [&](double bytes, GroupShape group) {
      return gather_shards(bytes, group);
    });
  }
  if (model.lora.used()) return seconds;  // what the adapters' gradients take is nothing beside it
  seconds.scatter = all(model.dtypes.grad, [&](double bytes, GroupShape group) {
    return reduce_shards(bytes, group);
  });
  return seconds;
}

ShardSeconds CostEvaluator::State::layer_shards(RoleModel& model, const Candidate& candidate,
                                                const CandidateGroups& groups, LayerKind kind) {
  const ShardElements& parts = shards(model, candidate.tp, candidate.ep, candidate.etp);
  const Elements layer = parts.layer[static_cast<std::size_t>(kind)].front();
  const double pieces = request.traits.listed_shards ? tensors_of_a_layer(*model.table) : 1;
  return shard_seconds(model, candidate, groups, layer, pieces);
}

ShardSeconds CostEvaluator::State::front_shards(RoleModel& model, const Candidate& candidate,
                                                const CandidateGroups& groups) {
  const ShardElements& parts = shards(model, candidate.tp, candidate.ep, candidate.etp);
  return shard_seconds(model, candidate, groups, {parts.first.front() + parts.both.front(), 0}, 1);
}

// The embedding is gathered before and reduced after all. Where layers overlap, nothing hides the
// first layer's gather, nor its reduction after the last backward pass.
ExposedEnds CostEvaluator::State::exposed_ends(RoleModel& model, const Candidate& candidate,
                                               const CandidateGroups& groups, int stage) {
  ExposedEnds ends;
  const auto add = [&](const ShardSeconds& part) {
    ends.before += part.gather.seconds;
    ends.after += part.scatter.seconds;
  };
  if (stage == 0) add(front_shards(model, candidate, groups));
  if (shards_overlap()) {
    add(layer_shards(model, candidate, groups, kind_of_layer(model.spec, 0)));
  }
  return ends;
}

double CostEvaluator::State::beside_layer(const ShardSeconds& moved, bool backward,
                                          double layer_s) const {
  const bool kept = backward && request.traits.keeps_gathered;
  const MovedShards all = kept       ? moved.scatter
                          : backward ? moved.gather + moved.scatter
                                     : moved.gather;
  if (!shards_overlap()) return all.seconds;
  return std::max(0.0, all.seconds - layer_s) + std::min(all.lost, layer_s);
}

}  // namespace tessera
