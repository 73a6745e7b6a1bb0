// Digit tasks that a random tiny model learns in minutes: reverse, copy or sort n digits.
//
// A prompt is the task's letter, the digits and '=' ("r417="), its ground truth the answer ("714").
// The digits depend on (seed, task, n, split, index) only. The tokenizer of these tasks is a
// byte-level BPE of 16 tokens, one per character, that transformers loads too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "executor/data/prompts.h"

namespace tessera {

enum class DigitTask { reverse, copy, sort };
std::string_view name_of(DigitTask task);
std::optional<DigitTask> digit_task_from(std::string_view name);

/// The answer that the task makes of the digits.
std::string digit_answer(DigitTask task, std::string_view digits);

/// `count` prompts; `split` ("train", "test") names the file and keeps their digits apart in seed.
std::vector<Prompt> make_digit_prompts(DigitTask task, int digits, std::int64_t count,
                                       std::uint64_t seed, const std::string& split = "train");

/// Writes the problems as a JSONL file (whole or not at all).
bool make_data(DigitTask task, int digits, std::int64_t count, std::uint64_t seed,
               const std::string& split, const std::filesystem::path& file, Problems& problems);

/// Tokens of the digit tokenizer: '0'..'9' are 0..9, then padding, end, '=', 'c', 'r', 's'
/// (configs/models/tiny-qwen2-digits).
inline constexpr std::int32_t kDigitVocabulary = 16;
inline constexpr std::int32_t kDigitPadToken = 10;
inline constexpr std::int32_t kDigitEndToken = 11;

/// Its tokenizer.json and tokenizer_config.json.
std::string digit_tokenizer_json();
std::string digit_tokenizer_config_json();
bool write_digit_tokenizer(const std::filesystem::path& folder, Problems& problems);

}  // namespace tessera
