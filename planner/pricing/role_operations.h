// Seconds and bytes of the single operations of one role of a plan: what CostEvaluator sums in
// closed form, for a scheduler that gives each of them its place in time.
//
// The same functions with the plan's own stages, token limits and groups. Seconds, bytes and tokens
// of one rank. Keeps references to what it was made of; one thread, as CostEvaluator.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/compute.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/groups.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"

namespace tessera {

/// Seconds of one operation, and the part of them that is communication.
struct OperationTime {
  double seconds = 0, communication_s = 0;
};

/// One micro-batch on one chunk of one stage: kernels with the collectives between them (tensor,
/// context and expert parallelism), and what its shards move (FSDP, ZeRO-2). Where that overlaps
/// with the layers, `time` holds what sticks out and what kernels lose.
struct ChunkPass {
  OperationTime time;
  std::int64_t layers = 0;
  double gather_s = 0, scatter_s = 0;
};

/// Where the groups of a role lie whose ranks are in this order: of each kind the one on most
/// nodes.
CandidateGroups groups_of(const Plan& plan, const RolePlan& role, const RankMap& map);

/// What of it differs from the order that candidates are priced in.
GroupNodes nodes_of(const Plan& plan, const RolePlan& role, const PlanRequest& request);

class RoleOperations {
 public:
  /// From now on `costs` prices candidates with the degrees of the plan's roles as the plan deals
  /// their ranks. Precondition: it has priced none yet.
  static void deal_as(const Plan& plan, const CostEvaluator& costs);

  /// Precondition: `costs` was made of priced_request_of(plan).
  RoleOperations(const CostEvaluator& costs, const Plan& plan, const RolePlan& role,
                 const RankMap& map);

  /// By chunk as ParallelLayout::stages; `scored` tokens have log-probabilities or values.
  /// `micro_batches` of the pass decide how long ranks wait for one another.
  std::vector<ChunkPass> forward(const TokenBatch& batch, double scored, int micro_batches) const;
  std::vector<ChunkPass> backward(const TokenBatch& batch, double scored, int micro_batches) const;

  /// Hidden states of `tokens` that a rank hands to its neighbour, and how long that takes.
  double hop_bytes(double tokens) const;
  double hop_seconds(double tokens, GroupShape pair) const;

  /// One optimizer step of a stage: gradients over the replicas, the update, parameters back. A
  /// last backward pass of `beside_s` hides what the engine overlaps.
  double reduce_seconds(int stage, double beside_s) const;
  double gather_seconds(int stage, double beside_s) const;
  double update_seconds(int stage) const;
  /// From and to host memory in one step of `steps` of a call that trains, or in one that infers.
  double offload_seconds(bool training, double steps) const;

  OperationTime prefill(double prompts, double sequences) const;
  OperationTime decode(double sequences, double context) const;

  /// Host time of a call.
  double call_seconds() const;

  /// Bytes of a rank of a stage in a phase, its own or another; `in_flight` micro-batches' worth of
  /// activations in a phase that trains.
  MemoryUse memory(Phase phase, int stage, double in_flight) const;

  /// Of a stage's fullest tensor-parallel rank, before FSDP cuts them.
  Elements elements(int stage) const;

  /// Of a pass over a stage, shards that no layer hides: before its first layer, after its last
  /// backward pass.
  double before_pass(int stage) const;
  double after_pass(int stage) const;
  bool shards_overlap() const;  // run beside the kernels of other layers
  /// Replicas that gather or reduce the layers of a pass together; 0 = layers are whole.
  int sharing(bool training) const;
  int shard_ranks() const;  // over which FSDP cuts a stage's elements

 private:
  std::vector<ChunkPass> passes(const TokenBatch& batch, double scored, int micro_batches,
                                bool backward) const;
  Candidate candidate_in(Phase phase) const;

  const CostEvaluator& costs_;
  const Plan& plan_;
  const RolePlan& role_;
  Candidate candidate_;
  CandidateGroups groups_;
};

}  // namespace tessera
