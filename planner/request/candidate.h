// One way to run one role, and the layout that it stands for.
//
// Plain values and pure functions. Ranks count GPUs, token limits tokens of one micro-batch on one
// model replica.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cost_models/memory.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/workload.h"
#include "planner/plan/engine_rule.h"

namespace tessera {

/// One way to run one role on `gpus` ranks; gpus = tp cp pp dp.
struct Candidate : Degrees {
  Role role = Role::actor;
  int gpus = 1;
  int zero = 0;
  std::int64_t tokens = 0;         // limit of a micro-batch; of a prefill batch for the rollout
  std::int64_t max_sequences = 0;  // rollout: decoded at once per replica
  int head_layers = 0;             // layers that the cut counts for the last stage's head
  bool sequence_parallel = false, ulysses = false;
  Recompute recompute = Recompute::none;
  /// What leaves the device outside the role's own phases. For the rollout, parameters = unmap.
  Offload offload = {};
  std::int64_t update_tokens = 0;  // limit of calls that train, where it is another; 0 = `tokens`
  int view = 0;  // GPU types of its pool (spec/node_groups.h); 0 = all, or all there are
  /// Sequences of a micro-batch where the engine counts these and not tokens, which are then what
  /// memory holds; 0 = tokens cut. Of calls that train another number, where there is one.
  std::int64_t sequences = 0;
  std::optional<std::int64_t> update_sequences = {};
  auto operator<=>(const Candidate&) const = default;
};

/// What of a candidate saves memory and takes time.
struct MemoryChoice {
  int zero = 0;
  Recompute recompute = Recompute::none;
  Offload offload = {};
  auto operator<=>(const MemoryChoice&) const = default;
};

/// Sizes of a candidate's batches.
struct BatchLimit {
  std::int64_t tokens = 0, max_sequences = 0;
  auto operator<=>(const BatchLimit&) const = default;
};

/// Sequences of the rollout's replica that has most of a step's: dealt as even as they go, one by
/// one or in whole prompts.
std::int64_t most_sequences(const Workload& workload, PromptDealing dealing, int replicas);

/// Those of a rollout that decodes so many sequences at once per replica.
BatchLimit rollout_batch(const Workload& workload, std::int64_t sequences);

/// `layers` cut into pp vpp chunks, the last of which also counts `head_layers`.
std::vector<LayerRange> cut_stages(std::int64_t layers, int pp, int vpp, int head_layers);
ParallelLayout layout_of(const Candidate& candidate, std::int64_t layers);
/// megatron (pipeline slowest, so that expert groups are neighbours) with expert parallelism, else
/// contiguous.
RankOrder training_order(const Candidate& candidate);
/// Whether the ranks of a rollout's replica stay neighbours however many weights move: where GPUs
/// of a node share links, which they would cross in every layer.
bool replicas_stay_near(const ClusterSpec& cluster, int ranks);
/// strided where the rollout shares the actor's ranks and its degrees divide, else contiguous.
RankOrder rollout_order(const Candidate& actor, const Candidate& rollout,
                        const ClusterSpec& cluster);
/// True where an engine takes the ranks of a rollout in any order: a reshard that is not strided
/// may then be a list that moves fewer bytes (assign_ranks).
bool takes_rank_lists(std::string_view engine);

}  // namespace tessera
