#include "planner/pricing/role/optimizer.h"

#include <algorithm>

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// One rank's part of an update, by the device or by the host. `held`: tensors that it is made of.
Work update_work(const RoleLayout& layout, const Candidate& candidate, std::int64_t count,
                 int shards, double held) {
  const Assumptions& assumed = *layout.assumed;
  const Calibration& calibration = assumed.calibration();
  const RoleDTypes& dtypes = layout.model->dtypes;
  const bool by_host = candidate.offload.optimizer &&
                       assumed.traits().optimizer.offloaded == OffloadedStates::on_host &&
                       calibration.cores == 0;  // else the device is the host
  const Work here = optimizer_step(as_double(count), shards, held, dtypes, calibration);
  if (!by_host) return here;
  // Norm and pieces are handed over by waits of the host (digits on 4 H200: 7 ms a step with
  // gradients and weights offloaded, too); no less than the device would take.
  constexpr Seconds kHandOver{1e-3};
  const auto node = static_cast<int>(assumed.cluster().gpus_per_node);
  const Seconds there = host_step_seconds(as_double(count), shards, std::min(node, candidate.gpus),
                                          dtypes, assumed.cluster(), calibration);
  return {std::max(there, here.total(calibration)) + kHandOver, {}};
}

}  // namespace

OptimizerCost optimizer_cost(const RoleLayout& layout, const Candidate& candidate,
                             const Elements& elements) {
  const Assumptions& assumed = *layout.assumed;
  const Calibration& calibration = assumed.calibration();
  const CandidateGroups& groups = layout.groups;
  const RoleDTypes& dtypes = layout.model->dtypes;
  const ShardCounts parts = zero_shards(shard_degrees(candidate, assumed.traits()));
  const bool replicated = layout.model->lora.used() && assumed.traits().adapters.replicated;
  const bool sharded = candidate.zero >= 1 && !replicated;
  OptimizerCost cost;
  const auto move = [&](std::int64_t count, GroupShape group, int cut) {
    const Traffic gradient{as_double(count * size_of(dtypes.grad))};
    const Traffic parameter{as_double(count * size_of(dtypes.param))};
    const auto sum = [&](Traffic bytes, GroupShape over) {
      const Seconds seconds =
          collective_seconds(Collective::all_reduce, bytes, over, assumed.cluster(), calibration);
      return MovedShards{seconds, (calibration.overlap_slowdown.value - 1) * seconds};
    };
    if (!replicated && shard_ranks(candidate, assumed.traits()) > 1) {
      cost.reduce = cost.reduce + sum(gradient / cut, groups.replicated);
    } else if (sharded) {
      // ZeRO-2 reduced every layer after its backward pass (layer_shards).
      if (!reduces_layers(candidate, assumed.traits())) {
        cost.reduce = cost.reduce + reduce_shards(assumed, gradient, group);
      }
      cost.gather = cost.gather + gather_shards(assumed, parameter, group);
    } else {
      cost.reduce = cost.reduce + sum(gradient, group);
    }
  };
  move(elements.dense, groups.replicas, parts.dense);
  if (elements.expert > 0) move(elements.expert, groups.expert_replicas, parts.expert);
  const double tensors = layout.model->trained_tensors / candidate.pp / std::max(1, candidate.ep);
  const auto update = [&](std::int64_t count, int cut, double held) {
    cost.update += update_work(layout, candidate, count, sharded ? cut : 1, held);
  };
  update(elements.dense, parts.dense, tensors);
  if (elements.expert > 0) update(elements.expert, parts.expert, 0);
  return cost;
}

// The part of a step's communication that the last backward pass does not hide goes to the
// reduction and the gathering in proportion.
StepExposed exposed_of(const Assumptions& assumed, const OptimizerCost& cost,
                       const Candidate& candidate, Seconds last_backward) {
  const EngineTraits& traits = assumed.traits();
  const bool beside = assumed.calibration().overlapped_dispatch;
  const bool sharded = candidate.zero >= 1 && shard_ranks(candidate, traits) == 1;
  const bool reduces =
      beside && (sharded ? traits.gradients.overlapped : traits.gradients.overlapped_replicas);
  const bool gathers = beside && traits.optimizer.overlapped_parameters;
  MovedShards hidden;
  if (reduces) hidden = hidden + cost.reduce;
  if (gathers) hidden = hidden + cost.gather;
  const Seconds shown =
      std::max(Seconds{}, hidden.seconds - last_backward) + std::min(hidden.lost, last_backward);
  const double part = hidden.seconds > 0 ? shown / hidden.seconds : 0;
  return {cost.reduce.seconds * (reduces ? part : 1), cost.gather.seconds * (gathers ? part : 1)};
}

}  // namespace tessera
