#include "simulator/engine/micro_batches.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

MicroBatch micro_batch_of(const PackedPart& part, std::int64_t prompt) {
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

// A replica's sequences, no more than `sequences` in a micro-batch.
std::vector<PackedPart> counted(const PackedPart& replica, std::int64_t prompt,
                                std::int64_t sequences) {
  const std::int64_t count = (std::ssize(replica.responses) + sequences - 1) / sequences;
  return longest_first(replica.responses, prompt, static_cast<int>(count),
                       static_cast<std::size_t>(sequences));
}

std::vector<std::vector<MicroBatch>> micro_batches_of(
    const std::vector<std::vector<PackedPart>>& of_replica, std::int64_t prompt) {
  std::vector<std::vector<MicroBatch>> result(of_replica.size());
  for (std::size_t r = 0; r < result.size(); ++r) {
    for (const PackedPart& part : of_replica[r]) result[r].push_back(micro_batch_of(part, prompt));
  }
  return result;
}

}  // namespace

std::vector<std::vector<MicroBatch>> pack_micro_batches(
    std::span<const std::int64_t> response_tokens, std::int64_t prompt_tokens, int replicas,
    std::int64_t token_limit, int round, BatchOrder order, std::int64_t sequences) {
  TESSERA_CHECK(replicas > 0);
  std::vector<std::int64_t> sorted(response_tokens.begin(), response_tokens.end());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const auto parts = static_cast<std::size_t>(replicas);
  const std::vector<PackedPart> shares =
      longest_first(sorted, prompt_tokens, replicas, (sorted.size() + parts - 1) / parts);
  const std::size_t each = sorted.size() / parts;  // sequences of a replica, at least
  const auto fewest = static_cast<double>(each);
  int count = 1;
  std::vector<std::vector<PackedPart>> of_replica(parts);
  if (sequences > 0) {
    for (std::size_t r = 0; r < parts; ++r)
      of_replica[r] = counted(shares[r], prompt_tokens, sequences);
    return micro_batches_of(of_replica, prompt_tokens);
  }
  // Every replica gets as many micro-batches as the one that needs most, in whole rounds.
  for (int asked = 0; asked != count;) {
    asked = count;
    for (std::size_t r = 0; r < parts; ++r) {
      of_replica[r] = packed(shares[r], prompt_tokens, token_limit, count);
      const auto made = static_cast<double>(of_replica[r].size());
      count = std::max(count, static_cast<int>(whole_rounds(made, fewest, round)));
    }
  }
  for (std::vector<PackedPart>& own : of_replica) own = in_order(std::move(own), order);
  return micro_batches_of(of_replica, prompt_tokens);
}

}  // namespace tessera
