// Preferences as TRL's RewardTrainer takes them: JSON lines, or rows of Parquet, with a better and
// a worse answer.
//
// {"prompt": text or [{"role", "content"}...], "chosen": answer, "rejected": answer,
//  "margin": number}
// An answer is a text or a list with one message of the assistant's. Without a prompt, chosen and
// rejected are whole texts, or whole conversations that differ in their last message. Other keys
// are allowed. Torch-free plain values; read once at start, alike on every rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "executor/batching/batch.h"
#include "executor/data/prompts.h"

namespace tessera {

struct PreferencePair {
  std::vector<ChatMessage> prompt;  // a plain text is one message without a role; empty = none
  std::string chosen, rejected;
  double margin = 0;  // by which the better answer should score higher
  std::string place;  // in its file: "12", "row 12"
  bool operator==(const PreferencePair&) const = default;
};

/// Every line; nullopt when anything was appended to `problems` (place = line:column). Blank lines
/// are skipped; a file without a pair and answers that are equal are refused.
std::optional<std::vector<PreferencePair>> parse_preferences(std::string_view text,
                                                             const std::string& file,
                                                             Problems& problems);

/// The same of a file: of its rows where its name ends in ".parquet" (data/parquet_rows.h).
std::optional<std::vector<PreferencePair>> read_preferences(const std::filesystem::path& file,
                                                            Problems& problems);

/// Both sequences of a pair as the model is given them in a rollout: the prompt as a run tokenizes
/// it, the answer by itself, and the token that ends it. One token more stands behind each, which
/// nothing looks at: to a trainer it is the response, and the score is the value before it.
struct PairTokens {
  std::vector<std::int32_t> chosen, rejected;
  double margin = 0;
};

/// What becomes of a pair with a sequence that is too long: it is refused or left out, or its
/// prompt loses its beginning.
enum class OverlongPair : std::uint8_t { error, filter, truncate };
std::string_view name_of(OverlongPair what);
std::optional<OverlongPair> overlong_pair_from(std::string_view name);

struct PreferenceSetOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path model;  // folder of the tokenizer
  std::int64_t max_tokens = 0;  // of a sequence; 0 = no limit
  OverlongPair overlong = OverlongPair::error;
  std::int64_t vocabulary = 0;                 // ids that the model has; 0 = any
  std::optional<std::int64_t> end_token = {};  // where the folder has no generation_config.json
};

struct PreferenceSet {
  std::vector<PairTokens> pairs;
  std::vector<std::string> notes;  // for people: pairs left out or cut
  std::int32_t end = 0;            // the token that ends answers

  /// Chosen and rejected of each of these pairs, one after the other; views of this set.
  std::vector<TokenSequence> sequences(const std::vector<std::int64_t>& which) const;
  std::string digest() const;  // of all tokens and margins
};

/// Throws Error(bad_input) with every problem of every file.
PreferenceSet read_preference_set(const PreferenceSetOptions& options);

}  // namespace tessera
