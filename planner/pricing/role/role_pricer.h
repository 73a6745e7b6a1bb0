// The prices of one role under one view of the cluster.
//
// What it prices is a candidate; what it assumes (Assumptions), the role's model and how a plan
// deals the role's ranks are given once, and prices depend on nothing else: caches only save time.
// Of what is assumed the constants alone may be replaced (CostEvaluator::recalibrate): their owner
// then calls forget_seconds. Candidates of one layout should follow one another. Costs of a
// micro-batch are kept per way to run a layer: candidates that do not differ in it share them.
// Seconds, bytes; one thread.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/pricing/role/groups.h"
#include "planner/pricing/role/memory.h"
#include "planner/pricing/role/micro_batch.h"
#include "planner/pricing/role/optimizer.h"
#include "planner/pricing/role/passes.h"
#include "planner/pricing/role/role_cost.h"
#include "planner/pricing/role/rollout.h"
#include "planner/pricing/role/shards.h"

namespace tessera {

/// Seconds of a pipeline's passes, with their batches.
struct PipelinePasses {
  double count = 0;  // micro-batches
  SlowestShare share;
  PipelineTime time;  // of equal micro-batches
  double spread = 0;  // what it is multiplied by as they differ; 0 = not looked at yet
};

/// The passes of a call with its limits, the smallest of which may be another (least_seconds).
struct CallPasses {
  std::int64_t tokens = 0, sequences = 0, smallest = 0;
  PipelineTime time;  // no more than with any of these limits
  Seconds largest;    // one micro-batch under the largest of them, in the mean of all
};

/// A call of a role. What is neither communication nor one of the other two is computation.
struct CallTime {
  OperationTime whole;
  Seconds bubble;  // of it: stages of the pipeline wait for what others compute
  Seconds host;    // of it: the call itself, its software, copies from and to host memory
};

/// Bytes that a call needs beside what its ranks hold, with its batches.
struct WorkingBytes {
  std::int64_t tokens = 0, max_sequences = 0, sequences = 0;
  std::vector<Bytes> by_stage;  // class
};

/// Bytes of what ranks hold that are on the device in a phase.
struct DeviceBytes {
  int zero = 0;
  Offload offload;
  Phase phase = Phase::save_checkpoint;
  std::vector<Bytes> by_stage;  // class
};

/// Of the arrays below that go by ZeRO stage and what is offloaded.
inline std::size_t index_of(int zero, bool offloaded) {
  return static_cast<std::size_t>(zero) * 2 + (offloaded ? 1 : 0);
}

/// What the candidates of one layout share.
struct LayoutCosts {
  Candidate degrees;
  RoleLayout layout;
  std::array<std::vector<PipelinePasses>, 24> passes;  // by training, recompute, zero; ascending
  std::array<std::vector<CallPasses>, 24> calls;       // likewise
  std::array<std::vector<WorkingBytes>, 96> working;  // by kind, recompute, zero, sharded; likewise
  std::vector<DeviceBytes> device;
  std::array<std::optional<ExposedEnds>, 4> ends;         // of the first stage, by zero
  std::array<std::optional<OptimizerCost>, 8> optimizer;  // by zero, offloaded states
  std::array<std::vector<MemoryUse>, 8> resident;         // by zero, offloaded parameters
  std::array<std::optional<Seconds>, 32> offload;         // by zero, offloads, training
  std::optional<DecodePlace> decoding;                    // of a rollout
};

/// What a call takes to begin.
Seconds call_seconds(const Assumptions& assumed, const Candidate& candidate);

/// Sequences of a micro-batch, by the mean of all where they are not of mean lengths.
struct LoadedSequences {
  double count = 0;
  SlowestShare share;
  auto operator<=>(const LoadedSequences&) const = default;
};

/// Costs of micro-batches that differ in their sequences. They stay where they are.
template <typename Cost>
class BySequences {
 public:
  /// Those of these sequences, and whether they were added just now.
  std::pair<Cost*, bool> of(const LoadedSequences& sequences) {
    const auto place = std::lower_bound(
        places_.begin(), places_.end(), sequences,
        [](const Place& known, const LoadedSequences& asked) { return known.first < asked; });
    if (place != places_.end() && place->first == sequences) return {place->second.get(), false};
    return {places_.emplace(place, sequences, std::make_unique<Cost>())->second.get(), true};
  }

 private:
  using Place = std::pair<LoadedSequences, std::unique_ptr<Cost>>;
  std::vector<Place> places_;  // ascending
};

/// A micro-batch, and what it takes on all stages (of_all_stages) where kernels are so slow; 0 =
/// not looked at yet.
struct PricedMicroBatch {
  MicroBatchCost cost;
  double slow = 0;
  StagesSeconds stages;
};

/// What has been priced.
struct PriceCache {
  std::optional<LayoutCosts> latest;  // of the latest layout
  LatestGroups groups;
  LatestFirst<LayerRun, BySequences<PricedMicroBatch>> micro_batches[2];  // [training]
  LatestFirst<LayerCut, BySequences<MicroBatchKernels>> kernels[2];       // [training]
  DecodeCache decoding;
};

/// The stages whose ranks hold most in a phase.
struct FullestStage {
  const StageClass* stage = nullptr;
  MemoryUse use;
};

class RolePricer {
 public:
  /// `dealt`: the layout whose ranks or stages a plan deals in its own way; candidates with its
  /// degrees are priced so, all others in dealt_order and with the search's stages. Keeps
  /// references to `assumed` and `packed`.
  RolePricer(const Assumptions& assumed, RoleModel model, PackedSequences& packed,
             std::optional<DealtLayout> dealt);
  RolePricer(const RolePricer&) = delete;
  RolePricer& operator=(const RolePricer&) = delete;

