#include "simulator/engine/micro_batches.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "cost_models/spec/problem.h"

namespace tessera {
namespace {

using Lengths = std::vector<std::int64_t>;

struct Part {
  std::int64_t tokens = 0;
  Lengths responses;
};

// `responses` in descending order; no part takes more than `most` sequences.
std::vector<Part> longest_first(const Lengths& responses, std::int64_t prompt, int parts,
                                std::size_t most) {
  std::vector<Part> result(static_cast<std::size_t>(parts));
  using Load = std::pair<std::int64_t, std::size_t>;  // (tokens, part)
  std::priority_queue<Load, std::vector<Load>, std::greater<>> open;
  for (std::size_t i = 0; i < result.size(); ++i) open.emplace(0, i);
  for (const std::int64_t response : responses) {
    TESSERA_CHECK(!open.empty());
    const std::size_t least = open.top().second;
    open.pop();
    Part& part = result[least];
    part.tokens += prompt + response;
    part.responses.push_back(response);
    if (part.responses.size() < most) open.emplace(part.tokens, least);
  }
  return result;
}

bool within_limit(const std::vector<Part>& parts, std::int64_t limit) {
  return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
    return part.responses.size() <= 1 || part.tokens <= limit;
  });
}

// At least `count` micro-batches (never more than sequences).
std::vector<Part> pack(const Part& replica, std::int64_t prompt, std::int64_t limit, int count) {
  const auto sequences = static_cast<int>(replica.responses.size());
  if (sequences == 0) return {};
  if (limit > 0) {
    count = std::max<int>(count, static_cast<int>((replica.tokens + limit - 1) / limit));
  }
  count = std::min(count, sequences);
  const std::size_t any = replica.responses.size();
  std::vector<Part> parts = longest_first(replica.responses, prompt, count, any);
  while (limit > 0 && count < sequences && !within_limit(parts, limit)) {
    parts = longest_first(replica.responses, prompt, ++count, any);
  }
  return parts;
}

MicroBatch micro_batch_of(const Part& part, std::int64_t prompt) {
  MicroBatch result;
  result.batch.sequences = static_cast<double>(part.responses.size());
  for (const std::int64_t response : part.responses) {
    const auto length = static_cast<double>(prompt + response);
    result.batch.tokens += length;
    result.batch.squared += length * length;
    result.responses += static_cast<double>(response);
  }
  return result;
}

}  // namespace

std::vector<std::vector<MicroBatch>> pack_micro_batches(
    std::span<const std::int64_t> response_tokens, std::int64_t prompt_tokens, int replicas,
    std::int64_t token_limit) {
  TESSERA_CHECK(replicas > 0);
  Lengths sorted(response_tokens.begin(), response_tokens.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const auto parts = static_cast<std::size_t>(replicas);
  const std::vector<Part> shares =
      longest_first(sorted, prompt_tokens, replicas, (sorted.size() + parts - 1) / parts);
  int count = 1;
  std::vector<std::vector<Part>> packed(parts);
  // The second pass gives every replica as many micro-batches as the one that needs most.
  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t r = 0; r < parts; ++r) {
      packed[r] = pack(shares[r], prompt_tokens, token_limit, count);
      count = std::max(count, static_cast<int>(packed[r].size()));
    }
  }
  std::vector<std::vector<MicroBatch>> result(parts);
  for (std::size_t r = 0; r < parts; ++r) {
    for (const Part& part : packed[r]) result[r].push_back(micro_batch_of(part, prompt_tokens));
  }
  return result;
}

}  // namespace tessera
