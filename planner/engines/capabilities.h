// What an engine can execute: what limits the search, what exports refuse by and what `run` checks
// plans against.
//
// Plain values, one in each Engine (planner/engines/engine.h); the limits are those of the version
// that the engine names (docs/commands/interop.md).
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "cost_models/memory.h"
#include "cost_models/spec/workload.h"

namespace tessera {

/// What tensor parallelism asks of a model's heads: nothing; that it divides the query heads, while
/// key-value heads may be replicated; or that it divides both.
enum class HeadRule { any, query_heads, all_heads };

/// How a served model's experts are spread: not at all; over all ranks of a replica; or as a
/// trained model's.
enum class ServedExperts { together, whole_replica, any_degree };

struct Capabilities {
  std::vector<Role> roles;           // that it runs
  std::vector<int> zero;             // stages of trained roles
  std::vector<Recompute> recompute;  // of trained roles
  /// Largest degrees of roles other than the rollout, and of the rollout.
  int most_tp = std::numeric_limits<int>::max(), most_pp = std::numeric_limits<int>::max();
  int most_rollout_pp = 1;
  bool context_parallel = false, expert_parallel = false, virtual_stages = false;
  bool fully_sharded = false, sequence_parallel = false, offload = false, unmap = false;
  std::optional<bool> ulysses;  // how context parallelism runs; nullopt = as a ring too
  ServedExperts served_experts = ServedExperts::together;
  /// Stages as Megatron states them: equal, but for a first and a last one of their own.
  bool equal_middle_stages = false;
  HeadRule training_heads = HeadRule::any, rollout_heads = HeadRule::any;
  bool one_critic_limit = false;  // of tokens: for the critic's values and its update alike
  /// Actor, rollout, critic and reference share all of the job's GPUs; the reward model may have
  /// its own.
  bool colocated = false;
  /// Steps ahead (0, 1) that a rollout with GPUs of its own may generate; empty = it has none.
  std::vector<int> own_pool_lags;
  bool serves_reward = false;      // the reward model runs as the rollout does, not as trained ones
  bool reference_on_host = false;  // its weights always wait there; adapters' is the actor itself
  bool lora = false;               // adapters beside frozen weights
  std::vector<DType> params;
  std::vector<ModelFamily> families;  // empty = every one
};

}  // namespace tessera
