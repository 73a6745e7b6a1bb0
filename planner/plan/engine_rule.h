// What of a plan's engine decides whether the plan contradicts itself.
//
// Plain values. The engines themselves are in planner/engines, which hands their rules down.
#pragma once

#include <span>
#include <string_view>

namespace tessera {

/// How the prompts of a step reach the rollout's replicas: in equal shares, dealt before they
/// generate; or as requests, which a server's replicas take as they come.
enum class PromptDealing { equal_shares, requests };

struct EngineRule {
  std::string_view name;
  PromptDealing prompts = PromptDealing::requests;
};

/// Of every engine that a plan may name, sorted.
using EngineRules = std::span<const EngineRule>;

}  // namespace tessera
