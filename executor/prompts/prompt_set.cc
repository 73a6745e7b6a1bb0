#include "executor/prompts/prompt_set.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "executor/checkpoint/checkpoint_digest.h"
#include "executor/data/model_tokens.h"
#include "executor/rollout/prompt_dealing.h"
#include "executor/templates/chat_template.h"

namespace tessera {
namespace {

constexpr std::size_t kMostTemplateProblems = 5;

[[noreturn]] void fail(Problems problems) { throw Error(ExitCode::bad_input, std::move(problems)); }

/// The prompts of all files, and of each one how many.
struct FilePrompts {
  std::vector<Prompt> prompts;
  std::vector<std::filesystem::path> files;
  std::vector<std::int64_t> counts;
  std::vector<std::vector<std::int32_t>> tokens;

  /// The file of prompt `i`.
  const std::filesystem::path& file_of(std::size_t i) const {
    std::size_t file = 0;
    for (auto end = static_cast<std::size_t>(counts[0]); i >= end;) {
      end += static_cast<std::size_t>(counts[++file]);
    }
    return files[file];
  }
};

FilePrompts read_all(const PromptSetOptions& options, Problems& problems) {
  FilePrompts all;
  for (const std::filesystem::path& file : options.files) {
    std::error_code error;
    if (!std::filesystem::exists(file, error)) {
      problems.push_back({.file = options.rewards.programs.run_file,
                          .place = options.key,
                          .found = "'" + file.string() + "', no such file",
                          .expected = "a file of JSON lines, or of Parquet that ends in .parquet"});
      continue;
    }
    std::optional<std::vector<Prompt>> prompts = read_prompts(file, problems);
    if (!prompts) continue;
    all.files.push_back(file);
    all.counts.push_back(static_cast<std::int64_t>(prompts->size()));
    std::move(prompts->begin(), prompts->end(), std::back_inserter(all.prompts));
  }
  return all;
}

/// Leaves the first `most` prompts of all files, or all where it is below 0.
void keep_first(std::int64_t most, FilePrompts& all) {
  if (most < 0) return;
  for (std::int64_t& count : all.counts) {
    count = std::min(count, most);
    most -= count;
  }
  const auto left = std::accumulate(all.counts.begin(), all.counts.end(), std::int64_t{0});
  all.prompts.resize(static_cast<std::size_t>(left));
}

JinjaValue::Map chat_variables(const std::string& json) {
  Problems problems;
  const auto document = parse_json(json, "data.apply_chat_template_kwargs", problems);
  if (!document) fail(std::move(problems));
  return *jinja_of(document->root).map;
}

/// Tokens of every prompt. A prompt of messages is what the chat template makes of them, special
/// tokens included; a plain text has those that the tokenizer adds.
void tokenize(const PromptSetOptions& options, const Tokenizer& tokenizer, const ChatTemplate& chat,
              FilePrompts& all, Problems& problems) {
  const JinjaValue::Map variables = chat_variables(options.chat_options);
  const std::size_t before = problems.size();
  const auto refuse = [&](std::size_t i, std::string found, const char* expected) {
    const std::filesystem::path& file = all.file_of(i);
    problems.push_back({.file = file.string(),
                        .place = place_of(all.prompts[i], file) + " (/prompt)",
                        .found = std::move(found),
                        .expected = expected});
  };
  for (std::size_t i = 0; i < all.prompts.size(); ++i) {
    all.tokens.emplace_back();
    const std::vector<ChatMessage>& messages = all.prompts[i].messages;
    if (problems.size() >= before + kMostTemplateProblems) continue;
    if (messages.size() == 1 && messages[0].role.empty()) {
      all.tokens.back() = tokenizer.encode(messages[0].content, true);
    } else if (chat.empty()) {
      return refuse(i, "messages", "plain texts: the model's folder has no chat template");
    } else {
      try {
        all.tokens.back() = tokenizer.encode(chat.render(messages, variables), false);
      } catch (const TemplateError& error) {
        refuse(i, std::string("the chat template says: ") + error.what(),
               "messages that the model's chat template takes");
      }
    }
    if (all.tokens.back().empty()) refuse(i, "0 tokens", "at least one");
  }
}

/// verl puts the pictures of a prompt's `images` and `videos` in the places of these words.
bool has_pictures(const Prompt& prompt) {
  return std::ranges::any_of(prompt.messages, [](const ChatMessage& message) {
    return message.content.find("<image>") != std::string::npos ||
           message.content.find("<video>") != std::string::npos;
  });
}

void note_pictures(const FilePrompts& all, std::vector<std::string>& notes) {
  const auto count = std::ranges::count_if(all.prompts, has_pictures);
  if (count == 0) return;
  notes.push_back("[Data] " + std::to_string(count) + " of " + std::to_string(all.prompts.size()) +
                  " prompts have places for pictures (<image>, <video>): they are texts here, and "
                  "no picture is read");
}

/// As verl's postprocess_data cuts: the end, the beginning, or the two halves.
void cut(std::vector<std::int32_t>& tokens, std::size_t most, Truncation truncation) {
  const auto size = static_cast<std::ptrdiff_t>(tokens.size()),
             limit = static_cast<std::ptrdiff_t>(most);
  std::ptrdiff_t from = limit;  // what is taken away begins here
  if (truncation == Truncation::left) from = 0;
  if (truncation == Truncation::middle) from = limit / 2;
  tokens.erase(tokens.begin() + from, tokens.begin() + from + (size - limit));
}

/// Leaves out, cuts or refuses prompts that are longer than the plan allows.
void limit_lengths(const PromptSetOptions& options, FilePrompts& all,
                   std::vector<std::string>& notes, Problems& problems) {
  if (options.max_tokens == 0) return;
  const auto most = static_cast<std::size_t>(options.max_tokens);
  std::size_t longer = 0, longest = 0, first = 0, kept = 0, at = 0;
  const std::size_t before = all.tokens.size();
  for (std::int64_t& count : all.counts) {
    const auto end = at + static_cast<std::size_t>(count);
    for (; at < end; ++at) {
      const std::size_t length = all.tokens[at].size();
      if (length > most && longer++ == 0) first = at;
      longest = std::max(longest, length);
      if (length > most && options.filter_overlong) {
        --count;
        continue;
      }
      if (length > most && options.truncation != Truncation::error) {
        cut(all.tokens[at], most, options.truncation);
      }
      if (kept != at) {
        all.tokens[kept] = std::move(all.tokens[at]);
        all.prompts[kept] = std::move(all.prompts[at]);
      }
      ++kept;
    }
  }
  all.tokens.resize(kept);
  all.prompts.resize(kept);
  if (longer == 0) return;
  const std::string told = std::to_string(longer) + " of " + std::to_string(before) +
                           " prompts have more than " + std::to_string(most) +
                           " tokens (the longest " + std::to_string(longest) + ")";
  if (options.filter_overlong || options.truncation != Truncation::error) {
    notes.push_back("[Data] " + told + ": " +
                    (options.filter_overlong
                         ? "left out"
                         : "cut (" + std::string(name_of(options.truncation)) + ")"));
    return;
  }
  const std::filesystem::path& file = all.file_of(first);  // none has been left out
  problems.push_back({.file = file.string(),
                      .place = place_of(all.prompts[first], file) + " (/prompt)",
                      .found = told,
                      .expected = "1 to " + std::to_string(most) +
                                  ", the run's data.max_prompt_length (the plan's unless stated)",
                      .hint = "data.filter_overlong_prompts: true leaves them out, "
                              "data.truncation: left cuts them"});
}

/// The run's functions and those of the reward keys; a Problem for a key that names none.
void add_rewards(const PromptSetOptions& options, PromptSet& set, Problems& problems) {
  set.rewards = options.rewards.functions;
  for (const std::string& name : options.components) {
    const auto found = std::ranges::find(set.rewards, name, &RewardFunction::name);
    set.components.push_back(static_cast<std::size_t>(found - set.rewards.begin()));
    if (found != set.rewards.end()) continue;
    const RewardRule* rule = reward_rule(name);
    if (rule != nullptr) {
      set.rewards.push_back({.name = name, .weight = 0, .rule = rule});
      continue;
    }
    const std::vector<std::string> known = reward_rule_names();
    problems.push_back({.file = options.rewards.programs.run_file,
                        .place = "algorithm.gdpo_reward_keys",
                        .found = "'" + name + "'",
                        .expected = "a built-in rule, or a name in reward.functions",
                        .hint = did_you_mean(name, known)});
  }
}

/// Every data source has a score by every rule.
void check_sources(const PromptSetOptions& options, const PromptSet& set, Problems& problems) {
  std::set<std::string> sources;
  for (const Prompt& prompt : set.prompts) sources.insert(prompt.data_source);
  for (const RewardFunction& function : set.rewards) {
    for (const std::string& source : sources) {
      if (function.rule == nullptr || function.rule->knows(source)) continue;
      problems.push_back({.file = options.rewards.programs.run_file,
                          .place = "reward.function",
                          .found = function.name + ", which knows no data source '" + source + "'",
                          .expected = "a rule by name, or a Python file"});
    }
  }
}

/// Where generation_config.json names no end: the model's, as transformers does, or the
/// tokenizer's, as vLLM does.
void add_end_token(const PromptSetOptions& options, const Tokenizer& tokenizer,
                   std::vector<std::int32_t>& ends, Problems& problems) {
  if (!ends.empty()) return;
  if (options.end_token) {
    ends.push_back(static_cast<std::int32_t>(*options.end_token));
    return;
  }
  const std::string token = end_token_of_tokenizer(options.model, problems);
  const auto id = token.empty() ? std::nullopt : tokenizer.id_of(token);
  if (id && (options.vocabulary == 0 || *id < options.vocabulary)) ends.push_back(*id);
}

PromptSource source_of(const PromptSetOptions& options, const FilePrompts& all) {
  const auto prompts = static_cast<std::int64_t>(all.prompts.size());
  if (options.weights.empty()) {
    return {prompts, options.per_step, options.seed, options.shuffle};
  }
  return {all.counts, options.weights, options.per_step, options.seed, options.shuffle};
}

/// A step finds its prompts, and every file with a weight has some.
void check_counts(const PromptSetOptions& options, const FilePrompts& all,
                  const std::vector<std::string>& notes, Problems& problems) {
  const auto prompts = static_cast<std::int64_t>(all.prompts.size());
  const auto refuse = [&](std::string found, std::string expected) {
    problems.push_back({.file = options.rewards.programs.run_file,
                        .place = options.key,
                        .found = std::move(found),
                        .expected = std::move(expected),
                        .hint = notes.empty() ? "" : notes.front()});
  };
  if (options.weights.empty() && prompts < options.per_step) {
    refuse(std::to_string(prompts) + " prompts",
           options.per_step == 1 ? "one at least"
                                 : "at least the " + std::to_string(options.per_step) +
                                       " that one step of the plan takes");
  }
  for (std::size_t f = 0; f < options.weights.size(); ++f) {
    if (all.counts[f] == 0) {
      refuse("no prompt of " + options.files[f].string() + " that is short enough",
             "a prompt in every file that has a weight");
    }
  }
}

}  // namespace

PromptSet read_prompt_set(const PromptSetOptions& options) {
  Problems problems;
  std::optional<Tokenizer> tokenizer = Tokenizer::open(options.model, problems);
  const std::optional<ChatTemplate> chat = ChatTemplate::open(options.model, problems);
  FilePrompts all = read_all(options, problems);
  keep_first(options.most, all);
  std::vector<std::int32_t> ends = end_tokens(options.model, problems);
  std::vector<std::string> notes;
  if (problems.empty()) tokenize(options, *tokenizer, *chat, all, problems);
  if (problems.empty()) limit_lengths(options, all, notes, problems);
  if (problems.empty()) check_counts(options, all, notes, problems);
  note_pictures(all, notes);
  if (problems.empty() && options.vocabulary > 0) {
    const auto place = [&](std::size_t i) {
      return all.file_of(i).string() + ":" + place_of(all.prompts[i], all.file_of(i));
    };
    check_vocabulary(all.tokens, ends, options.vocabulary, options.model, place, problems);
  }
  if (problems.empty()) add_end_token(options, *tokenizer, ends, problems);
  if (!problems.empty()) fail(std::move(problems));
  PromptSet set{.tokenizer = std::move(*tokenizer),
                .prompts = {},
                .tokens = {},
                .source = source_of(options, all),
                .rewards = {},
                .components = {},
                .end_tokens = std::move(ends),
                .notes = std::move(notes)};
  set.prompts = std::move(all.prompts);
  set.tokens = std::move(all.tokens);
  add_rewards(options, set, problems);
  check_sources(options, set, problems);
  if (!problems.empty()) fail(std::move(problems));
  return set;
}

CheckpointData data_of(const PromptSet& set) {
  std::string all;
  for (std::size_t i = 0; i < set.prompts.size(); ++i) {
    const std::vector<std::int32_t>& tokens = set.tokens[i];
    all.append(reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof tokens[0]);
    all.append(set.prompts[i].ground_truth).push_back('\0');
  }
  return {.prompts = set.source.prompts(),
          .per_step = set.source.per_step(),
          .seed = static_cast<std::int64_t>(set.source.seed()),
          .first = set.source.begin(),
          .shuffle = set.source.shuffled(),
          .digest = checkpoint_digest(std::as_bytes(std::span(all)))};
}

std::vector<TokenPrompt> prompts_at(const PromptSet& set, std::int64_t first, std::int64_t count,
                                    std::int32_t samples, std::int32_t numbered) {
  std::vector<TokenPrompt> prompts;
  std::set<std::int64_t> drawn;
  for (const std::int64_t index : set.source.at(first, count)) {
    const auto number = numbered + static_cast<std::int32_t>(prompts.size());
    // A step may come upon a prompt twice, where it takes more than its prompts or files have
    // weights: two groups.
    const bool once = numbered == 0 && drawn.insert(index).second;
    const std::string again = once ? "" : "." + std::to_string(number);
    prompts.push_back({.prompt_index = number,
                       .uid = std::to_string(index) + again,
                       .tokens = set.tokens[index],
                       .samples = samples});
  }
  return prompts;
}

const Prompt& prompt_of(const PromptSet& set, const Sequence& sequence) {
  return set.prompts.at(static_cast<std::size_t>(row_of(sequence.uid)));
}

SequenceText text_of(const PromptSet& set, const Sequence& sequence) {
  return {set.tokenizer.decode(sequence.prompt, false), set.tokenizer.decode(sequence.response),
          prompt_of(set, sequence).ground_truth};
}

}  // namespace tessera
