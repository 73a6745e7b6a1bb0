#include "executor/loop/prompt_set.h"

#include <charconv>
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

/// The rule of a name; a Problem of `key` where there is none.
std::optional<RewardRule> rule_named(const std::string& name, const char* key, Problems& problems) {
  std::optional<RewardRule> rule = reward_rule(name);
  if (!rule) {
    const std::vector<std::string> known = reward_rule_names();
    problems.push_back({.file = "run.yaml",
                        .place = key,
                        .found = "'" + name + "'",
                        .expected = "a built-in rule",
                        .hint = did_you_mean(name, known)});
  }
  return rule;
}

/// A uid begins with the index of its prompt.
const Prompt& prompt_of(const PromptSet& set, const Sequence& sequence) {
  std::size_t index = 0;
  std::from_chars(sequence.uid.data(), sequence.uid.data() + sequence.uid.size(), index);
  return set.prompts.at(index);
}

}  // namespace

PromptSet read_prompt_set(const PromptSetOptions& options) {
  Problems problems;
  std::optional<Tokenizer> tokenizer = Tokenizer::open(options.model, problems);
  const ChatFormat format = chat_format(options.model, problems);
  std::vector<Prompt> prompts = read_all(options.files, problems);
  const auto rule = rule_named(options.reward, "reward.function", problems);
  std::vector<RewardRule> components;
  for (const std::string& name : options.components) {
    const auto component = rule_named(name, "algorithm.gdpo_reward_keys", problems);
    if (component) components.push_back(*component);
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
  PromptSet set{std::move(*tokenizer), std::move(prompts), {}, source, *rule,
                std::move(components)};
  for (const Prompt& prompt : set.prompts) {
    set.tokens.push_back(set.tokenizer.encode(render(prompt, format), true));
  }
  check_lengths(set, options.max_tokens, problems);
  if (!problems.empty()) fail(std::move(problems));
  return set;
}

std::vector<TokenPrompt> prompts_at(const PromptSet& set, std::int64_t first, std::int64_t count,
                                    std::int32_t samples, std::int32_t numbered) {
  std::vector<TokenPrompt> prompts;
  for (const std::int64_t index : set.source.at(first, count)) {
    const auto number = numbered + static_cast<std::int32_t>(prompts.size());
    // A step that takes more than its prompts may come upon one twice: two groups.
    const std::string again = numbered == 0 ? "" : "." + std::to_string(number);
    prompts.push_back({.prompt_index = number,
                       .uid = std::to_string(index) + again,
                       .tokens = set.tokens[index],
                       .samples = samples});
  }
  return prompts;
}

void score_by_rule(const PromptSet& set, std::span<Sequence> sequences) {
  for (Sequence& sequence : sequences) {
    const std::string response = set.tokenizer.decode(sequence.response);
    const std::string& truth = prompt_of(set, sequence).ground_truth;
    sequence.score = set.rule(response, truth);
    sequence.components.clear();
    for (const RewardRule& rule : set.component_rules) {
      sequence.components.push_back(rule(response, truth));
    }
  }
}

SequenceText text_of(const PromptSet& set, const Sequence& sequence) {
  return {set.tokenizer.decode(sequence.prompt, false), set.tokenizer.decode(sequence.response),
          prompt_of(set, sequence).ground_truth};
}

}  // namespace tessera
