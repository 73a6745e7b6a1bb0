#include "executor/loop/prompt_set.h"

#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

[[noreturn]] void fail(Problems problems) { throw Error(ExitCode::bad_input, std::move(problems)); }

std::vector<Prompt> read_all(const std::vector<std::filesystem::path>& files, Problems& problems) {
  std::vector<Prompt> all;
  for (const std::filesystem::path& file : files) {
    if (std::optional<std::vector<Prompt>> prompts = read_prompts(file, problems)) {
      all.insert(all.end(), prompts->begin(), prompts->end());
    }
  }
  return all;
}

void check_lengths(const PromptSet& set, std::int64_t max_tokens, Problems& problems) {
  for (size_t i = 0; i < set.tokens.size(); ++i) {
    const auto length = static_cast<std::int64_t>(set.tokens[i].size());
    if (length > 0 && (max_tokens == 0 || length <= max_tokens)) continue;
    problems.push_back({.file = "prompts",
                        .place = "prompt " + std::to_string(i),
                        .found = std::to_string(length) + " tokens",
                        .expected = "1 to " + std::to_string(max_tokens) + ", the plan's limit"});
  }
}

}  // namespace

PromptSet read_prompt_set(const PromptSetOptions& options) {
  Problems problems;
  std::optional<Tokenizer> tokenizer = Tokenizer::open(options.model, problems);
  const ChatFormat format = chat_format(options.model, problems);
  std::vector<Prompt> prompts = read_all(options.files, problems);
  const std::optional<RewardRule> rule = reward_rule(options.reward);
  if (!rule) {
    const std::vector<std::string> known = reward_rule_names();
    problems.push_back({.file = "run.yaml",
                        .place = "reward.function",
                        .found = "'" + options.reward + "'",
                        .expected = "a built-in rule",
                        .hint = did_you_mean(options.reward, known)});
  }
  if (problems.empty() && static_cast<std::int64_t>(prompts.size()) < options.per_step) {
    problems.push_back({.file = "run.yaml",
                        .place = "data.train_files",
                        .found = std::to_string(prompts.size()) + " prompts",
                        .expected = "at least the " + std::to_string(options.per_step) +
                                    " that one step of the plan takes"});
  }
  if (!problems.empty()) fail(std::move(problems));

  PromptSource source(static_cast<std::int64_t>(prompts.size()), options.per_step, options.seed,
                      options.shuffle);
  PromptSet set{std::move(*tokenizer), std::move(prompts), {}, source, *rule};
  for (const Prompt& prompt : set.prompts) {
    set.tokens.push_back(set.tokenizer.encode(render(prompt, format), true));
  }
  check_lengths(set, options.max_tokens, problems);
  if (!problems.empty()) fail(std::move(problems));
  return set;
}

std::vector<TokenPrompt> prompts_of_step(const PromptSet& set, std::int64_t k,
                                         std::int32_t samples) {
  std::vector<TokenPrompt> prompts;
  for (const std::int64_t index : set.source.step(k)) {
    prompts.push_back({.prompt_index = static_cast<std::int32_t>(prompts.size()),
                       .uid = std::to_string(index),
                       .tokens = set.tokens[index],
                       .samples = samples});
  }
  return prompts;
}

void score_by_rule(const PromptSet& set, std::int64_t k, Experience& experience) {
  const std::vector<std::int64_t> indices = set.source.step(k);
  for (Sequence& sequence : experience.sequences) {
    sequence.score = set.rule(set.tokenizer.decode(sequence.response),
                              set.prompts[indices[sequence.prompt_index]].ground_truth);
  }
}

SequenceText text_of(const PromptSet& set, std::int64_t k, const Sequence& sequence) {
  const std::vector<std::int64_t> indices = set.source.step(k);
  return {set.tokenizer.decode(sequence.prompt, false), set.tokenizer.decode(sequence.response),
          set.prompts[indices[sequence.prompt_index]].ground_truth};
}

}  // namespace tessera
