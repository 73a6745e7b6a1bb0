// Time of an optimizer step and of what offloading copies.
#include <algorithm>

#include "planner/pricing/evaluate_state.h"
#include "planner/request/candidate.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

}  // namespace

// Gradients over the replicas, the update of this rank's part, parameters back under ZeRO-1 and -2.
// FSDP reduced its gradients within the shard group already; replicas of it are still to be added.
OptimizerCost CostEvaluator::State::optimizer_cost(RoleModel& model, const Candidate& candidate,
                                                   const CandidateGroups& groups,
                                                   const Elements& elements) {
  const ShardCounts parts = zero_shards(shard_degrees(candidate));
  const bool sharded = candidate.zero >= 1;
  OptimizerCost cost;
  const auto move = [&](std::int64_t count, GroupShape group, int cut) {
    const double gradient = as_double(count * size_of(model.dtypes.grad));
    const double parameter = as_double(count * size_of(model.dtypes.param));
    const auto sum = [&](double bytes, GroupShape over) {
      const double seconds = tessera::collective_seconds(Collective::all_reduce, bytes, over,
                                                         cluster(), calibration());
      return MovedShards{seconds, (calibration().overlap_slowdown.value - 1) * seconds};
    };
    if (shard_ranks(candidate, request.traits) > 1) {
      cost.reduce = cost.reduce + sum(gradient / cut, groups.replicated);
    } else if (sharded) {
      // ZeRO-2 reduced every layer after its backward pass (layer_shards).
      if (!reduces_layers(candidate)) cost.reduce = cost.reduce + reduce_shards(gradient, group);
      cost.gather = cost.gather + gather_shards(parameter, group);
    } else {
      cost.reduce = cost.reduce + sum(gradient, group);
    }
  };
  move(elements.dense, groups.replicas, parts.dense);
  if (elements.expert > 0) move(elements.expert, groups.expert_replicas, parts.expert);
  const auto tensors =
      static_cast<double>(model.table->rows.size()) / candidate.pp / std::max(1, candidate.ep);
  const auto update = [&](std::int64_t count, int cut, double held) {
    const int shards = sharded ? cut : 1;
    const bool by_host = candidate.offload.optimizer && request.traits.host_optimizer &&
                         calibration().cores == 0;  // else the device is the host
    const Work here = optimizer_step(as_double(count), shards, held, model.dtypes, calibration());
    if (!by_host) {
      cost.update += here;
      return;
    }
    // Norm and pieces are handed over by waits of the host (digits on 4 H200: 7 ms a step with
    // gradients and weights offloaded, too); no less than the device would take.
    constexpr double kHandOver = 1e-3;
    const auto node = static_cast<int>(cluster().gpus_per_node);
    const double there = host_step_seconds(as_double(count), shards, std::min(node, candidate.gpus),
                                           model.dtypes, cluster(), calibration());
    cost.update += {std::max(there, here.total(calibration())) + kHandOver, 0};
  };
  update(elements.dense, parts.dense, tensors);
  if (elements.expert > 0) update(elements.expert, parts.expert, 0);
  return cost;
}

CostEvaluator::State::Timed CostEvaluator::State::optimizer(RoleModel& model,
                                                            const Candidate& candidate,
                                                            double last_backward_s) {
  const OptimizerCost& cost = fullest_optimizer(model, candidate);
  const StepExposed shown = exposed_of(cost, candidate, last_backward_s);
  const double communication = shown.reduce_s + shown.gather_s;
  return {cost.update.total(calibration()) * slowdown(candidate, 1) + communication, communication};
}

// The part of a step's communication that the last backward pass does not hide goes to the
// reduction and the gathering in proportion.
StepExposed CostEvaluator::State::exposed_of(const OptimizerCost& cost, const Candidate& candidate,
                                             double last_backward_s) const {
  const EngineTraits& traits = request.traits;
  const bool beside = calibration().overlapped_dispatch;
  const bool sharded = candidate.zero >= 1 && shard_ranks(candidate, request.traits) == 1;
  const bool reduces =
      beside && (sharded ? traits.overlapped_gradients : traits.overlapped_replicas);
  const bool gathers = beside && traits.overlapped_parameters;
  MovedShards hidden;
  if (reduces) hidden = hidden + cost.reduce;
  if (gathers) hidden = hidden + cost.gather;
  const double shown =
      std::max(0.0, hidden.seconds - last_backward_s) + std::min(hidden.lost, last_backward_s);
  const double part = hidden.seconds > 0 ? shown / hidden.seconds : 0;
  return {cost.reduce.seconds * (reduces ? part : 1), cost.gather.seconds * (gathers ? part : 1)};
}

// What a phase of the role fetches from and returns to host memory, at the link's one-way rate:
// weights on entry; optimizer states in and out, once per phase or, streamed, once per step, unless
// the host computes the step (optimizer_cost).
double CostEvaluator::State::offload_seconds(RoleModel& model, const Candidate& candidate,
                                             bool training, double steps) {
  if (candidate.offload == Offload{}) return 0;
  double bytes = 0;
  for (const StageClass& stage : stages(model, candidate)) {
    const MemoryUse use = resident(model, candidate, stage);
    double here = 0;
    if (candidate.offload.parameters) here += as_double(use.weights) * (training ? 2 : 1);
    if (training && candidate.offload.optimizer && !request.traits.host_optimizer) {
      here += 2 * as_double(use.master_weights + use.optimizer) *
              (request.traits.streamed_optimizer ? steps : 1.0);
    }
    bytes = std::max(bytes, here);
  }
  return host_copy_seconds(bytes, calibration());
}

}  // namespace tessera
