#include "executor/rollout/prompt_dealing.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "cost_models/spec/split.h"

namespace tessera {
namespace {

ExpectedTokens of_limits(const std::vector<std::int64_t>& limits) {
  const auto sum = static_cast<double>(std::accumulate(limits.begin(), limits.end(), 0LL));
  return {.mean = sum / static_cast<double>(limits.size()),
          .longest = static_cast<double>(*std::max_element(limits.begin(), limits.end()))};
}

// Of every prompt; empty where none is known.
std::vector<ExpectedTokens> expectations(std::span<const TokenPrompt> prompts) {
  std::vector<ExpectedTokens> all;
  ExpectedTokens sum;
  double known = 0;
  for (const TokenPrompt& prompt : prompts) {
    all.push_back(prompt.limits.empty() ? prompt.expected : of_limits(prompt.limits));
    if (!all.back().known()) continue;
    sum.mean += all.back().mean;
    sum.longest += all.back().longest;
    known += 1;
  }
  if (known == 0) return {};
  for (ExpectedTokens& each : all) {
    if (!each.known()) each = {.mean = sum.mean / known, .longest = sum.longest / known};
  }
  return all;
}

// Indices by falling values; equal ones keep their order.
template <class Value>
void sort_falling(std::vector<std::size_t>& indices, const Value& value) {
  std::stable_sort(indices.begin(), indices.end(),
                   [&](std::size_t a, std::size_t b) { return value(a) > value(b); });
}

// Indices of the replica's prompts.
std::vector<std::size_t> dealt(std::span<const TokenPrompt> prompts,
                               std::span<const ExpectedTokens> expected, int replicas,
                               int replica) {
  const auto count = static_cast<std::int64_t>(prompts.size());
  const auto tokens = [&](std::size_t index) {
    return expected[index].mean * static_cast<double>(prompts[index].samples);
  };
  std::vector<std::size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_falling(order, tokens);
  const auto all = static_cast<std::size_t>(replicas);
  std::vector<double> load(all, 0);
  std::vector<std::int64_t> room;
  for (int each = 0; each < replicas; ++each) room.push_back(split(count, replicas, each).size());
  std::vector<std::size_t> mine;
  for (const std::size_t index : order) {
    std::size_t least = all;
    for (std::size_t each = 0; each < all; ++each) {
      if (room[each] > 0 && (least == all || load[each] < load[least])) least = each;
    }
    load[least] += tokens(index);
    room[least] -= 1;
    if (least == static_cast<std::size_t>(replica)) mine.push_back(index);
  }
  return mine;
}

}  // namespace

std::int64_t row_of(std::string_view uid) {
  std::int64_t row = 0;
  std::from_chars(uid.data(), uid.data() + uid.size(), row);
  return row;
}

void remember_lengths(std::span<const Sequence> sequences, KnownLengths& known) {
  struct Sum {
    double tokens = 0, samples = 0, longest = 0;
  };
  std::map<std::int64_t, Sum> sums;
  for (const Sequence& sequence : sequences) {
    Sum& sum = sums[row_of(sequence.uid)];
    const auto tokens = static_cast<double>(sequence.response.size());
    sum.tokens += tokens;
    sum.samples += 1;
    sum.longest = std::max(sum.longest, tokens);
  }
  for (const auto& [row, sum] : sums) {
    known[row] = {.mean = sum.tokens / sum.samples, .longest = sum.longest};
  }
}

void keep_lengths(KnownLengths& fresh, KnownLengths& known) {
  for (const auto& [row, length] : fresh) known[row] = length;
  fresh.clear();
}

void expect_lengths(const KnownLengths& known, std::span<TokenPrompt> prompts) {
  for (TokenPrompt& prompt : prompts) {
    const auto found = known.find(row_of(prompt.uid));
    if (found != known.end()) prompt.expected = found->second;
  }
}

std::vector<TokenPrompt> prompts_of_replica(std::span<const TokenPrompt> prompts, int replicas,
                                            int replica) {
  const std::vector<ExpectedTokens> expected = expectations(prompts);
  if (expected.empty()) {
    const Interval part = split(static_cast<std::int64_t>(prompts.size()), replicas, replica);
    return {prompts.begin() + part.lo, prompts.begin() + part.hi};
  }
  std::vector<std::size_t> mine = dealt(prompts, expected, replicas, replica);
  std::sort(mine.begin(), mine.end());
  sort_falling(mine, [&](std::size_t index) { return expected[index].longest; });
  std::vector<TokenPrompt> share;
  share.reserve(mine.size());
  for (const std::size_t index : mine) share.push_back(prompts[index]);
  return share;
}

}  // namespace tessera
