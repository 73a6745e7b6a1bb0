// Preferences as tokens: a model's tokenizer and chat template, and its longest sequence.
#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "executor/checkpoint/checkpoint_digest.h"
#include "executor/checkpoint/run_checkpoint.h"
#include "executor/data/model_tokens.h"
#include "executor/data/tokenizer.h"
#include "executor/preference/pairs.h"
#include "executor/templates/chat_template.h"

namespace tessera {
namespace {

constexpr std::size_t kMostProblems = 100;

struct ModelText {
  Tokenizer tokenizer;
  ChatTemplate chat;
  std::vector<std::int32_t> ends;  // the one behind an answer first
};

/// The one of `ends` with which the chat template ends an answer (Llama 3's <|eot_id|>, which is
/// the last of its three); the first of them where there is no template or it writes none.
std::int32_t answer_end(const Tokenizer& tokenizer, const ChatTemplate& chat,
                        const std::vector<std::int32_t>& ends) {
  constexpr std::string_view kAnswer = "forty-two";
  if (chat.empty()) return ends.front();
  try {
    const std::string text =
        chat.render(std::vector<ChatMessage>{{"user", "?"}, {"assistant", std::string(kAnswer)}});
    const std::size_t at = text.rfind(kAnswer);
    if (at == text.npos) return ends.front();
    for (const std::int32_t id : tokenizer.encode(text.substr(at + kAnswer.size()), false)) {
      if (std::ranges::count(ends, id) > 0) return id;
    }
  } catch (const TemplateError&) {  // it takes no such conversation
  }
  return ends.front();
}

ModelText read_model(const PreferenceSetOptions& options, Problems& problems) {
  auto tokenizer = Tokenizer::open(options.model, problems);
  auto chat = ChatTemplate::open(options.model, problems);
  std::vector<std::int32_t> ends = end_tokens(options.model, problems);
  if (ends.empty() && options.end_token) {
    ends.push_back(static_cast<std::int32_t>(*options.end_token));
  }
  if (problems.empty() && ends.empty()) {
    problems.push_back({.file = options.model.string(),
                        .found = "no eos_token_id",
                        .expected = "one in config.json or generation_config.json, which ends "
                                    "the answers that are scored"});
  }
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  const auto end = std::ranges::find(ends, answer_end(*tokenizer, *chat, ends));
  std::rotate(ends.begin(), end, end + 1);
  return {*std::move(tokenizer), *std::move(chat), std::move(ends)};
}

/// Makes tokens of the pairs of one file, and holds them to the longest sequence.
class PairReader {
 public:
  PairReader(const PreferenceSetOptions& options, const ModelText& model, std::string file,
             Problems& problems)
      : options_(options), model_(model), file_(std::move(file)), problems_(problems) {}

  void add(const PreferencePair& pair, PreferenceSet& set) {
    ++read_;
    std::vector<std::int32_t> before = prompt(pair);
    const auto chosen = answer(pair, pair.chosen), rejected = answer(pair, pair.rejected);
    const std::size_t answers = std::max(chosen.size(), rejected.size());
    const std::size_t length = before.size() + answers;
    const auto most = static_cast<std::size_t>(options_.max_tokens);
    if (most > 0 && length > most) {
      ++longer_, longest_ = std::max(longest_, length);
      if (options_.overlong == OverlongPair::filter) return;
      if (options_.overlong == OverlongPair::error || answers >= most) {
        return refuse(pair,
                      std::to_string(length) + " tokens, " + std::to_string(answers) +
                          " of them the longer answer",
                      longest_allowed());
      }
      before.erase(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(length - most));
    }
    set.pairs.push_back({.chosen = whole(before, chosen),
                         .rejected = whole(before, rejected),
                         .margin = pair.margin});
  }

  void note(PreferenceSet& set) const {
    if (longer_ == 0) return;
    set.notes.push_back(
        "[Data] " + file_ + ": " + std::to_string(longer_) + " of " + std::to_string(read_) +
        " pairs have more than " + std::to_string(options_.max_tokens) + " tokens (the longest " +
        std::to_string(longest_) +
        "): " + (options_.overlong == OverlongPair::filter ? "left out" : "their prompts are cut"));
  }

