// The space that an engine leaves to the search, and how its kernels behave.
//
// Pure. "any" is no engine: it is everything that the cost models can price, for questions that
// come before the choice of one.
#pragma once

#include <optional>
#include <string_view>

#include "cost_models/engine_traits.h"
#include "planner/engines/capabilities.h"

namespace tessera {

inline constexpr std::string_view kAnyEngine = "any";

/// What an engine lets a plan choose beside layouts (RolePlan says it of the actor).
struct EngineChoices {
  bool fused_loss = false, host_optimizer = false;
};

/// capabilities_of, and the whole space for "any".
std::optional<Capabilities> space_of(std::string_view engine, Problems& problems);

/// Tessera's executor for "tessera". Others and "any": Megatron-LM's and FSDP's overlap of
/// gradients and gathers with computation, optimizer states streamed from the host where they are
/// offloaded (Megatron-LM's optimizer_cpu_offload), pipeline messages cut by tp, logits of a
/// micro-batch whole. verl moves offloaded states as a whole.
/// Of what a plan chose, fused_loss is 512 rows of logits at a time
/// (verl/utils/experimental/torch_functional.py, FusedLinearForPPOFunction). Tessera's own executor
/// has both anyway.
EngineTraits traits_of(std::string_view engine, EngineChoices choices = {});

}  // namespace tessera
