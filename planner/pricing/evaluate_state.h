// What a CostEvaluator remembers; private to planner/search/evaluate*.cc and role_operations.cc.
//
// One object per evaluator and thread. Costs of a micro-batch are kept per way to run a layer,
// those of stages per cut: candidates that differ in neither share them.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "cost_models/compute.h"
#include "cost_models/decoding.h"
#include "cost_models/lengths.h"
#include "cost_models/packing.h"
#include "planner/pricing/evaluate.h"
#include "planner/pricing/groups.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"

namespace tessera {

// How a layer runs: everything but the tokens that its costs depend on.
struct LayerRun {
  int tp = 1, cp = 1, ep = 1, etp = 1, dp = 1, dp_shard = 1, pp = 1;
  bool sequence_parallel = false, ulysses = false;
  bool reduces_layers = false;  // ZeRO-2
  bool sharded = false;         // FSDP
  Recompute recompute = Recompute::none;
  auto operator<=>(const LayerRun&) const = default;
};

// One movement of shards: its seconds, and what kernels lose that run beside it.
struct MovedShards {
  double seconds = 0, lost = 0;
  friend MovedShards operator+(MovedShards a, MovedShards b) {
    return {a.seconds + b.seconds, a.lost + b.lost};
  }
  friend MovedShards operator*(double count, MovedShards one) {
    return {count * one.seconds, count * one.lost};
  }
};

// What shards of a layer (or of what lies outside the layers) move: parameters before either pass
// (FSDP), gradients after backward (FSDP, ZeRO-2).
struct ShardSeconds {
  MovedShards gather, scatter;
};

// Of a pass: seconds before its first layer and after its last backward that no layer hides.
struct ExposedEnds {
  double before = 0, after = 0;
};

// Costs of one micro-batch on one rank: per layer of each kind, and at the model's two ends.
struct MicroBatchCost {
  std::array<Work, kLayerKinds> forward, backward;
  std::array<double, kLayerKinds> forward_comm{}, backward_comm{};  // between the kernels
  // Shards that run beside a layer: what sticks out, and what the kernels lose to them.
  std::array<double, kLayerKinds> forward_shards{}, backward_shards{};
  Work embedding, head_forward, head_backward;
  double embedding_tp = 0, head_tp = 0, head_backward_tp = 0;
};

// One optimizer step of one stage.
struct OptimizerCost {
  MovedShards reduce, gather;  // gradients over the replicas; parameters back
  Work update;
};

/// With the token limit of calls that train, or of the others, as its only one.
Candidate in_call(Candidate candidate, bool trains);

// What of them no backward pass hides.
struct StepExposed {
  double reduce_s = 0, gather_s = 0;
};

// A collective beside `compute` seconds of kernels: the part that sticks out, and what the kernels
// lose to it.
double exposed(double communication, double compute, bool overlapped, double slowdown);

// Stages that hold alike layers and are of one kind (first, middle, last).
struct StageClass {
  LayerCounts layers{};
  bool first = false, last = false;
  int index = 0;  // of the first such stage, which holds most micro-batches
  int count = 0;
  std::vector<int> indices;  // of all
  Elements elements;         // of the fullest tensor-parallel rank
};

// Overlaps of training and generation shards, in elements, by [training tp rank][generation rank].
struct ShardOverlap {
  std::array<std::vector<std::vector<std::int64_t>>, kLayerKinds> layer;
  std::vector<std::vector<std::int64_t>> first, last, both;
};

// Elements that a rank receives, by [rollout tp rank][training tp rank + tp x stage].
using RankVolumes = std::vector<std::vector<std::int64_t>>;

struct Timed {
  double seconds = 0, communication = 0;
};

// Time of a pipeline's passes under a layout: what else they depend on.
struct PipelinePasses {
  std::int64_t tokens = 0;
  Recompute recompute = Recompute::none;
  bool training = false;
  int zero = 0;  // 2 where layers are reduced one by one, 3 where they are sharded, else 0
  Timed time;
};

// Bytes that a call needs under a layout beside what its ranks hold: what else they depend on.
struct WorkingBytes {
  std::int64_t tokens = 0, max_sequences = 0;
  Recompute recompute = Recompute::none;
  bool sharded = false;  // FSDP
  CallKind kind = CallKind::compute;
  std::vector<std::int64_t> by_stage;  // class
};

// Seconds of a decode step where sequences and contexts are looked up; unknown ones are NaN.
struct DecodeLadder {
  static constexpr std::size_t kContexts = 3;
  std::vector<std::array<double, kContexts>> rungs;
};

// What the candidates of one layout share.
struct LayoutCosts {
  Candidate layout;  // its degrees
  CandidateGroups groups;
  const std::vector<StageClass>* stages = nullptr;
  std::vector<PipelinePasses> passes;
  std::vector<WorkingBytes> working;
  std::array<std::optional<OptimizerCost>, 8> optimizer;  // by zero, offloaded states
  std::array<std::vector<MemoryUse>, 8> resident;         // by zero, offloaded parameters
  std::array<std::optional<double>, 32> offload;          // by zero, offloads, training
};

struct RoleModel {
  ModelSpec spec;
  RoleDTypes dtypes;
  std::shared_ptr<const ParameterTable> table;
  std::int64_t elements = 0;                 // of the table
  std::array<double, kLayerKinds> layers{};  // by kind
  LayerKind last_kind = LayerKind::dense;    // of the last layer
  bool trained = false;
  Lora lora;
  std::int64_t adapter_rank = 0;                                  // of those that its passes run
  std::map<int, std::array<std::int64_t, kLayerKinds>> adapters;  // of a layer, by tp
  std::vector<Phase> phases;                                      // in which it computes
  std::array<std::optional<CallKind>, kPhaseCount> calls;         // of these phases
  std::map<std::array<int, 3>, ShardElements> shards;             // by tp, ep, etp
  std::map<LayerRun, std::map<double, MicroBatchCost>>
      micro_batches[2];  // [training], by sequences
  std::map<std::pair<LayerRun, LayerKind>, RankModel> ranks;
  std::map<std::array<int, 6>, std::vector<StageClass>> stages;  // by tp, ep, etp, pp, vpp, head
  std::array<int, 6> latest_key{};  // candidates of one layout follow one another
  const std::vector<StageClass>* latest_stages = nullptr;
  LayoutCosts latest;
};

struct CostEvaluator::State {
  PlanRequest request;
  std::map<Role, RoleModel> models;
  struct Dealt {
    Candidate layout;  // whose degrees a candidate has
    GroupNodes nodes;
  };
  std::map<Role, Dealt> dealt;                     // RoleOperations::deal_as
  double response = 0, sequence = 0, squared = 0;  // expected tokens, tokens^2 of a sequence
  std::optional<ExpectedPacking> packing;
  std::map<std::int64_t, double> packed_sequences;  // of a micro-batch, by token limit
  std::optional<DecodeLengths> decode_lengths;
  std::map<std::pair<double, std::int64_t>, DecodeProfile> decode_profiles;  // sequences, slots
  std::map<std::pair<LayerRun, std::int64_t>, tessera::Timed> decodes;       // by slots
  std::map<std::array<int, 4>, DecodeLadder> decode_computes;                // by tp, ep, etp, pp
  std::map<LayerRun, DecodeLadder> decode_communications;
  std::map<std::pair<int, int>, ShardOverlap> overlaps;
  std::map<std::array<int, 4>, SwitchBytes> reshard_volumes;

