#include "planner/interop/verl/verl_engines.h"

#include <algorithm>
#include <array>

#include "cost_models/spec/parallel_layout.h"

namespace tessera {
namespace {

// trainer/config/{actor,ref,critic} of the 0.9.1 wheel, in the order of the enumerators.
constexpr std::array<VerlEngineKeys, 4> kKeys{{
    {VerlEngine::fsdp, "verl", "fsdp2", "fsdp_config", "fsdp", 1},
    {VerlEngine::megatron, "verl-megatron", "megatron", "megatron", "megatron", 2},
    {VerlEngine::veomni, "verl-veomni", "veomni", "veomni", "veomni", 4,
     "VeOmni at commit d977449 (21 August 2026)"},
    // The last revision with all that verl 0.9.1 imports and sets: components.lr_scheduler left
    // with 970fbdd, spmd_backend=full_dtensor with 5ab3a0f, TrainingConfig.seq_len with 73aed7f.
    {VerlEngine::torchtitan, "verl-torchtitan", "torchtitan", "torchtitan", "torchtitan", 8,
     "torchtitan at commit a6df53f (17 August 2026; verl 0.9.1 does not run with later ones)"},
}};

}  // namespace

const VerlEngineKeys& keys_of(VerlEngine engine) { return kKeys[static_cast<std::size_t>(engine)]; }

const VerlEngineKeys& keys_of_plan(std::string_view plan_engine) {
  const auto found = std::find_if(kKeys.begin(), kKeys.end(), [&](const VerlEngineKeys& each) {
    return each.plan_engine == plan_engine;
  });
  return found == kKeys.end() ? kKeys.front() : *found;
}

std::string model_engine(VerlEngine engine) {
  return engine == VerlEngine::fsdp ? std::string() : std::string(kVerlEngines[engine]);
}

std::string_view strategy_of(const VerlEngineKeys& keys, Fsdp fsdp) {
  return keys.engine == VerlEngine::fsdp && fsdp == Fsdp::fsdp1 ? "fsdp" : keys.strategy;
}

int ranks_of_limit(VerlEngine engine, const ParallelLayout& layout) {
  return engine == VerlEngine::torchtitan ? layout.tp : layout.cp;
}

}  // namespace tessera
