// Costs of one role of a plan with the ranks that bear them.
//
// The planner's evaluator sums these in closed form (planner/pricing/role_operations.h); here they
// stand operation by operation, with the plan's own stages and ranks. Seconds and bytes; built once
// per role, then only read by one thread.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/memory.h"
#include "planner/plan/schedule.h"
#include "planner/pricing/role_operations.h"
#include "planner/request/plan_request.h"
#include "simulator/engine/micro_batches.h"
#include "simulator/rollout/replica.h"

namespace tessera {

struct Plan;
struct RolePlan;

class RoleCosts {
 public:
  /// Keeps references to plan and role, and into `evaluator`: evaluator_of the plan.
  RoleCosts(const Plan& plan, const RolePlan& role, CostEvaluator& evaluator);

  const RolePlan& role() const { return role_; }
  const RankMap& map() const { return map_; }
  const RoleOperations& operations() const { return operations_; }
  /// Ranks of one stage of one replica: its tensor and context parallel group.
  const std::vector<int>& stage_ranks(int replica, int stage) const;
  /// Ranks of all stages of a replica, ascending.
  std::vector<int> replica_ranks(int replica) const;
  /// The ranks that a rank exchanges experts' tokens with, itself among them; empty without expert
  /// parallelism.
  const std::vector<int>& expert_group(int rank) const;
  /// Tokens that a micro-batch of the phase may have, 0 where the phase has no micro-batches.
  std::int64_t token_limit(Phase phase) const;
  /// Sequences that it has where the engine counts these; 0 = the tokens cut.
  std::int64_t sequence_limit(Phase phase) const;

  /// One micro-batch on every chunk of every stage (ParallelLayout::stages).
  std::vector<ChunkPass> forward(const MicroBatch& batch, int micro_batches) const;
  std::vector<ChunkPass> backward(const MicroBatch& batch, int micro_batches) const;
  /// Handing a micro-batch's hidden states (or their gradients) to another stage.
  double hop_seconds(const MicroBatch& batch, int replica, int from, int to) const;
  std::int64_t hop_bytes(const MicroBatch& batch) const;

  /// One optimizer step of a stage: gradients over the replicas, the update, parameters back; what
  /// the engine hides beside the last backward pass left out.
  double reduce_seconds(int stage, double last_backward_s = 0) const;
  double optimizer_seconds(int stage) const;
  double gather_seconds(int stage, double last_backward_s = 0) const;
  std::int64_t gradient_bytes(int stage) const;
  std::int64_t parameter_bytes(int stage) const;

  /// Host time of one call.
  double call_seconds() const;
  /// What the engine's software takes once a call besides.
  double software_seconds(CallKind kind) const;

  ReplicaCosts rollout() const;

  /// Bytes of a rank of a stage outside all phases, and in one, its own or another role's, with
  /// `in_flight` micro-batches. A micro-batch counts with its token limit.
  MemoryUse resident(int stage) const;
  MemoryUse memory(Phase phase, int stage, double in_flight) const;

  /// Of a rank of a stage and its neighbour in another one, which all replicas' ranks of their node
  /// send to at once.
  GroupShape pair_shape(int replica, int from, int to) const;

 private:
  const Plan& plan_;
  const RolePlan& role_;
  RankMap map_;
  RoleOperations operations_;
  std::vector<std::int64_t> elements_;  // by stage, that optimizer steps of a rank exchange
  std::vector<std::vector<std::vector<int>>> stage_ranks_;  // [replica][stage]
  std::vector<std::vector<int>> expert_groups_;
  std::map<int, std::size_t> expert_group_of_;  // by rank
};

/// The costs of all roles of a plan, from one evaluator (planner/pricing/plan_pricing.h).
class PlanCosts {
 public:
  /// Keeps a reference to the plan.
  PlanCosts(const Plan& plan, const Calibration& calibration);

  const RoleCosts& of(Role role) const { return *roles_.at(role); }
  CostEvaluator& evaluator() { return evaluator_; }

 private:
  CostEvaluator evaluator_;
  std::map<Role, std::unique_ptr<RoleCosts>> roles_;
};

/// The kind of a scheduled call; nullptr for the reshard.
const Call* call_of(const Workload& workload, Phase phase);

}  // namespace tessera
