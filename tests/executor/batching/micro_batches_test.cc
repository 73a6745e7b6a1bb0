#include "executor/batching/micro_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace tessera {
namespace {

using Lists = std::vector<std::vector<int>>;

std::int64_t tokens(const std::vector<int>& list, const std::vector<std::int64_t>& lengths) {
  std::int64_t sum = 0;
  for (int index : list) sum += lengths[static_cast<std::size_t>(index)];
  return sum;
}

std::int64_t largest(const Lists& lists, const std::vector<std::int64_t>& lengths) {
  std::int64_t most = 0;
  for (const auto& list : lists) most = std::max(most, tokens(list, lengths));
  return most;
}

std::vector<std::int64_t> random_lengths(std::mt19937& random, int count, int longest) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(count));
  for (auto& length : lengths) length = 1 + static_cast<std::int64_t>(random() % longest);
  return lengths;
}

/// Tries every assignment of the sequences to parts: the least possible largest sum.
std::int64_t least_largest(const std::vector<std::int64_t>& lengths, int parts,
                           std::vector<std::int64_t>& sums, std::size_t next = 0) {
  if (next == lengths.size()) return *std::max_element(sums.begin(), sums.end());
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (int p = 0; p < parts; ++p) {
    sums[p] += lengths[next];
    best = std::min(best, least_largest(lengths, parts, sums, next + 1));
    sums[p] -= lengths[next];
    if (sums[p] == 0) break;  // empty parts are alike
  }
  return best;
}

std::int64_t least_largest(const std::vector<std::int64_t>& lengths, int parts) {
  std::vector<std::int64_t> sums(static_cast<std::size_t>(parts));
  return least_largest(lengths, parts, sums);
}

void expect_every_index_once(const Lists& lists, std::size_t count) {
  std::vector<int> all;
  for (const auto& list : lists) {
    EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
    all.insert(all.end(), list.begin(), list.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<int> expected(count);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(BalancedPartition, StaysNearTheBruteForceOptimum) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const int parts = 2 + static_cast<int>(random() % 3);
    const auto lengths = random_lengths(random, 1 + static_cast<int>(random() % 8), 50);
    const auto lists = balanced_partition(lengths, parts, false);
    ASSERT_EQ(lists.size(), static_cast<std::size_t>(parts));
    expect_every_index_once(lists, lengths.size());
    // Michiels, Korst, Aarts, van Leeuwen 2003: the k-way differencing method is within
    // 4/3 - 1/(3(k-1)) of the optimum (7/6 for k = 2).
    const double bound = parts == 2 ? 7.0 / 6 : 4.0 / 3 - 1.0 / (3.0 * (parts - 1));
    EXPECT_LE(largest(lists, lengths), bound * least_largest(lengths, parts) + 1e-9);
  }
}

TEST(BalancedPartition, EqualCountsDifferByAtMostOne) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const int parts = 1 + static_cast<int>(random() % 6);
    const auto lengths = random_lengths(random, 1 + static_cast<int>(random() % 40), 1000);
    const auto lists = balanced_partition(lengths, parts, true);
    expect_every_index_once(lists, lengths.size());
    const auto [fewest, most] = std::minmax_element(
        lists.begin(), lists.end(), [](auto& a, auto& b) { return a.size() < b.size(); });
    EXPECT_LE(most->size() - fewest->size(), 1u);
  }
}

TEST(BalancedPartition, EqualCountsBalanceALongTail) {
  // Alternating long and short sequences in file order: a split by order would give 4 : 1.
  const std::vector<std::int64_t> lengths{400, 390, 410, 405, 100, 110, 90, 95};
  const auto lists = balanced_partition(lengths, 2, true);
  EXPECT_LE(std::abs(tokens(lists[0], lengths) - tokens(lists[1], lengths)), 10);
}

TEST(MicroBatches, HoldEverySequenceOnceWithinTheLimit) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const int replicas = 1 + static_cast<int>(random() % 4);
    const auto lengths = random_lengths(random, replicas + static_cast<int>(random() % 40), 300);
    const std::int64_t limit = 100 + static_cast<std::int64_t>(random() % 900);
    const auto plan = plan_micro_batches(lengths, {replicas, limit});
    ASSERT_EQ(plan.size(), static_cast<std::size_t>(replicas));
    Lists all;
    for (const auto& micro_batches : plan) {
      EXPECT_EQ(micro_batches.size(), plan[0].size());
      std::size_t sequences = 0;
      for (const auto& list : micro_batches) sequences += list.size();
      for (const auto& list : micro_batches) {
        EXPECT_TRUE(list.size() <= 1 || tokens(list, lengths) <= limit);
        EXPECT_TRUE(!list.empty() || sequences < micro_batches.size());
        all.push_back(list);
      }
    }
    expect_every_index_once(all, lengths.size());
  }
}

TEST(MicroBatches, AreAtMostOneMoreThanTheBruteForceFewest) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const auto lengths = random_lengths(random, 1 + static_cast<int>(random() % 8), 60);
    const std::int64_t limit = 60 + static_cast<std::int64_t>(random() % 100);
    int fewest = 1;
    while (least_largest(lengths, fewest) > limit) ++fewest;
    const auto plan = plan_micro_batches(lengths, {1, limit});
    EXPECT_GE(static_cast<int>(plan[0].size()), fewest);
    EXPECT_LE(static_cast<int>(plan[0].size()), fewest + 1);
  }
}

TEST(MicroBatches, GiveASequenceLongerThanTheLimitItsOwn) {
  const std::vector<std::int64_t> lengths{10, 500, 20, 30};
  const auto plan = plan_micro_batches(lengths, {1, 100});
  EXPECT_NE(std::find(plan[0].begin(), plan[0].end(), std::vector<int>{1}), plan[0].end());
  for (const auto& list : plan[0])
    EXPECT_TRUE(list == std::vector<int>{1} || tokens(list, lengths) <= 100);
}

TEST(MicroBatches, AreOneWithoutALimit) {
  const std::vector<std::int64_t> lengths{3, 1, 4, 1, 5};
  const auto plan = plan_micro_batches(lengths, {1, 0});
  EXPECT_EQ(plan, (std::vector<Lists>{{{0, 1, 2, 3, 4}}}));
}

TEST(MicroBatches, LeaveReplicasWithoutSequencesEmpty) {
  const std::vector<std::int64_t> lengths{7, 9};
  const auto plan = plan_micro_batches(lengths, {3, 100});
  std::size_t empty = 0;
  for (const auto& replica : plan) {
    ASSERT_EQ(replica.size(), 1u);
    empty += replica[0].empty();
  }
  EXPECT_EQ(empty, 1u);
}

}  // namespace
}  // namespace tessera
