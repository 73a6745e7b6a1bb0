// What an engine can execute: what limits the search, what exports refuse by and what `run` checks
// plans against.
//
// Plain values, one in each Engine (planner/engines/engine.h); the limits are those of the version
// that the engine names (docs/commands/interop.md).
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/adapters.h"
#include "cost_models/memory.h"
#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"
#include "cost_models/spec/workload.h"

namespace tessera {

/// What tensor parallelism asks of a model's heads: nothing; that it divides the query heads, while
/// key-value heads may be replicated; or that it divides both.
enum class HeadRule { any, query_heads, all_heads };

/// How a served model's experts are spread: not at all; cut as the rest is, or into fewer parts,
/// and dealt out (served_expert_refusal); over all ranks of a replica; or as a trained model's.
enum class ServedExperts { together, any_part, whole_replica, any_degree };

/// Why experts cannot lie under a layout; empty = they can.
using ExpertRule = std::string (*)(const ModelSpec& model, const ParallelLayout& layout);

/// Of roles that are not served: how their layouts may be.
struct TrainingLimits {
  std::vector<int> zero;             // stages, of roles that train
  std::vector<Recompute> recompute;  // of roles that train
  int most_tp = std::numeric_limits<int>::max(), most_pp = std::numeric_limits<int>::max();
  bool context_parallel = false;
  std::optional<bool> ulysses;  // how context parallelism runs; nullopt = as a ring too
  bool expert_parallel = false, fully_sharded = false, sequence_parallel = false;
  ExpertRule experts = nullptr;  // with expert_parallel; nullptr = any degrees
  bool virtual_stages = false;
  /// The search makes stages that are equal, but for a first and a last one of their own, as
  /// Megatron's usual arguments state them; its text of a layout states any others that a plan has.
  bool equal_middle_stages = false;
  HeadRule heads = HeadRule::any;
  bool one_critic_limit = false;  // of tokens: for the critic's values and its update alike
  bool whole_sequences = false;   // a limit of tokens holds a longest sequence at least
};

/// Of the rollout, and of a reward model that is served.
struct ServingLimits {
  int most_pp = 1;
  ServedExperts experts = ServedExperts::together;
  HeadRule heads = HeadRule::any;
  bool reward = false;  // the reward model runs as the rollout does, not as trained ones
  /// Why the server cannot hold the model under a layout, one sentence a reason; nullptr = `heads`
  /// says all.
  std::vector<std::string> (*refusals)(const ModelSpec&, const ParallelLayout&) = nullptr;
};

/// What may leave the device between a role's phases.
struct OffloadLimits {
  bool trained = false;            // what roles other than the rollout keep
  bool rollout = false;            // the rollout's weights, which are unmapped
  bool reference_on_host = false;  // its weights always wait there; adapters' is the actor itself
  bool actor_parameters = true;    // where `trained`; false: the rollout reads them on the device
};

/// Which GPUs roles may have.
struct PoolLimits {
  /// Actor, rollout, critic and reference share all of the job's GPUs; the reward model may have
  /// its own.
  bool colocated = false;
  /// Roles on the same GPUs that are not served agree in tp, pp, vpp, cp, ep and etp
  /// (group_degrees.h): one set of process groups serves them all.
  bool one_set_of_groups = false;
  /// Steps ahead (0, 1) that a rollout with GPUs of its own may generate; empty = it has none.
  std::vector<int> rollout_lags;
  bool one_host = false;  // the rollout reads the memory of ranks on its own host
};

struct Capabilities {
  std::vector<Role> roles;  // that it runs
  std::vector<DType> params;
  std::vector<ModelFamily> families;  // empty = every one
  /// Why a model of these families cannot run all the same; nullptr = every one can.
  std::string (*model)(const ModelSpec& model) = nullptr;
  bool lora = false;               // adapters beside frozen weights
  bool prediction_layers = false;  // it trains the model's layers of multi-token prediction
  /// With `lora`: why these cannot stand beside such a model, "the products of experts have no
  /// adapters"; empty = they can. nullptr = all can.
  std::string (*adapters)(const ModelSpec& model, const Lora& lora) = nullptr;
  TrainingLimits training;
  ServingLimits serving;
  OffloadLimits offload;
  PoolLimits pools;
};

}  // namespace tessera
