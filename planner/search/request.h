// What the planner is asked, and the space of answers.
//
// Plain values. Ranks count GPUs, token limits tokens of one micro-batch on one model replica.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/memory.h"
#include "planner/engines/capabilities.h"
#include "planner/plan/plan.h"
#include "planner/search/settings.h"

namespace tessera {

/// What the search minimises. Tokens per second and GPU, and cost at one price per GPU hour, are
/// both best where the iteration takes the fewest GPU seconds; the fewest GPUs that fit come with
/// their fastest plan.
enum class Objective { step_time, tokens_per_gpu, cost, fewest_gpus };

/// What an engine lets a plan choose beside layouts (RolePlan says it of the actor).
struct EngineChoices {
  bool fused_loss = false, host_optimizer = false;
};

struct PlanRequest {
  std::map<std::string, ModelSource> models;  // "actor"; "critic", "reward" where they differ
  ClusterSpec cluster;
  Workload workload;  // resolved: with its dataflow
  Calibration calibration;
  std::string engine = "tessera";
  EngineChoices choices;
  EngineTraits traits;                // of that engine (traits_of)
  std::map<Role, Lora> lora;          // of roles with adapters
  std::map<Role, RoleDTypes> dtypes;  // instead of dtypes_of's; empty = the model's
  FixedSettings fixed;
  Objective objective = Objective::step_time;
  std::string tessera_version, created;  // for the plan's provenance
};

/// Key into PlanRequest::models of the model that a role runs.
std::string model_key(const PlanRequest& request, Role role);
/// That model, with the head that the role needs.
ModelSpec model_of(const PlanRequest& request, Role role);
/// Element types of a role: the checkpoint's for parameters, caches and messages; fp32 for the
/// rest.
RoleDTypes dtypes_of(const PlanRequest& request, Role role);

/// Roles that run a model in this workload, in the order of enum Role.
std::vector<Role> roles_of(const Workload& workload);
/// True when the workload trains the role.
bool is_trained(const Workload& workload, Role role);
/// Phases in which the role's model computes (gen for the rollout).
std::vector<Phase> phases_of(const Workload& workload, Role role);
/// Longest sequence: prompt and the longest response.
std::int64_t longest_sequence(const Workload& workload);

/// One way to run one role on `gpus` ranks; gpus = tp cp pp dp.
struct Candidate {
  Role role = Role::actor;
  int gpus = 1;
  int tp = 1, pp = 1, dp = 1, zero = 0;
  std::int64_t tokens = 0;         // limit of a micro-batch; of a prefill batch for the rollout
  std::int64_t max_sequences = 0;  // rollout: decoded at once per replica
  int cp = 1, vpp = 1, ep = 1, etp = 1;
  int dp_shard = 1;     // FSDP; divides dp, then zero is 3
  int head_layers = 0;  // layers that the cut counts for the last stage's head
  bool sequence_parallel = false, ulysses = false;
  Recompute recompute = Recompute::none;
  /// What leaves the device outside the role's own phases. For the rollout, parameters = unmap.
  Offload offload = {};
  std::int64_t update_tokens = 0;  // limit of calls that train, where it is another; 0 = `tokens`
  int view = 0;  // GPU types of its pool (spec/node_groups.h); 0 = all, or all there are
  auto operator<=>(const Candidate&) const = default;
};

/// What of a candidate saves memory and takes time.
struct MemoryChoice {
  int zero = 0;
  Recompute recompute = Recompute::none;
  Offload offload = {};
};

/// Sizes of a candidate's batches.
struct BatchLimit {
  std::int64_t tokens = 0, max_sequences = 0;
};

/// Those of a rollout that decodes so many sequences at once per replica.
BatchLimit rollout_batch(const Workload& workload, std::int64_t sequences);

/// The candidates of one layout: every choice with every batch, and where `limits_apart` with every
/// other batch in the calls that train. Batches ascend.
struct LayoutSpace {
  Candidate layout;  // the degrees; nothing of choices and batches but a fixed update_tokens
  std::vector<MemoryChoice> choices;
  std::vector<BatchLimit> batches;
  bool limits_apart = false;

  Candidate at(const MemoryChoice& choice, const BatchLimit& batch) const;
  std::int64_t size() const;
};

/// `layers` cut into pp vpp chunks, the last of which also counts `head_layers`.
std::vector<LayerRange> cut_stages(std::int64_t layers, int pp, int vpp, int head_layers);
ParallelLayout layout_of(const Candidate& candidate, std::int64_t layers);
/// megatron (pipeline slowest, so that expert groups are neighbours) with expert parallelism, else
/// contiguous.
RankOrder training_order(const Candidate& candidate);
/// strided where the rollout shares the actor's ranks and its degrees divide, else contiguous.
RankOrder rollout_order(const Candidate& actor, const Candidate& rollout);
/// True where an engine takes the ranks of a rollout in any order: a switch that is not strided may
/// then be a list that moves fewer bytes (assign_ranks).
bool takes_rank_lists(std::string_view engine);

/// Sizes that a block of GPUs may have: divisors of a node, and whole nodes; ascending.
std::vector<int> block_sizes(const ClusterSpec& cluster);

/// First rank of each block (sizes as given): blocks of whole nodes first, then smaller ones by
/// first fit in descending size, none across a node's border. Empty when they do not fit.
std::vector<int> place_blocks(const std::vector<int>& sizes, const ClusterSpec& cluster);

/// True for degrees of context parallelism that are always tried: powers of two that leave every
/// rank at least 2 Ki tokens of the longest sequence. Higher ones are tried where
/// replicas of one sequence and the deepest pipeline do not occupy the ranks.
bool tries_context(const Workload& workload, std::int64_t cp);

/// Every way to run a role on `gpus` ranks that engine, model, batch and fixed settings allow: tp
/// divides a node and does not exceed the heads, pp the layers; dp divides the role's batches;
/// token limits of calls that train, and of the others, are 1, 2, 4, ... longest sequences, up to
/// all of a replica's (or 128 Ki per cp rank); rollout slots all of a replica's sequences, a half,
/// a quarter, ... Where the engine has them: cp 1, 2, 4, ... of at least 2 Ki tokens per rank
/// (fewer where nothing else occupies the ranks), as ring and as Ulysses; virtual
/// stages that divide the layers, up to 8; the last stage shorter by its head; ep that divides the
/// experts, with etp 1 or tp; FSDP over all replicas or a node's; every recomputation; optimizer,
/// or everything, offloaded between phases; the rollout unmapped. Sequence parallelism wherever tp
/// > 1. In a fixed order.
std::vector<LayoutSpace> enumerate_layouts(const PlanRequest& request,
                                           const Capabilities& capabilities, Role role, int gpus);
std::vector<Candidate> candidates_of(const std::vector<LayoutSpace>& layouts);
/// Those with one token limit for all calls of a role.
std::vector<Candidate> enumerate_candidates(const PlanRequest& request,
                                            const Capabilities& capabilities, Role role, int gpus);

}  // namespace tessera
