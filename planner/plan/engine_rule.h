// What of a plan's engine decides whether the plan contradicts itself.
//
// Plain values. The engines themselves are in planner/engines, which hands their rules down.
#pragma once

#include <span>
#include <string_view>

namespace tessera {

/// How a step's sequences reach the rollout's replicas, as evenly as they go: whole prompts with
/// all their samples, dealt before they generate; or one by one, as requests to a server's
/// replicas.
enum class PromptDealing { whole_prompts, requests };

struct EngineRule {
  std::string_view name;
  PromptDealing prompts = PromptDealing::requests;
};

/// Of every engine that a plan may name, sorted.
using EngineRules = std::span<const EngineRule>;

}  // namespace tessera
