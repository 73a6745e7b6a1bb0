// Prompts for tests of generation, and what training's forward pass says of what was drawn.
//
// Functions of one rank.
#pragma once

#include "executor/tensor/torch.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/model/scores.h"
#include "executor/rollout/generate.h"

namespace tessera::testing {

inline std::vector<TokenPrompt> prompts(int count, int samples, const ModelSpec& spec) {
  std::vector<TokenPrompt> result;
  for (int i = 0; i < count; ++i) {
    TokenPrompt prompt{.prompt_index = i, .uid = "u" + std::to_string(i), .samples = samples};
    for (int t = 0; t < 2 + (29 * i) % 90; ++t) {
      prompt.tokens.push_back((7 * i + 3 * t + 1) % static_cast<int>(spec.vocab));
    }
    result.push_back(prompt);
  }
  return result;
}

/// Recomputes the log-prob of every drawn token by training's forward pass.
inline double largest_gap(const Weights& weights, const ParallelGroups& groups,
                          const std::vector<Sequence>& sequences, double temperature = 1) {
  double gap = 0;
  for (const Sequence& s : sequences) {
    std::vector<std::int64_t> text(s.prompt.begin(), s.prompt.end());
    text.insert(text.end(), s.response.begin(), s.response.end());
    const std::vector<std::vector<std::int64_t>> one = {text};
    const PackedTokens packed = pack_tokens(one, weights.device());
    const auto first = static_cast<std::int64_t>(s.prompt.size());
    const torch::Tensor hidden = stage_forward(weights, groups, packed).slice(0, first - 1, -1);
    const torch::Tensor log_prob = score_tokens(weights, groups, hidden, packed.ids.slice(0, first),
                                                {.temperature = temperature, .entropy = false})
                                       .log_prob.cpu()
                                       .contiguous();
    for (std::size_t t = 0; t < s.response.size(); ++t) {
      gap = std::max<double>(gap,
                             std::abs(log_prob.const_data_ptr<float>()[t] - s.rollout_log_prob[t]));
    }
  }
  return gap;
}

}  // namespace tessera::testing
