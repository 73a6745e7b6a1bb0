// What an engine can execute: the table that limits the search, that exports refuse by and that
// `run` checks plans against.
//
// Plain values. Tessera's own table follows executor/train (Trainer) and executor/model
// (CachedDecoder); the others state the limits of the versions in `version` (docs/commands/interop.md).
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/memory.h"
#include "cost_models/documents/problem.h"
#include "planner/plan/plan.h"

namespace tessera {

/// What tensor parallelism asks of a model's heads: nothing; that it divides the query heads, while
/// key-value heads may be replicated; or that it divides both.
enum class HeadRule { any, query_heads, all_heads };

struct Capabilities {
  std::string engine, version;
  std::vector<Role> roles;           // that it runs
  std::vector<int> zero;             // stages of trained roles
  std::vector<Recompute> recompute;  // of trained roles
  /// Largest degrees of roles other than the rollout, and of the rollout.
  int most_tp = std::numeric_limits<int>::max(), most_pp = std::numeric_limits<int>::max();
  int most_rollout_pp = 1;
  bool context_parallel = false, expert_parallel = false, virtual_stages = false;
  bool fully_sharded = false, sequence_parallel = false, offload = false, unmap = false;
  std::optional<bool> ulysses;           // how context parallelism runs; nullopt = as a ring too
  bool rollout_expert_parallel = false;  // and then over all of a replica's ranks
  /// Stages as Megatron states them: equal, but for a first and a last one of their own.
  bool equal_middle_stages = false;
  HeadRule training_heads = HeadRule::any, rollout_heads = HeadRule::any;
  bool one_critic_limit = false;      // of tokens: for the critic's values and its update alike
  bool tp_must_divide_heads = false;  // of some role: what Tessera's split rule does not ask for
  /// Actor, rollout, critic and reference share all of the job's GPUs; the reward model may have
  /// its own.
  bool colocated = false;
  /// Steps ahead (0, 1) that a rollout with GPUs of its own may generate; empty = it has none.
  std::vector<int> own_pool_lags;
  bool serves_reward = false;  // the reward model runs as the rollout does, not as a trained model
  bool lora = false;           // adapters beside frozen weights
  bool full_gather = false;    // weights move by gathering every tensor whole
  std::vector<DType> params;
  std::vector<ModelFamily> families;  // empty = every one
};

/// Engines whose table is known, sorted.
std::vector<std::string> engine_names();

/// nullopt and a Problem with did-you-mean for an unknown engine.
std::optional<Capabilities> capabilities_of(std::string_view engine, Problems& problems);

/// Why the engine cannot run a role of this model in this layout (ranks aside); empty = it can.
/// `place` of each Problem is the field, "tp" or "stages".
Problems outside_capabilities(const Capabilities& engine, const ModelSpec& model, Role role,
                              const ParallelLayout& layout);

/// Appends a Problem where the engine has no such model; `place` is that of the model in `file`.
void refuse_model(const Capabilities& table, const ModelSpec& model, const std::string& file,
                  const std::string& place, Problems& problems);

/// What in `plan` the engine (by default the plan's own) cannot do: one Problem per role and thing,
/// `place` is the plan's JSON pointer. Empty: it can execute the plan.
Problems outside_capabilities(const Plan& plan, const std::string& file = "plan",
                              std::string_view engine = {});

}  // namespace tessera
