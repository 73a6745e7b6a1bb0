// Steps of reads and proportional buckets against brute sums, closed forms and random traffic.
#include "cost_models/layout/model_tensors.h"
#include "executor/transfers/pull_traffic.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <numeric>

#include "cost_models/layout/reshard_plan.h"
#include "executor/arena/pulls.h"
#include "tests/cost_models/layout/sample_models.h"
#include "tests/executor/reshard/layout_cases.h"

namespace tessera {
namespace {

std::int64_t length_of(const std::vector<PullStep>& steps) {
  std::int64_t length = 0;
  for (const PullStep& step : steps) length += step.longest();
  return length;
}

/// All of the traffic, each source and reader at most once in a step.
void expect_complete(const PullTraffic& traffic, const std::vector<PullStep>& steps) {
  PullTraffic moved(traffic.size(), std::vector<std::int64_t>(traffic.size()));
  for (const PullStep& step : steps) {
    std::vector<int> readers(traffic.size());
    for (std::size_t d = 0; d < traffic.size(); ++d) {
      if (step.source[d] < 0) {
        EXPECT_EQ(step.moved[d], 0);
        continue;
      }
      const auto s = static_cast<std::size_t>(step.source[d]);
      EXPECT_GT(step.moved[d], 0);
      EXPECT_EQ(++readers[s], 1) << "two read from rank " << s;
      moved[s][d] += step.moved[d];
    }
  }
  EXPECT_EQ(moved, traffic);
}

/// Stages of 3, 2, 2 and 3 that all others read: the first and the last send without a pause.
TEST(PullSteps, OfStagesTakeTheTimeOfTheBusiestSender) {
  PullTraffic traffic(4, std::vector<std::int64_t>(4));
  const std::vector<std::int64_t> stage{300, 200, 200, 300};
  for (std::size_t s = 0; s < 4; ++s) {
    for (std::size_t d = 0; d < 4; ++d) traffic[s][d] = s == d ? 0 : stage[s];
  }
  const std::vector<PullStep> steps = matched_steps(traffic, 1);
  expect_complete(traffic, steps);
  EXPECT_EQ(busiest_end(traffic), 900);
  EXPECT_EQ(length_of(steps), 900);
}

TEST(PullSteps, OfEqualPartsAreARing) {
  PullTraffic traffic(8, std::vector<std::int64_t>(8, 70));
  for (std::size_t i = 0; i < 8; ++i) traffic[i][i] = 0;
  const std::vector<PullStep> steps = matched_steps(traffic, 7);
  expect_complete(traffic, steps);
  EXPECT_EQ(steps.size(), 7u);
  EXPECT_EQ(length_of(steps), 490);
}

/// Two ranks that train and two that serve: two steps, not the three of a ring over all.
TEST(PullSteps, BetweenDisjointRanksTakeAsLongAsOneReads) {
  PullTraffic traffic(4, std::vector<std::int64_t>(4));
  for (const std::size_t s : {0, 1}) {
    for (const std::size_t d : {2, 3}) traffic[s][d] = 50;
  }
  const std::vector<PullStep> steps = matched_steps(traffic, 1);
  expect_complete(traffic, steps);
  EXPECT_EQ(length_of(steps), 100);
}

RC_GTEST_PROP(PullSteps, OfAnyTrafficTakeNoLongerThanItsBusiestEnd, ()) {
  const int n = *rc::gen::inRange(1, 8);
  PullTraffic traffic(static_cast<std::size_t>(n),
                      std::vector<std::int64_t>(static_cast<std::size_t>(n)));
  for (int s = 0; s < n; ++s) {
    for (int d = 0; d < n; ++d) {
      if (s == d || *rc::gen::inRange(0, 3) == 0) continue;
      traffic[static_cast<std::size_t>(s)][static_cast<std::size_t>(d)] =
          *rc::gen::inRange<std::int64_t>(0, 1000);
    }
  }
  const std::vector<PullStep> exact = matched_steps(traffic, 1);
  expect_complete(traffic, exact);
  RC_ASSERT(length_of(exact) == busiest_end(traffic));
  RC_ASSERT(exact.size() <= static_cast<std::size_t>(n * n));
  const std::vector<PullStep> rounded = matched_steps(traffic, 64);
  expect_complete(traffic, rounded);
  RC_ASSERT(length_of(rounded) <= busiest_end(traffic) + std::int64_t{64} * n);
}

/// Every element once, and of each pair's bytes the same fraction in every bucket, to a row.
TEST(ProportionalBuckets, HoldEveryElementOnceAndAllSourcesAlike) {
  const ModelSpec model = odd_model(5);
  const ParameterTable table = parameter_table(model);
  const std::vector<double> ends{0.125, 0.5, 0.75, 1};
  for (const ParallelLayout& from :
       {layout_of(4, 1, 1, 5), layout_of(1, 4, 1, 5), layout_of(1, 1, 1, 5, 4)}) {
    const std::vector<ShardedTensor> tensors =
        model_tensors(table, contiguous(from), contiguous(layout_of(1, 1, 4, 5)), DType::fp32);
    const ReshardPlan plan = plan_reshard(tensors);
    std::vector<int> backwards(tensors.size());
    std::iota(backwards.rbegin(), backwards.rend(), 0);
    for (const std::vector<int>& order : {std::vector<int>{}, backwards}) {
      using Key = std::array<int, 3>;
      std::map<Key, std::int64_t> volumes, wanted;
      std::int64_t row = 0;
      for (const ShardedTensor& tensor : tensors) {
        const std::int64_t rows =
            tensor.shape.empty() ? 1 : tensor.shape[static_cast<std::size_t>(tensor.outer_dim)];
        row = std::max(row, std::lcm(4 * volume(whole(tensor.shape)) / rows, std::int64_t{16}));
      }
      for (const Transfer& t : plan.transfers) {
        wanted[{t.source, t.destination, t.tensor}] += volume(t.box);
      }
      const PullTraffic all = traffic_of(plan, tensors, 4);
      PullTraffic done(4, std::vector<std::int64_t>(4));
      const std::vector<ReshardPlan> buckets = cut_in_proportion(plan, tensors, ends, order);
      ASSERT_EQ(buckets.size(), ends.size());
      for (std::size_t k = 0; k < ends.size(); ++k) {
        for (const Transfer& t : buckets[k].transfers) {
          volumes[{t.source, t.destination, t.tensor}] += volume(t.box);
        }
        const PullTraffic traffic = traffic_of(buckets[k], tensors, 4);
        for (std::size_t s = 0; s < 4; ++s) {
          for (std::size_t d = 0; d < 4; ++d) {
            done[s][d] += traffic[s][d];
            EXPECT_NEAR(static_cast<double>(done[s][d]), ends[k] * static_cast<double>(all[s][d]),
                        static_cast<double>(row));
          }
        }
      }
      EXPECT_EQ(volumes, wanted);
      EXPECT_EQ(done, all);
      const Transfer& first = buckets[0].transfers.front();
      if (!order.empty() && from.pp == 1) {
        EXPECT_EQ(first.tensor, static_cast<int>(tensors.size()) - 1);
      }
    }
  }
}

}  // namespace
}  // namespace tessera