  const Assumptions& assumed() const { return assumed_; }
  const RoleModel& model() const { return model_; }
  ModelParts& parts() { return parts_; }

  /// Seconds are worked out where the role alone needs no more than `limit` bytes.
  RoleCost cost(const Candidate& candidate, Bytes limit);
  /// The same without seconds; without the bytes of its calls where more is held between them.
  RoleCost bytes(const Candidate& candidate, Bytes limit);
  /// Of a phase of the role's.
  CallTime call_time(const Candidate& candidate, Phase phase);
  OperationTime time(const Candidate& candidate, Phase phase) {
    return call_time(candidate, phase).whole;
  }

  /// What no candidate takes less than that differs from this one in its token limits alone, where
  /// these are no larger than its own and no smaller than `smallest`. That a micro-batch of more
  /// sequences takes no less, and for each of them hardly more, than one of fewer is taken for
  /// granted.
  Seconds least_seconds(const Candidate& candidate, Phase phase, std::int64_t smallest);

  /// No more than these, and sooner known: as if the stages of a pipeline took equally long and
  /// handed nothing on. 0 for a rollout.
  Seconds glanced_seconds(const Candidate& candidate, Phase phase, std::int64_t smallest);

  /// Of the fullest rank between the role's calls.
  Bytes held(const Candidate& candidate);
  /// The same while weights move.
  Bytes held_in_reshard(const Candidate& candidate);
  /// Of a rank of a stage in a phase, the role's own or another.
  MemoryUse memory(const Candidate& candidate, Phase phase, int stage);
  /// What such a rank keeps off the device meanwhile (role/memory.h).
  MemoryUse asleep(const Candidate& candidate, Phase phase, int stage);
  FullestStage fullest(const Candidate& candidate, Phase phase);

  /// Micro-batches of one replica in a mini-batch of a call that trains, rounded up.
  double mini_batch_parts(const Candidate& candidate);

  /// Forgets what depends on the constants, after they have changed.
  void forget_seconds();

 private:
  LayoutCosts& of_layout(const Candidate& candidate);
  TrainedBatches batches(const Candidate& candidate, std::optional<CallKind> call);
  PricedMicroBatch& micro_batch(const RoleLayout& layout, const Candidate& candidate,
                                const LoadedSequences& sequences, bool training);
  const MicroBatchKernels& kernels(const RoleLayout& layout, const LayerCut& cut,
                                   const LoadedSequences& sequences, bool training);
  /// Micro-batches of `sequences` sequences of one replica under a limit of `tokens`; where these
  /// are few a mean of whole rounds.
  double micro_batches(const Candidate& candidate, std::int64_t tokens, double sequences);
  /// All micro-batches, `count`, of `sequences` sequences of a replica with this share. Holds until
  /// the next call.
  PipelinePasses& passes(const Candidate& candidate, double count, double sequences, bool training,
                         const SlowestShare& share);
  /// The same of the replica that the others wait for; between whole rounds in proportion.
  PipelineTime expected_passes(const Candidate& candidate, double count, double sequences,
                               bool training);
  SlowestShare slowest_share(const Candidate& candidate, double count, double sequences,
                             bool training);
  /// By what factor all passes take longer as their micro-batches differ; at least 1.
  double spread(const Candidate& candidate, double count, double sequences, bool training,
                const SlowestShare& share);
  /// With the shares of a plan's own stages.
  StagedPass staged_pass(const Candidate& candidate, const LoadedSequences& sequences,
                         bool training);
  int round_of(const Candidate& candidate) const;
  /// The same, of the number that makes them quickest of those that limits down to `smallest` make;
  /// no more than any of these takes.
  PipelineTime least_passes(const Candidate& candidate, double sequences, bool training,
                            std::int64_t smallest);
  /// No more than least_passes takes.
  Seconds glanced_passes(const Candidate& candidate, double sequences, bool training,
                         std::int64_t smallest);
  /// Of a call, kept. Holds until the next one.
  const CallPasses& call_passes(const Candidate& candidate, double sequences, bool training,
                                std::int64_t smallest);
  /// A candidate whose passes are the same: without what does not change them.
  Candidate passing_as(Candidate candidate, bool training) const;
  /// Of the stage that trains most.
  const OptimizerCost& fullest_optimizer(const Candidate& candidate);
  Seconds offloaded_seconds(const Candidate& candidate, bool training, double steps);
  /// An optimizer's step. `last`: of the backward pass that it may run beside.
  struct StepTime {
    Seconds all, communication;
  };
  StepTime optimizer_step(const Candidate& candidate, Seconds last);
  /// `smallest`: as in least_seconds; the candidate's own limit for its own time.
  CallTime update(const Candidate& candidate, std::int64_t smallest);
  CallTime infer(const Candidate& candidate, std::int64_t smallest);
  /// nullptr: the candidate's pipeline has no such stage.
  const StageClass* stage_class(const Candidate& candidate, int stage);
  /// fullest(...).use.total().
  Bytes most_bytes(const Candidate& candidate, Phase phase);
  const std::vector<MemoryUse>& resident_of_stages(const Candidate& candidate);
  const std::vector<Bytes>& device_of_stages(const Candidate& candidate, Phase phase);
  const std::vector<Bytes>& working_of_stages(const Candidate& candidate, CallKind kind);

  const Assumptions& assumed_;
  const RoleModel model_;
  PackedSequences& packed_;
  const std::optional<DealtLayout> dealt_;
  ModelParts parts_;
  PriceCache cache_;
};

}  // namespace tessera
