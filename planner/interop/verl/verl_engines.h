// What verl's configuration calls the keys of each of its training engines.
//
// Plain values of static lifetime and pure functions.
#pragma once

#include <string>
#include <string_view>

#include "cost_models/transformers/fsdp.h"
#include "planner/interop/config/config_values.h"

namespace tessera {

struct ParallelLayout;

struct VerlEngineKeys {
  VerlEngine engine;
  std::string_view plan_engine;  // Plan::engine
  std::string_view strategy;     // of actor and critic; FSDP's newer one
  std::string_view block;        // of the engine's own keys, below the actor and the reference
  std::string_view critic_block;
  int bit;                        // in the rows of verl_keys.inc
  std::string_view library = {};  // that trains, beside verl's own requirements; its revision
};

const VerlEngineKeys& keys_of(VerlEngine engine);

/// Of a plan for one of them; FSDP's for every other.
const VerlEngineKeys& keys_of_plan(std::string_view plan_engine);

/// The value of model_engine; empty for FSDP, its default.
std::string model_engine(VerlEngine engine);

/// The value of actor.strategy and critic.strategy. `fsdp`: of a role that verl's FSDP trains.
std::string_view strategy_of(const VerlEngineKeys& keys, Fsdp fsdp);

/// Ranks that verl multiplies a limit of tokens per GPU by, to fill a micro-batch: `sp_size` of
/// workers/engine/*/transformer_impl.py, which is the tensor-parallel size for torchtitan and the
/// context-parallel one for the others.
int ranks_of_limit(VerlEngine engine, const ParallelLayout& layout);

/// peft's exclude_modules for the vision towers of every family, with what projects their tokens:
/// plans count towers as frozen beside adapters.
inline constexpr std::string_view kTowerModules =
    ".*(visual|vision_tower|vision_model|multi_modal_projector).*";

/// "FSDP, Megatron, VeOmni or torchtitan".
inline constexpr std::string_view kVerlEnginesInWords = "FSDP, Megatron, VeOmni or torchtitan";

}  // namespace tessera
