// Prompts of reinforcement learning: JSON lines with verl's five fields, and which of them a step
// takes.
//
// {"data_source": text, "prompt": text or [{"role", "content"}...], "ability": text,
//  "reward_model": {"style": text, "ground_truth": text}, "extra_info": {"split", "index", ...}}
// (verl docs/preparation/prepare_data.rst). Plain values; reading and choosing have no state.
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
  bool operator==(const ChatMessage&) const = default;
};

struct Prompt {
  std::string data_source;
  std::vector<ChatMessage> messages;  // a plain string is one message with an empty role
  std::string ability;
  std::string reward_style;
  std::string ground_truth;
  std::string split;
  std::int64_t index = 0;

  bool operator==(const Prompt&) const = default;
};

/// Every line of a JSONL file; nullopt when anything was appended to `problems` (place =
/// line:column). Blank lines are skipped, a file without a prompt is refused, keys beside the five
/// are allowed as in verl.
std::optional<std::vector<Prompt>> read_prompts(const std::filesystem::path& file,
                                                Problems& problems);
std::optional<std::vector<Prompt>> parse_prompts(std::string_view text, const std::string& file,
                                                 Problems& problems);

/// One line, without the newline; reads back as the same value.
std::string to_json_line(const Prompt& prompt);

/// How messages become text. With `chat_ml` every message is
/// "<|im_start|>ROLE\nCONTENT<|im_end|>\n", preceded by the template's own system message where the
/// first message is none, and followed by "<|im_start|>assistant\n". Otherwise the contents are
/// concatenated. A prompt that is a plain string is taken as it is.
struct ChatFormat {
  bool chat_ml = false;
  std::string default_system;  // empty = none
};

/// From `folder`/tokenizer_config.json or chat_template.jinja: ChatML where the template holds
/// "<|im_start|>". Templates are searched, never executed.
ChatFormat chat_format(const std::filesystem::path& folder, Problems& problems);
ChatFormat chat_format_of(std::string_view chat_template);

std::string render(const Prompt& prompt, const ChatFormat& format);

/// Which prompts the steps take: epoch after epoch, each in an order of its own that depends on the
/// seed and the epoch only, so that every rank and every resumed run agrees. As in verl the rest of
/// an epoch that does not fill a step is dropped.
class PromptSource {
 public:
  /// Precondition: 0 < per_step <= prompts.
  PromptSource(std::int64_t prompts, std::int64_t per_step, std::uint64_t seed,
               bool shuffle = true);

  std::int64_t steps_per_epoch() const { return prompts_ / per_step_; }
  /// Indices of the prompts of step k (from 0), where every step takes per_step.
  std::vector<std::int64_t> step(std::int64_t k) const { return at(k * per_step_, per_step_); }
  /// Indices of `count` prompts from position `first` (from 0) of all epochs, one after another.
  std::vector<std::int64_t> at(std::int64_t first, std::int64_t count) const;

 private:
  std::vector<std::int64_t> order_of(std::int64_t epoch) const;

  std::int64_t prompts_, per_step_;
  std::uint64_t seed_;
  bool shuffle_;
};

}  // namespace tessera
