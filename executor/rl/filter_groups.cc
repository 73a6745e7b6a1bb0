#include "executor/rl/filter_groups.h"

#include <algorithm>

namespace tessera {

bool has_signal(View scores) {
  return scores.size() < 2 || std::any_of(scores.begin(), scores.end(),
                                          [&](double score) { return score != scores.front(); });
}

std::int64_t PromptCredit::take() {
  const std::int64_t prompts = std::min(credit_, most_);
  credit_ -= prompts;
  return prompts;
}

}  // namespace tessera