 private:
  void refuse(const PreferencePair& pair, std::string found, std::string expected) {
    problems_.push_back({.file = file_,
                         .place = pair.place,
                         .found = std::move(found),
                         .expected = std::move(expected)});
  }

  std::string longest_allowed() const {
    const std::string most = std::to_string(options_.max_tokens);
    return options_.overlong == OverlongPair::error
               ? "at most " + most +
                     " (--max-tokens); --overlong filter leaves such pairs out, truncate cuts "
                     "their prompts"
               : "an answer of fewer than " + most + " tokens behind its prompt (--max-tokens)";
  }

  std::vector<std::int32_t> whole(std::vector<std::int32_t> prompt,
                                  const std::vector<std::int32_t>& answer) const {
    prompt.insert(prompt.end(), answer.begin(), answer.end());
    prompt.push_back(model_.ends.front());
    return prompt;
  }

  static bool plain(const PreferencePair& pair) {
    return pair.prompt.size() == 1 && pair.prompt[0].role.empty();
  }

  std::vector<std::int32_t> prompt(const PreferencePair& pair) {
    if (pair.prompt.empty()) return {};
    if (plain(pair)) return model_.tokenizer.encode(pair.prompt[0].content, true);
    if (model_.chat.empty()) {
      refuse(pair, "messages", "plain texts: the model's folder has no chat template");
      return {};
    }
    try {
      return model_.tokenizer.encode(model_.chat.render(pair.prompt), false);
    } catch (const TemplateError& error) {
      refuse(pair, std::string("the chat template says: ") + error.what(),
             "messages that the model's chat template takes");
      return {};
    }
  }

  /// Ends with one of the tokens that end a response.
  std::vector<std::int32_t> answer(const PreferencePair& pair, const std::string& text) const {
    auto tokens = model_.tokenizer.encode(text, pair.prompt.empty());
    const bool ended = !tokens.empty() && std::ranges::count(model_.ends, tokens.back()) > 0;
    if (!ended) tokens.push_back(model_.ends.front());
    return tokens;
  }

  const PreferenceSetOptions& options_;
  const ModelText& model_;
  std::string file_;
  Problems& problems_;
  std::size_t read_ = 0, longer_ = 0, longest_ = 0;
};

}  // namespace

std::string PreferenceSet::digest() const {
  std::vector<std::int32_t> all;
  for (const PairTokens& pair : pairs) {
    for (const auto* part : {&pair.chosen, &pair.rejected}) {
      all.push_back(static_cast<std::int32_t>(part->size()));
      all.insert(all.end(), part->begin(), part->end());
    }
    std::int32_t words[2];
    std::memcpy(words, &pair.margin, sizeof words);
    all.insert(all.end(), words, words + 2);
  }
  return checkpoint_digest(std::as_bytes(std::span<const std::int32_t>(all)));
}

PreferenceSet read_preference_set(const PreferenceSetOptions& options) {
  Problems problems;
  const ModelText model = read_model(options, problems);
  PreferenceSet set;
  set.end = model.ends.front();
  std::vector<std::string> places;  // of the set's pairs
  for (const std::filesystem::path& file : options.files) {
    const auto pairs = read_preferences(file, problems);
    if (!pairs) continue;
    PairReader reader(options, model, file.string(), problems);
    for (const PreferencePair& pair : *pairs) {
      if (problems.size() < kMostProblems) reader.add(pair, set);
      if (places.size() < set.pairs.size()) places.push_back(file.string() + ":" + pair.place);
    }
    reader.note(set);
  }
  if (problems.empty() && set.pairs.empty()) {
    problems.push_back({.file = options.files.front().string(),
                        .found = "no pair that is short enough",
                        .expected = "one at least"});
  }
  if (problems.empty() && options.vocabulary > 0) {
    std::vector<std::vector<std::int32_t>> used;
    for (const PairTokens& pair : set.pairs) {
      for (const auto* part : {&pair.chosen, &pair.rejected}) used.push_back(*part);
    }
    const auto place = [&](std::size_t i) { return places[i / 2]; };
    check_vocabulary(used, model.ends, options.vocabulary, options.model, place, problems);
  }
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  return set;
}

}  // namespace tessera
