#include "executor/attention/context_slices.h"

#include <algorithm>
#include <numeric>

namespace tessera {
namespace {

std::int64_t rounded_up(std::int64_t count, std::int64_t multiple) {
  return (std::max<std::int64_t>(count, 1) + multiple - 1) / multiple * multiple;
}

}  // namespace

ZigZag zig_zag(std::int64_t length, int size, int rank) {
  const std::int64_t slices = std::int64_t{2} * size;
  return {split(length, slices, rank), split(length, slices, slices - 1 - rank)};
}

std::vector<Interval> held_tokens(std::span<const std::int64_t> lengths,
                                  const ContextSlice& slice) {
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (slice.alone()) return {{0, tokens}};
  if (slice.ulysses) return {split(tokens, slice.size, slice.rank)};
  std::vector<Interval> held;
  std::int64_t first = 0;
  for (const std::int64_t length : lengths) {
    const ZigZag parts = zig_zag(length, slice.size, slice.rank);
    for (const Interval& part : {parts.early, parts.late}) {
      if (!part.empty()) held.push_back({first + part.lo, first + part.hi});
    }
    first += length;
  }
  return held;
}

ContextRows context_rows(std::span<const std::int64_t> lengths, const ContextSlice& slice,
                         std::int64_t multiple) {
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (slice.alone() || slice.ulysses) {
    const std::int64_t padded = rounded_up(tokens, multiple * slice.size);
    return {padded - tokens, padded / slice.size};
  }
  std::int64_t held = 0;
  for (const Interval& part : held_tokens(lengths, slice)) held += part.size();
  return {0, rounded_up(held, multiple)};
}

}  // namespace tessera
