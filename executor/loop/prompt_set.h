// The prompts of a run as tokens, with the truth that rule rewards compare with.
//
// Torch-free. Read once at start, alike on every rank.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "executor/data/prompts.h"
#include "executor/data/rewards.h"
#include "executor/data/tokenizer.h"
#include "executor/rl/experience.h"
#include "executor/rollout/continuous_batching.h"

namespace tessera {

struct PromptSet {
  Tokenizer tokenizer;
  std::vector<Prompt> prompts;                    // as the files hold them
  std::vector<std::vector<std::int32_t>> tokens;  // by prompt
  PromptSource source;                            // which of them a step takes
  RewardRule rule;
};

struct PromptSetOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path model;  // folder of the tokenizer
  std::string reward;           // a rule's name
  std::int64_t per_step = 0;
  std::int64_t max_tokens = 0;  // longer prompts are refused
  std::uint64_t seed = 0;
  bool shuffle = true;
};

/// Throws Error(bad_input) with every problem of every file.
PromptSet read_prompt_set(const PromptSetOptions& options);

/// The prompts of step k (from 0), `samples` responses each; prompt_index counts within the step.
std::vector<TokenPrompt> prompts_of_step(const PromptSet& set, std::int64_t k,
                                         std::int32_t samples);

/// Scores every response by the rule.
void score_by_rule(const PromptSet& set, std::int64_t k, Experience& experience);

/// The text of one sequence of step k.
struct SequenceText {
  std::string prompt, response, truth;
};
SequenceText text_of(const PromptSet& set, std::int64_t k, const Sequence& sequence);

}  // namespace tessera
