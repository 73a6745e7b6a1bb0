// Seconds of the operations of one role of a plan, stage by stage.
//
// The pieces that the planner's evaluator sums in closed form (planner/search/evaluate.h), for one
// micro-batch, one optimizer step, one prefill, one decode step; same formulas, but with the plan's
// own stages and ranks. Where ranks share cores, compute is stretched as there. Seconds; built once
// per role, then only read.
#pragma once

#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/memory.h"
#include "planner/plan/plan.h"
#include "simulator/engine/micro_batches.h"
#include "simulator/rollout/replica.h"

namespace tessera {

class RoleCosts {
 public:
  /// Keeps references to all three.
  RoleCosts(const Plan& plan, const RolePlan& role, const Calibration& calibration);

  const RolePlan& role() const { return role_; }
  const RankMap& map() const { return map_; }
  /// Ranks of one stage of one replica: its tensor-parallel group.
  const std::vector<int>& stage_ranks(int replica, int stage) const;
  /// Tokens that a micro-batch of the phase may have, 0 where the phase has no micro-batches.
  std::int64_t token_limit(Phase phase) const;

  /// One micro-batch on every stage, its tensor-parallel communication included. `micro_batches` of
  /// the pass decide how long ranks wait for one another.
  std::vector<OperationTime> forward(const MicroBatch& batch, int micro_batches) const;
  std::vector<OperationTime> backward(const MicroBatch& batch, int micro_batches) const;
  /// Handing a micro-batch's hidden states (or their gradients) to the stage after `stage`.
  double hop_seconds(const MicroBatch& batch, int replica, int stage) const;
  std::int64_t hop_bytes(const MicroBatch& batch) const;

  /// One optimizer step of a stage: gradients over the replicas, the update, parameters back.
  double reduce_seconds(int stage) const;
  double optimizer_seconds(int stage) const;
  double gather_seconds(int stage) const;  // 0 without ZeRO
  std::int64_t gradient_bytes(int stage) const;
  std::int64_t parameter_bytes(int stage) const;

  /// Host time of one call.
  double call_seconds() const;

  ReplicaCosts rollout() const;

  /// Bytes of a rank of a stage: outside the role's phases, and in one of them with `in_flight`
  /// micro-batches (for a phase that trains). A micro-batch counts with its token limit.
  MemoryUse resident(int stage) const;
  MemoryUse working(Phase phase, int stage, int in_flight) const;

 private:
  double slowdown(double part) const;
  double pipeline_slowdown(int micro_batches) const;
  double layers(int stage) const;
  bool is_last(int stage) const { return stage == role_.layout.pp - 1; }
  OperationTime timed(const Work& work, double communication_s, double slow) const;
  OperationTime prefill(double prompts, double sequences) const;
  OperationTime decode(double sequences, double context) const;
  GroupShape dp_group(int stage) const;

  const Plan& plan_;
  const RolePlan& role_;
  const Calibration& calibration_;
  RankMap map_;
  RankModel rank_;
  bool trained_ = false;
  GroupShape tp_group_;
  std::vector<std::int64_t> elements_;  // by stage, of its fullest tensor-parallel rank
  double tensors_per_stage_ = 0;
  std::vector<std::vector<std::vector<int>>> stage_ranks_;  // [replica][stage]
};

/// The role that runs a scheduled call: the rollout generates, the actor stands in for a role
/// without ranks (rule rewards).
const RolePlan& runner_of(const Plan& plan, const ScheduledCall& call);

/// The kind of a scheduled call; nullptr for the reshard.
const Call* call_of(const Workload& workload, Phase phase);

/// Appends what the simulator cannot time: context and expert parallelism, virtual stages,
/// ZeRO-2 and -3, FSDP, offload, a pipelined rollout.
void check_simulatable(const Plan& plan, const std::string& file, Problems& problems);

}  // namespace tessera
