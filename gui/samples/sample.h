// SPDX-License-Identifier: GPL-3.0-or-later
// One line of a run's samples.jsonl: a prompt, what was answered, and what that was worth.
//
// A stranger's file: whatever is wrong with a line is a Problem. Lengths are tokens. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera::gui {

struct Sample {
  std::int64_t step = 0, prompt_index = 0, sample_index = 0;
  std::optional<double> reward;                           // nullopt: it was not finite
  std::int64_t prompt_tokens = -1, response_tokens = -1;  // -1: the line does not say
  bool finished = true;                                   // with an end token, not by the limit
  std::string prompt, response, truth;                    // UTF-8; any may be empty
  std::string searched;                                   // all three, their ASCII letters small
  // Tokens, the first kMostTokens of each; empty where the line has none. The logarithms (natural)
  // are of the response's tokens as the rollout drew them, NaN where one was not finite.
  std::vector<std::int32_t> prompt_ids, response_ids;
  std::vector<float> log_probs;
  std::optional<double> mean_log_prob;  // of all that are finite; nullopt: there are none

  /// Of its texts and tokens.
  std::size_t bytes() const {
    return prompt.size() + response.size() + truth.size() + searched.size() +
           4 * (prompt_ids.size() + response_ids.size() + log_probs.size());
  }
};

/// Of a text the beginning is kept, of this many bytes at most.
inline constexpr std::size_t kMostText = std::size_t{256} << 10;
/// Of a list of tokens, so many.
inline constexpr std::size_t kMostTokens = std::size_t{64} << 10;

/// One line without its newline; `place` begins the problems' places ("12", "byte 4096"). nullopt
/// when anything was appended. Keys that are not named above are passed over.
std::optional<Sample> parse_sample(std::string_view line, const std::string& file,
                                   const std::string& place, Problems& problems);

/// `text` with its ASCII letters small, as `searched` has them.
std::string small_letters(std::string_view text);

}  // namespace tessera::gui
