// Seconds and bytes of the single operations of one role of a plan: what RolePricer sums in closed
// form, for a scheduler that gives each of them its place in time.
//
// The same functions with the plan's own stages, token limits and groups. Seconds, bytes and tokens
// of one rank. A value that nothing changes; it points into the evaluator and the plan that it was
// made of, which outlive it.
#pragma once

#include <memory>
#include <vector>

#include "cost_models/layout/rank_map.h"
#include "cost_models/spec/units.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/role/micro_batch.h"
#include "planner/pricing/role/optimizer.h"
#include "planner/pricing/role/role_cost.h"
#include "planner/pricing/role/role_layout.h"

namespace tessera {

struct Plan;
struct RolePlan;

/// Bytes that a rank sends over its network card, or within its node, for the layers of a pass, by
/// the groups that exchange them, as far as nothing hides them.
struct SentByGroups {
  Traffic tensor, context, experts;
  Traffic stages;  // hidden states for the next stage of a replica that decodes
};

/// One micro-batch on one chunk of one stage: kernels with the collectives between them (tensor,
/// context and expert parallelism), and what its shards move (FSDP, ZeRO-2). Where that overlaps
/// with the layers, `time` holds what sticks out and what kernels lose.
struct ChunkPass {
  OperationTime time;
  std::int64_t layers = 0;
  Seconds gather, scatter;
  /// What of the communication in `time` crosses nodes; none where a calibration has a measured
  /// curve over several nodes, which says nothing of its parts.
  SentByGroups across;
  /// Likewise within a node, of groups that lie on one, where GPUs share links there: as many as
  /// pass in the time that they take, at rates_within's `together` of all_reduce (tensor),
  /// all_to_all (experts, Ulysses) and send_receive (the others).
  SentByGroups shared;
  /// Bytes that a rank sends over its port within its node for the layers of the pass: tensor,
  /// context and expert parallelism, what runs beside kernels included.
  Traffic within;
};

class RoleOperations {
 public:
  /// Precondition: `costs` is evaluator_of(plan); `map` holds the role's ranks.
  RoleOperations(CostEvaluator& costs, const Plan& plan, const RolePlan& role, const RankMap& map);

  /// By chunk as ParallelLayout::stages; `scored` tokens have log-probabilities or values.
  /// `micro_batches` of the pass decide how long ranks wait for one another.
  std::vector<ChunkPass> forward(const TokenBatch& batch, double scored, int micro_batches) const;
  std::vector<ChunkPass> backward(const TokenBatch& batch, double scored, int micro_batches) const;

  /// Hidden states of `tokens` that a rank hands to its neighbour, and how long that takes.
  Traffic hop_bytes(double tokens) const;
  Seconds hop_seconds(double tokens, GroupShape pair) const;

  /// One optimizer step of a stage: gradients over the replicas, the update, parameters back. A
  /// last backward pass of `beside` hides what the engine overlaps.
  Seconds reduce_seconds(int stage, Seconds beside) const;
  Seconds gather_seconds(int stage, Seconds beside) const;
  Seconds update_seconds(int stage) const;
  /// From and to host memory in one step of `steps` of a call that trains, or in one that infers.
  Seconds offload_seconds(bool training, double steps) const;

  /// Precondition: the role is the rollout.
  OperationTime prefill(double prompts, double sequences) const;
  OperationTime decode(double sequences, double context) const;
  /// Bytes that a rank of a replica sends over its port within its node in a prefill, and in a
  /// decode step (hidden states for the next stage included); the mean of all stages. Precondition:
  /// the role is the rollout.
  Traffic prefill_within(double prompts, double sequences) const;
  Traffic decode_within(double sequences) const;
  /// What ranks send over one sort of links: between nodes, or as ChunkPass::shared.
  enum class Sent { across, shared };
  SentByGroups prefill_sent(Sent over, double prompts, double sequences) const;
  SentByGroups decode_sent(Sent over, double sequences) const;
  /// The rates of a kind of group, by `kind` of SentByGroups; 0 where it does not lie on one node.
  WithinRates within_rates(Traffic SentByGroups::*kind) const;
  /// The same between nodes; 0 where it spans none.
  BytesPerSecond rate_across(Traffic SentByGroups::*kind) const;
  /// Tokens that the paged KV cache of a replica holds; 0 = it has a longest sequence's room for
  /// each that it decodes at once.
  double cache_tokens() const;

  /// Host time of a call, or of a mini-batch of an update; and what the engine's software takes
  /// once a call besides.
  Seconds call_seconds() const;
  Seconds software_seconds(CallKind kind) const;

  /// As the plan deals its ranks.
  const CandidateGroups& groups() const { return layout_.groups; }
  /// Bytes of a rank of a stage in a phase, its own or another; `in_flight` micro-batches' worth of
  /// activations in a phase that trains.
  MemoryUse memory(Phase phase, int stage, double in_flight) const;

  /// Of a stage's fullest tensor-parallel rank, before FSDP cuts them.
  Elements elements(int stage) const;

  /// Of a pass over a stage, shards that no layer hides: before its first layer, after its last
  /// backward pass.
  Seconds before_pass(int stage) const;
  Seconds after_pass(int stage) const;
  bool shards_overlap() const;  // run beside the kernels of other layers
  /// Replicas that gather or reduce the layers of a pass together; 0 = layers are whole.
  int sharing(bool training) const;
  int shard_ranks() const;  // over which FSDP cuts a stage's elements

 private:
  struct Sending {
    Collective collective;
    GroupShape group;
  };
  /// How the groups of a kind send.
  Sending sending(Traffic SentByGroups::*kind) const;
  std::vector<ChunkPass> passes(const TokenBatch& batch, double scored, int micro_batches,
                                bool backward) const;
  void add_within(const MicroBatchCost& cost, const TokenBatch& batch, double scored, bool backward,
                  std::vector<ChunkPass>& passes) const;
  Seconds communication_in(const MicroBatchCost& cost, int chunk, bool backward) const;
  void add_sent(const MicroBatchCost& cost, const TokenBatch& batch, double scored, bool backward,
                std::vector<ChunkPass>& passes) const;
  /// Of what takes so long in a layout, part by part: what passes these links, by kind of group.
  /// Empty where nothing does.
  template <class Price>
  std::vector<SentByGroups> sent(Sent over, const Price& price) const;
  template <class Price>
  SentByGroups sent_generating(Sent over, const Price& price) const;
  Candidate candidate_in(Phase phase) const;
  StageClass stage_of(int index) const;
  RoleLayout counted_layout() const;
  OptimizerCost optimizer_of(int stage) const;

  const RolePlan& role_;
  Candidate candidate_;
  RoleLayout layout_;
  /// What the layout assumes, but for cards that take no time; nullptr where no tensor, context or
  /// expert parallel group spans nodes, nor a rollout's pipeline.
  std::shared_ptr<const Assumptions> free_cards_;
  /// What the layout assumes, but for links within nodes that take no time; nullptr where GPUs
  /// share none of them.
  std::shared_ptr<const Assumptions> free_ports_;
  /// What the layout assumes, but for ports that carry a byte a second and cost nothing else;
  /// nullptr where no such group, nor a rollout's pipeline, has several ranks.
  std::shared_ptr<const Assumptions> slow_ports_;
  EnumArray<Phase, double> mini_batch_parts_;  // of phases that train
};

}  // namespace tessera
