// One token limit for every number of micro-batches, against all limits.
#include "planner/space/distinct_limits.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/request/request.h"

namespace tessera {
namespace {

struct Parts {
  double updates = 0, others = 0;
};

Parts parts_under(const ExpectedPacking& packing, const Workload& workload, std::int64_t count,
                  std::int64_t mini_batch, std::int64_t all) {
  const double held = packing.sequences(count * longest_sequence(workload));
  return {std::ceil(static_cast<double>(mini_batch) / held),
          std::ceil(static_cast<double>(all) / held)};
}

// No limit cuts the calls into fewer micro-batches than a listed one that is no larger.
TEST(DistinctLimits, StandForEveryOther) {
  std::mt19937 random(5);
  const auto between = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  for (int round = 0; round < 60; ++round) {
    Workload workload;
    workload.prompt_tokens = between(16, 2048);
    const int mean = between(64, 4096);
    workload.response_tokens = {static_cast<double>(mean), round % 3 * 0.4,
                                mean * (round % 3 == 0 ? 1 : between(1, 4))};
    const std::int64_t mini_batch = between(1, 128), all = mini_batch * between(1, 8);
    DistinctLimits limits(workload);
    const std::vector<std::int64_t>& counts = limits.of(mini_batch, all);
    const ExpectedPacking packing(workload.response_tokens, workload.prompt_tokens);
    ASSERT_FALSE(counts.empty());
    EXPECT_EQ(counts.front(), 1);
    std::size_t listed = 0;
    Parts least{1e9, 1e9};
    for (std::int64_t count = 1; count <= counts.back() + 8; ++count) {
      const Parts own = parts_under(packing, workload, count, mini_batch, all);
      const bool fewer = own.updates < least.updates || own.others < least.others;
      const bool is_listed = listed < counts.size() && counts[listed] == count;
      EXPECT_EQ(is_listed, fewer) << count;
      if (is_listed) ++listed;
      least = {std::min(least.updates, own.updates), std::min(least.others, own.others)};
    }
    EXPECT_EQ(least.updates, 1);
    EXPECT_EQ(least.others, 1);
    EXPECT_EQ(listed, counts.size());
  }
}

}  // namespace
}  // namespace tessera
