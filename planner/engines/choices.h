// What a request says of its engine: whose name it is, and what of its own the engine may choose.
//
// Plain values.
#pragma once

#include <string_view>

#include "cost_models/spec/enum_array.h"
#include "cost_models/spec/workload.h"
#include "cost_models/transformers/fsdp.h"
#include "planner/plan/told_log_probs.h"

namespace tessera {

/// The engine of a request that names none: Tessera's own executor.
inline constexpr std::string_view kOwnEngine = "tessera";

/// The same with vLLM's servers as its rollout.
inline constexpr std::string_view kOwnEngineWithVllm = "tessera+vllm";

/// No engine, but everything that the cost models can price, for questions that come before the
/// choice of one.
inline constexpr std::string_view kAnyEngine = "any";

/// What an engine lets a plan choose beside layouts (RolePlan says it of the actor, log-probs of
/// the rollout, and the last two of each role). A search takes them as they are, and `as_engine` as
/// quickest_log_probs says.
struct EngineChoices {
  bool fused_loss = false;      // the head and the loss in one kernel, a slice of rows at a time
  bool host_optimizer = false;  // offloaded states stay on the host, which computes the step
  ToldLogProbs log_probs = ToldLogProbs::as_engine;  // of the rollout
  EnumArray<Role, Fsdp> fsdp;
  EnumArray<Role, bool> no_sync{};
  bool operator==(const EngineChoices&) const = default;
};

}  // namespace tessera
