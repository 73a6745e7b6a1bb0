// One token limit for every number of micro-batches, against all limits.
#include "planner/space/distinct_limits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "planner/request/request.h"

namespace tessera {
namespace {

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

struct Parts {
  double updates = 0, others = 0;
};

// What the prices count.
struct Counted {
  ExpectedPacking packing;
  FewSequences few;
  int replicas;

  double parts(std::int64_t tokens, std::int64_t sequences) {
    const DealtSequences dealt{static_cast<double>(sequences), replicas};
    return few.are(dealt)
               ? few.micro_batches(dealt, tokens)
               : packing.micro_batches(dealt.sequences, replicas, packing.sequences(tokens));
  }
  Parts under(std::int64_t tokens, std::int64_t mini_batch, std::int64_t all) {
    return {parts(tokens, mini_batch), parts(tokens, all)};
  }
};

// No limit of whole longest sequences, and no quarter of one up to two, cuts the calls into fewer
// micro-batches than a listed one that is no larger; and every listed one does.
TEST(DistinctLimits, StandForEveryOther) {
  std::mt19937 random(5);
  const auto between = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  int in_parts = 0;
  for (int round = 0; round < 60; ++round) {
    Workload workload;
    workload.prompt_tokens = between(16, 2048);
    const std::int64_t mean = between(64, 4096);
    workload.response_tokens = {static_cast<double>(mean), round % 3 * 0.4,
                                mean * (round % 3 == 0 ? 1 : between(1, 4))};
    const std::int64_t longest = longest_sequence(workload);
    const std::int64_t mini_batch = between(1, 128), all = mini_batch * between(1, 8);
    DistinctLimits limits(workload);
    const int replicas = between(1, 16);
    const std::vector<std::int64_t>& listed = limits.of(mini_batch, all, replicas, kAny);
    Counted counted{ExpectedPacking(workload.response_tokens, workload.prompt_tokens),
                    FewSequences(workload.response_tokens, workload.prompt_tokens), replicas};
    ASSERT_FALSE(listed.empty());
    EXPECT_EQ(listed.front(), longest);
    const auto own = [&](std::int64_t tokens) { return counted.under(tokens, mini_batch, all); };
    Parts least{1e9, 1e9};
    for (const std::int64_t tokens : listed) {
      const Parts parts = own(tokens);
      EXPECT_TRUE(parts.updates < least.updates || parts.others < least.others) << tokens;
      least = {std::min(least.updates, parts.updates), std::min(least.others, parts.others)};
      in_parts += tokens % longest != 0 ? 1 : 0;
    }
    EXPECT_EQ(least.updates, 1);
    EXPECT_EQ(least.others, 1);
    std::vector<std::int64_t> others;
    for (std::int64_t part = 4; part <= 8; ++part) others.push_back((part * longest + 3) / 4);
    for (std::int64_t count = 3; count * longest <= listed.back() + 8 * longest; ++count) {
      others.push_back(count * longest);
    }
    for (const std::int64_t tokens : others) {
      Parts best{1e9, 1e9};
      for (const std::int64_t no_larger : listed) {
        if (no_larger > tokens) break;
        const Parts parts = own(no_larger);
        best = {std::min(best.updates, parts.updates), std::min(best.others, parts.others)};
      }
      EXPECT_LE(best.updates, own(tokens).updates) << tokens;
      EXPECT_LE(best.others, own(tokens).others) << tokens;
    }
  }
  EXPECT_GT(in_parts, 20);
}

// A workload may state 2^30 sequences: what nobody asks for is not counted through.
TEST(DistinctLimits, EndAtTheMostThatIsAskedFor) {
  Workload workload;
  workload.prompt_tokens = 1024;
  workload.response_tokens = {512, 0.5, 1024};
  DistinctLimits limits(workload);
  const std::int64_t sequences = std::int64_t{1} << 40;
  const std::vector<std::int64_t>& some = limits.of(sequences, 4 * sequences, 8, 131072);
  EXPECT_LE(some.size(), 72U);
  EXPECT_EQ(some.front(), 2048);
  EXPECT_EQ(some.back(), 131072);
  EXPECT_EQ(limits.of(1, 1, 1, 1), (std::vector<std::int64_t>{2048}));
}

}  // namespace
}  // namespace tessera