  State(const PlanRequest& asked, ModelTables& tables);

  using Timed = tessera::Timed;

  const Calibration& calibration() const { return request.calibration; }
  const ClusterSpec& cluster() const { return request.cluster; }

  // evaluate.cc
  /// Seconds are worked out where the role alone needs no more than `limit` bytes.
  RoleCost cost(const Candidate& candidate, std::int64_t limit);
  RankModel rank_model(const RoleModel& model, const LayerRun& run) const;
  /// The same, kept; for layers of one kind.
  const RankModel& rank_model(RoleModel& model, const LayerRun& run, LayerKind kind);
  const ShardElements& shards(RoleModel& model, int tp, int ep, int etp);
  const std::vector<StageClass>& stages(RoleModel& model, const Candidate& candidate);
  /// Elements of a stage that the role trains: all, or those of its adapters.
  Elements trained_elements(RoleModel& model, const Candidate& candidate, const StageClass& stage);
  Elements adapters_of(RoleModel& model, int tp, const LayerCounts& layers);
  double slowdown(const Candidate& candidate, double part) const;
  double mapping_seconds(RoleModel& model, const Candidate& candidate);
  Timed phase_time(RoleModel& model, const Candidate& candidate, Phase phase);

  // evaluate_layout.cc
  /// Of ranks in dealt_order, or as the plan that is priced deals them.
  CandidateGroups groups(const Candidate& candidate) const;
  /// Kept for the latest layout of a model: candidates of one layout follow one another.
  LayoutCosts& of_layout(RoleModel& model, const Candidate& candidate);
  /// All micro-batches of `sequences` sequences of one replica.
  Timed passes(RoleModel& model, const Candidate& candidate, double sequences, bool training);
  const OptimizerCost& fullest_optimizer(RoleModel& model, const Candidate& candidate);
  double offloaded_seconds(RoleModel& model, const Candidate& candidate, bool training,
                           double steps);
  /// fullest(...).use.total().
  std::int64_t most_bytes(RoleModel& model, const Candidate& candidate, Phase phase);
  const std::vector<MemoryUse>& resident_of_stages(RoleModel& model, const Candidate& candidate);
  const std::vector<std::int64_t>& working_of_stages(RoleModel& model, const Candidate& candidate,
                                                     CallKind kind);

