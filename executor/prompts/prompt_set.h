// The prompts of a run as tokens, with the truth that rewards compare with.
//
// Torch-free. Read once at start, alike on every rank.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "executor/checkpoint/run_checkpoint.h"
#include "executor/data/prompts.h"
#include "executor/data/tokenizer.h"
#include "executor/rewards/reward_functions.h"
#include "executor/rl/experience.h"
#include "executor/rollout/request_queue.h"

namespace tessera {

struct PromptSet {
  Tokenizer tokenizer;
  std::vector<Prompt> prompts;                    // as the files hold them, those left out aside
  std::vector<std::vector<std::int32_t>> tokens;  // by prompt
  PromptSource source;                            // which of them a step takes
  /// The run's functions, then those of the estimator's reward keys alone, with weight 0.
  std::vector<RewardFunction> rewards;
  std::vector<std::size_t> components;  // of the reward keys, as places in `rewards`
  /// That end a response: all of generation_config.json, or the one of config.json, or the
  /// tokenizer's; empty = nothing does.
  std::vector<std::int32_t> end_tokens;
  std::vector<std::string> notes;  // for people: prompts left out or cut
};

struct PromptSetOptions {
  std::vector<std::filesystem::path> files;
  std::string key = "data.train_files";  // of run.yaml, that names them
  std::vector<double> weights;           // of the files; empty = one set of all prompts
  std::filesystem::path model;           // folder of the tokenizer
  RewardOptions rewards;
  std::vector<std::string> components;  // names of the run's functions, or of rules
  std::int64_t per_step = 0;
  std::int64_t most = -1;       // the first prompts of the files alone, -1 = all; before any is
                                // left out for its length, as verl's max_samples
  std::int64_t max_tokens = 0;  // 0 = no limit
  bool filter_overlong = false;
  Truncation truncation = Truncation::error;  // of longer prompts that are not left out
  std::string chat_options = "{}";            // a JSON object, variables of the chat template
  std::int64_t vocabulary = 0;                // ids that the model has; 0 = any
  std::optional<std::int64_t> end_token;      // of the model's config.json
  std::uint64_t seed = 0;
  bool shuffle = true;
};

/// Throws Error(bad_input) with every problem of every file.
PromptSet read_prompt_set(const PromptSetOptions& options);

/// What a step's number means: the prompts and the order in which they are taken.
CheckpointData data_of(const PromptSet& set);

/// `count` prompts from position `first` of the source, `samples` responses each. `numbered` says
/// how many prompts the step has already: prompt_index counts within the step.
std::vector<TokenPrompt> prompts_at(const PromptSet& set, std::int64_t first, std::int64_t count,
                                    std::int32_t samples, std::int32_t numbered = 0);

/// The prompt that a sequence answers: a uid begins with its index.
const Prompt& prompt_of(const PromptSet& set, const Sequence& sequence);

/// The text of one sequence of such prompts.
struct SequenceText {
  std::string prompt, response, truth;
};
SequenceText text_of(const PromptSet& set, const Sequence& sequence);

}  // namespace tessera
