// The prompts of a run as tokens, with the truth that rule rewards compare with.
//
// Torch-free. Read once at start, alike on every rank.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "executor/data/prompts.h"
#include "executor/data/rewards.h"
#include "executor/data/tokenizer.h"
#include "executor/rl/experience.h"
#include "executor/rollout/request_queue.h"

namespace tessera {

struct PromptSet {
  Tokenizer tokenizer;
  std::vector<Prompt> prompts;                    // as the files hold them
  std::vector<std::vector<std::int32_t>> tokens;  // by prompt
  PromptSource source;                            // which of them a step takes
  RewardRule rule;
  std::vector<RewardRule> component_rules;  // of the estimator's reward keys
};

struct PromptSetOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path model;          // folder of the tokenizer
  std::string reward;                   // a rule's name
  std::vector<std::string> components;  // names of rules
  std::int64_t per_step = 0;
  std::int64_t max_tokens = 0;  // longer prompts are refused
  std::uint64_t seed = 0;
  bool shuffle = true;
};

/// Throws Error(bad_input) with every problem of every file.
PromptSet read_prompt_set(const PromptSetOptions& options);

/// `count` prompts from position `first` of the source, `samples` responses each. `numbered` says
/// how many prompts the step has already: prompt_index counts within the step.
std::vector<TokenPrompt> prompts_at(const PromptSet& set, std::int64_t first, std::int64_t count,
                                    std::int32_t samples, std::int32_t numbered = 0);

/// Scores every response by the rule, and by the rules of its components.
void score_by_rule(const PromptSet& set, std::span<Sequence> sequences);

/// The text of one sequence of such prompts.
struct SequenceText {
  std::string prompt, response, truth;
};
SequenceText text_of(const PromptSet& set, const Sequence& sequence);

}  // namespace tessera