  // evaluate_passes.cc
  ShardSeconds shard_seconds(const RoleModel& model, const Candidate& candidate,
                             const CandidateGroups& groups, const Elements& elements,
                             double pieces) const;
  MovedShards gather_shards(double bytes, GroupShape group) const;
  MovedShards reduce_shards(double bytes, GroupShape group) const;
  double listed_copies(double bytes, GroupShape group) const;
  ShardSeconds layer_shards(RoleModel& model, const Candidate& candidate,
                            const CandidateGroups& groups, LayerKind kind);
  /// Of what the first stage holds beside layers: the embedding.
  ShardSeconds front_shards(RoleModel& model, const Candidate& candidate,
                            const CandidateGroups& groups);
  bool shards_overlap() const;
  bool reduces_layers(const Candidate& candidate) const;
  ExposedEnds exposed_ends(RoleModel& model, const Candidate& candidate,
                           const CandidateGroups& groups, int stage);
  /// What a layer's shards add to its `layer_s`: all they take, or what sticks out and what kernels
  /// lose to them.
  double beside_layer(const ShardSeconds& moved, bool backward, double layer_s) const;
  MicroBatchCost price_micro_batch(RoleModel& model, const Candidate& candidate,
                                   const CandidateGroups& groups, const TokenBatch& batch,
                                   const TokenBatch& scored, bool training);
  void add_shards(MicroBatchCost& cost, RoleModel& model, const Candidate& candidate,
                  const CandidateGroups& groups, bool training);
  const MicroBatchCost& micro_batch(RoleModel& model, const Candidate& candidate, double sequences,
                                    bool training);
  double micro_batches(const Candidate& candidate, double sequences);
  Timed pipeline(RoleModel& model, const Candidate& candidate, double sequences, bool training);
  double hop_bytes(const RoleModel& model, const Candidate& candidate, double tokens) const;
  OptimizerCost optimizer_cost(RoleModel& model, const Candidate& candidate,
                               const CandidateGroups& groups, const Elements& elements);
  Timed optimizer(RoleModel& model, const Candidate& candidate, double last_backward_s);
  StepExposed exposed_of(const OptimizerCost& cost, const Candidate& candidate,
                         double last_backward_s) const;
  double offload_seconds(RoleModel& model, const Candidate& candidate, bool training, double steps);
  Timed update(RoleModel& model, const Candidate& candidate);
  Timed infer(RoleModel& model, const Candidate& candidate);

