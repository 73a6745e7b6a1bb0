#include "executor/batching/micro_batches.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

struct Part {
  std::int64_t tokens = 0;
  std::vector<int> indices;

  friend bool operator>(const Part& a, const Part& b) {
    if (a.tokens != b.tokens) return a.tokens > b.tokens;
    if (a.indices.size() != b.indices.size()) return a.indices.size() > b.indices.size();
    return a.indices > b.indices;
  }
};

/// A partial solution: parts in descending order. Merging two pairs the largest part of one with
/// the smallest of the other, so that the spreads cancel.
struct Candidate {
  std::vector<Part> parts;

  std::int64_t spread() const { return parts.front().tokens - parts.back().tokens; }
  void sort() { std::sort(parts.begin(), parts.end(), std::greater<>()); }
  void merge(Candidate other) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Part& from = other.parts[parts.size() - 1 - i];
      parts[i].tokens += from.tokens;
      parts[i].indices.insert(parts[i].indices.end(), from.indices.begin(), from.indices.end());
    }
    sort();
  }
};

/// Orders a queue by spread, then by the largest part: no two candidates compare equal.
struct SmallerSpread {
  bool operator()(const Candidate& a, const Candidate& b) const {
    if (a.spread() != b.spread()) return a.spread() < b.spread();
    return b.parts.front() > a.parts.front();
  }
};

/// One candidate per sequence, or with equal counts one per run of `parts` neighbours in length
/// (the shortest run may be incomplete).
std::vector<Candidate> initial_candidates(std::span<const std::int64_t> lengths, int parts,
                                          bool equal_counts) {
  std::vector<int> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return std::pair(lengths[a], a) > std::pair(lengths[b], b); });
  const std::size_t run = equal_counts ? static_cast<std::size_t>(parts) : 1;
  std::vector<Candidate> candidates;
  for (std::size_t first = 0; first < order.size(); first += run) {
    Candidate candidate;
    candidate.parts.resize(static_cast<std::size_t>(parts));
    for (std::size_t i = first; i < std::min(first + run, order.size()); ++i)
      candidate.parts[i - first] = {lengths[order[i]], {order[i]}};
    candidate.sort();
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

bool within_limit(const std::vector<std::vector<int>>& lists, std::span<const std::int64_t> lengths,
                  std::int64_t limit) {
  return std::all_of(lists.begin(), lists.end(), [&](const std::vector<int>& list) {
    std::int64_t tokens = 0;
    for (int index : list) tokens += lengths[static_cast<std::size_t>(index)];
    return list.size() <= 1 || tokens <= limit;
  });
}

/// At least `count` micro-batches of these lengths within the limit.
std::vector<std::vector<int>> pack(std::span<const std::int64_t> lengths, std::int64_t limit,
                                   int count) {
  const int sequences = static_cast<int>(lengths.size());
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (limit > 0)
    count = std::max(
        count, static_cast<int>(std::min<std::int64_t>(sequences, (tokens + limit - 1) / limit)));
  std::vector<std::vector<int>> lists = balanced_partition(lengths, count, false);
  while (limit > 0 && count < sequences && !within_limit(lists, lengths, limit))
    lists = balanced_partition(lengths, ++count, false);
  return lists;
}

}  // namespace

std::vector<std::vector<int>> balanced_partition(std::span<const std::int64_t> lengths, int parts,
                                                 bool equal_counts) {
  TESSERA_CHECK(parts > 0);
  std::vector<std::vector<int>> lists(static_cast<std::size_t>(parts));
  if (lengths.empty()) return lists;
  std::vector<Candidate> candidates = initial_candidates(lengths, parts, equal_counts);
  std::priority_queue<Candidate, std::vector<Candidate>, SmallerSpread> queue(
      SmallerSpread{}, std::move(candidates));
  while (queue.size() > 1) {
    Candidate first = queue.top();
    queue.pop();
    first.merge(queue.top());
    queue.pop();
    queue.push(std::move(first));
  }
  for (std::size_t i = 0; i < lists.size(); ++i) {
    lists[i] = queue.top().parts[i].indices;
    std::sort(lists[i].begin(), lists[i].end());
  }
  return lists;
}

std::vector<std::vector<std::vector<int>>> plan_micro_batches(std::span<const std::int64_t> lengths,
                                                              const MicroBatchOptions& options) {
  const std::vector<std::vector<int>> replicas =
      balanced_partition(lengths, options.replicas, true);
  std::vector<std::vector<std::vector<int>>> plan(replicas.size());
  int count = 1;
  const auto plan_replica = [&](std::size_t r) {
    std::vector<std::int64_t> local;
    for (int index : replicas[r]) local.push_back(lengths[static_cast<std::size_t>(index)]);
    plan[r] = pack(local, options.token_limit, count);
    for (std::vector<int>& list : plan[r])
      for (int& index : list) index = replicas[r][static_cast<std::size_t>(index)];
    count = std::max(count, static_cast<int>(plan[r].size()));
  };
  for (std::size_t r = 0; r < plan.size(); ++r) plan_replica(r);
  // More micro-batches than the fewest stay within the limit: the second pass evens the counts.
  for (std::size_t r = 0; r < plan.size(); ++r)
    while (static_cast<int>(plan[r].size()) < count) plan_replica(r);
  return plan;
}

}  // namespace tessera
