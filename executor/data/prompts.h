// Prompts of reinforcement learning: JSON lines, a JSON array or Parquet with verl's five fields,
// and which of them a step takes.
//
// {"data_source": text, "prompt": text or [{"role", "content"}...], "ability": text,
//  "reward_model": {"style": text, "ground_truth": any}, "extra_info": {...}}
// (verl docs/preparation/prepare_data.rst). ability, style and extra_info may be absent, as verl
// reads none of them itself. Plain values; reading and choosing have no state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

struct ChatMessage {
  std::string role, content;
  /// JSON of the whole message, without what is null, where it has other members; empty: it has
  /// none.
  std::string object;
  bool operator==(const ChatMessage&) const = default;
};

struct Prompt {
  std::string data_source;
  std::vector<ChatMessage> messages;  // a plain string is one message with an empty role
  std::string ability;
  std::string reward_style;
  /// As rules compare with it: a text as it is, anything else as JSON.
  std::string ground_truth;
  std::string extra_info = "{}";  // a JSON object, which reward programs are given
  bool truth_is_text = true;
  std::int64_t line = 0;  // at which it begins (JSON), or its row (Parquet), from 1; 0 = of no file

  /// The same prompt, wherever it stands.
  bool operator==(const Prompt& other) const;
};

/// Where a prompt of `file` stands, as messages say it: "12", "row 12".
std::string place_of(const Prompt& prompt, const std::filesystem::path& file);

/// Every line of a JSONL file, every object of a file that is one JSON array, or every row of a
/// file that ends in .parquet; nullopt when anything was appended to `problems` (place =
/// line:column, or the row). Blank lines are skipped, a file without a prompt is refused, keys
/// beside the five are allowed as in verl.
std::optional<std::vector<Prompt>> read_prompts(const std::filesystem::path& file,
                                                Problems& problems);
std::optional<std::vector<Prompt>> parse_prompts(std::string_view text, const std::string& file,
                                                 Problems& problems);

/// The JSON of the truth, as reward programs are given it.
std::string truth_json(const Prompt& prompt);

/// One line, without the newline; reads back as the same value.
std::string to_json_line(const Prompt& prompt);

/// What becomes of a prompt that is too long: refused, or cut at its beginning (left), its end
/// (right) or in the middle, as verl's `truncation`.
enum class Truncation : std::uint8_t { error, left, right, middle };
std::string_view name_of(Truncation truncation);

/// Which prompts the steps take: epoch after epoch, each in an order of its own that depends on the
/// seed and the epoch only, so that every rank and every resumed run agrees. As in verl the rest of
/// an epoch that does not fill a step is dropped.
class PromptSource {
 public:
  /// Precondition: 0 < per_step <= prompts.
  PromptSource(std::int64_t prompts, std::int64_t per_step, std::uint64_t seed,
               bool shuffle = true);
  /// Of several files, `counts` prompts each, one file's after the other's: of any 1,000 prompts in
  /// a row each file gives its share of the weights, and each goes through epochs of its own.
  /// Preconditions: one weight above 0 for each count above 0.
  PromptSource(std::vector<std::int64_t> counts, const std::vector<double>& weights,
               std::int64_t per_step, std::uint64_t seed, bool shuffle = true);

  /// Position 0 is from now on what `position` was: earlier prompts have been trained on.
  void begin_at(std::int64_t position) { begin_ += position; }
  /// What position 0 would be without that.
  std::int64_t begin() const { return begin_; }
  std::int64_t prompts() const { return prompts_; }
  std::int64_t per_step() const { return per_step_; }
  std::uint64_t seed() const { return seed_; }
  bool shuffled() const { return shuffle_; }
  std::int64_t steps_per_epoch() const { return prompts_ / per_step_; }
  /// Indices of the prompts of step k (from 0), where every step takes per_step.
  std::vector<std::int64_t> step(std::int64_t k) const { return at(k * per_step_, per_step_); }
  /// Indices of `count` prompts from position `first` (from 0) of all epochs, one after another.
  std::vector<std::int64_t> at(std::int64_t first, std::int64_t count) const;

 private:
  std::vector<std::int64_t> mixed(std::int64_t first, std::int64_t count) const;

  std::int64_t prompts_, per_step_, begin_ = 0;
  std::uint64_t seed_;
  bool shuffle_;
  std::vector<std::int64_t> counts_;  // by file; empty = one set of prompts
  std::vector<std::uint16_t> turns_;  // the files of 1,000 prompts in a row
};

}  // namespace tessera