  // evaluate_rollout.cc
  /// Whole prompts through all layers, and the first draw of `sequences`: {compute, communication}.
  std::array<double, 2> prefill(RoleModel& model, const Candidate& candidate,
                                const CandidateGroups& groups, double prompts, double sequences);
  std::array<double, 2> prefills(RoleModel& model, const Candidate& candidate,
                                 const CandidateGroups& groups, const DecodeProfile& profile);
  double decode_compute(RoleModel& model, const Candidate& candidate, double alive, double context);
  double decode_communication(RoleModel& model, const Candidate& candidate,
                              const CandidateGroups& groups, double alive);
  const DecodeProfile& decode_profile(double sequences, std::int64_t slots);
  Timed decode(RoleModel& model, const Candidate& candidate, const CandidateGroups& groups,
               const DecodeProfile& profile);
  Timed generate(RoleModel& model, const Candidate& candidate);

  // evaluate_memory.cc
  /// degrees_of, with FSDP's shards as resident bytes are cut (shard_ranks).
  ParallelLayout shard_degrees(const Candidate& candidate) const;
  /// What a stage's rank holds between calls where nothing is offloaded.
  MemoryUse resident(RoleModel& model, const Candidate& candidate, const StageClass& stage);
  /// What of it is on the device in a phase of a call, or in one without.
  MemoryUse on_device(MemoryUse use, const Candidate& candidate, Phase phase,
                      std::optional<CallKind> call) const;
  /// The call whose needs are in memory in a phase of `call`, or of none: a server that never
  /// sleeps keeps those of its own.
  std::optional<CallKind> in_memory(std::optional<CallKind> call, const Candidate& candidate) const;
  std::int64_t bucket_bytes() const;
  /// What a call needs besides.
  MemoryUse working(RoleModel& model, const Candidate& candidate, const StageClass& stage,
                    int index, CallKind kind, std::optional<double> in_flight = {});
  bool gradients_come_and_go(const Candidate& candidate) const;
  /// Micro-batches of one replica in a mini-batch.
  double mini_batch_parts(const Candidate& candidate);
  /// Of a call that trains, with gradients that each backward pass makes: `forward` counts all
  /// activations. Gradients are stated less what the stage holds of them between calls.
  MemoryUse worst_moment(RoleModel& model, const Candidate& candidate, const StageClass& stage,
                         const RankModel& rank, const StageLoad& load, MemoryUse forward,
                         const MemoryUse& buffers);
  std::int64_t gathered_head(RoleModel& model, const Candidate& candidate, bool gradients);
  /// `in_flight` micro-batches of a call that trains, or as many as its pipeline brings.
  MemoryUse stage_memory(RoleModel& model, const Candidate& candidate, const StageClass& stage,
                         int index, Phase phase, std::optional<double> in_flight = {});
  struct Fullest {
    const StageClass* stage = nullptr;
    MemoryUse use;
  };
  Fullest fullest(RoleModel& model, const Candidate& candidate, Phase phase);

  // role_operations.cc
  StageClass stage_of(const RolePlan& role, const Candidate& candidate, int index);
  OptimizerCost optimizer_of(const RolePlan& role, const Candidate& candidate,
                             const CandidateGroups& groups, int stage);

  // evaluate_reshard.cc
  const ShardOverlap& overlap(int training_tp, int rollout_tp);
  RankVolumes rank_volumes(const Candidate& actor, const Candidate& rollout,
                           RankVolumes& common_volumes);
  SwitchBytes switch_bytes(const Candidate& actor, const Candidate& rollout);
  std::int64_t reshard_bytes(const Candidate& actor, const Candidate& rollout);
  double reshard_seconds(const Candidate& actor, const Candidate& rollout, bool shared);
};

LayerRun layer_run(const Candidate& candidate);
/// The candidate's degrees without its stages.
ParallelLayout degrees_of(const Candidate& candidate);

}  // namespace tessera
