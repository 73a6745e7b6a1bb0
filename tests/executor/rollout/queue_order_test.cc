// In which order requests enter: what is dealt to replicas, which go first, who takes a slot that
// becomes free.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "executor/rollout/prompt_dealing.h"
#include "executor/rollout/request_queue.h"
#include "tests/executor/rollout/hash_model.h"

namespace tessera {
namespace {

// Whichever replica takes a prompt, and whatever was known when it was dealt, under any schedule:
// slots, pages that run out, pieces of prompts.
TEST(RequestQueue, DealingByExpectedLengthsChangesNoToken) {
  std::mt19937 engine(8);
  int moved = 0, preempted = 0;
  for (int round = 0; round < 60; ++round) {
    auto all = prompts(3 + static_cast<int>(engine() % 9), 1 + static_cast<int>(engine() % 3));
    const auto replicas = 1 + static_cast<int>(engine() % 4);
    RolloutOptions each = options(1 + static_cast<std::int64_t>(engine() % 6));
    each.prefill_tokens = static_cast<std::int64_t>(engine() % 4);
    const auto step = static_cast<std::uint32_t>(engine() % 5);
    const auto expected = one_by_one(all, step, each);
    for (TokenPrompt& prompt : all) {
      if (engine() % 3 == 0) continue;  // not known
      const double tokens = 1 + static_cast<double>(engine() % 9);
      prompt.expected = {.mean = tokens, .longest = tokens + static_cast<double>(engine() % 3)};
    }
    const std::int64_t pages = 4 + static_cast<std::int64_t>(engine() % 8);
    std::vector<Sequence> together;
    for (int replica = 0; replica < replicas; ++replica) {
      HashModel mine(each.max_sequences, pages);
      RolloutCounts counts;
      for (Sequence& s :
           generate(mine, step, prompts_of_replica(all, replicas, replica), each, &counts, pages)) {
        together.push_back(std::move(s));
      }
      preempted += counts.preemptions > 0 ? 1 : 0;
    }
    const auto place = [](const Sequence& s) { return std::pair(s.prompt_index, s.sample_index); };
    const auto before = [&](const Sequence& a, const Sequence& b) { return place(a) < place(b); };
    moved += std::is_sorted(together.begin(), together.end(), before) ? 0 : 1;
    std::sort(together.begin(), together.end(), before);
    EXPECT_EQ(together, expected) << round;
  }
  EXPECT_GT(moved, 30);
  EXPECT_GT(preempted, 10);
}

/// The fewest decode steps in which `slots` slots generate such lengths, over all ways to deal.
std::int64_t fewest_steps(const std::vector<std::int64_t>& lengths, std::size_t slots) {
  std::int64_t best = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::vector<std::int64_t> load(slots, 0);
  const std::function<void(std::size_t)> deal = [&](std::size_t i) {
    if (i == lengths.size()) {
      best = std::min(best, *std::max_element(load.begin(), load.end()));
      return;
    }
    for (std::int64_t& each : load) {
      each += lengths[i];
      deal(i + 1);
      each -= lengths[i];
    }
  };
  deal(0);
  return best;
}

// Graham 1969: slots that take the longest first are at most 4/3 of the fewest steps behind; a slot
// that frees up is refilled a pass or two later, which each of its sequences adds.
TEST(RequestQueue, KnownLengthsEnterLongestFirstAndLeaveAShortTail) {
  std::mt19937 engine(21);
  std::int64_t longest_first = 0, in_order = 0;
  for (int round = 0; round < 30; ++round) {
    auto all = prompts(8, 1);
    RolloutOptions three = options(3);
    three.eos = {};
    three.max_response_tokens = 40;
    std::vector<std::int64_t> lengths;
    for (TokenPrompt& prompt : all) {
      lengths.push_back(1 + static_cast<std::int64_t>(engine() % 40));
      prompt.limits = {lengths.back()};
    }
    const auto steps = [&](std::span<const TokenPrompt> order) {
      HashModel model(3, kManyPages);
      RolloutCounts counts;
      generate(model, 0, order, three, &counts);
      return counts.decode_steps;
    };
    const std::int64_t sorted = steps(prompts_of_replica(all, 1, 0));
    EXPECT_LE(static_cast<double>(sorted),
              4.0 / 3 * static_cast<double>(fewest_steps(lengths, 3)) + 2 * 8.0 / 3 + 1);
    longest_first += sorted;
    in_order += steps(all);
  }
  EXPECT_LT(static_cast<double>(longest_first), 0.93 * static_cast<double>(in_order));
}

TEST(RequestQueue, SlotsAreRefilledWhileOthersRun) {
  const auto all = prompts(30, 1);
  HashModel model(4, kManyPages);
  RolloutCounts counts;
  const auto sequences = generate(model, 0, all, options(4), &counts);
  std::int64_t tokens = 0;
  for (const Sequence& s : sequences) tokens += static_cast<std::int64_t>(s.response.size());
  // Every token but each first is one of a decode row, and some rows are found to be too many.
  EXPECT_EQ(counts.decode_tokens - counts.dropped_tokens + 30, tokens);
  EXPECT_GT(counts.dropped_tokens, 0);
  EXPECT_LE(counts.dropped_tokens, 30);
  EXPECT_LE(counts.tail_steps, 12);
}

}  // namespace
}  // namespace tessera
