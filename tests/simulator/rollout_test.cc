#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "cost_models/decoding.h"
#include "cost_models/lengths.h"
#include "cost_models/paging/paged_cache.h"
#include "simulator/rollout/draw_lengths.h"
#include "simulator/rollout/replica.h"
#include "tests/cost_models/paging/followed_replica.h"
#include "tests/simulator/linear_costs.h"

namespace tessera {
namespace {

using Lengths = std::vector<std::int64_t>;

double seconds_of(const std::vector<RolloutSegment>& segments) {
  return segments.empty() ? 0 : segments.back().end_s;
}

// One decode step after the other, every sequence on its own.
double token_by_token(const Lengths& lengths, const ReplicaBatching& batching,
                      const ReplicaCosts& costs) {
  struct Running {
    std::int64_t left = 0, context = 0;
  };
  std::vector<Running> running;
  std::size_t next = 0;
  double seconds = 0;
  while (next < lengths.size() || !running.empty()) {
    if (next < lengths.size() && std::ssize(running) < batching.max_sequences) {
      std::vector<Running> entered;
      std::vector<std::int64_t> prompts;
      while (next < lengths.size() &&
             std::ssize(running) + std::ssize(entered) < batching.max_sequences) {
        const auto prompt = static_cast<std::int64_t>(next) / batching.samples_per_prompt;
        const bool known = !prompts.empty() && prompts.back() == prompt;
        const auto tokens = (std::ssize(prompts) + 1) * batching.prompt_tokens;
        if (!known && !prompts.empty() && tokens > batching.prefill_tokens) break;
        if (!known) prompts.push_back(prompt);
        entered.push_back({lengths[next++] - 1, batching.prompt_tokens + 1});
      }
      seconds +=
          costs.prefill(static_cast<double>(prompts.size()), static_cast<double>(entered.size()))
              .seconds.value;
      for (const Running& one : entered) {
        if (one.left > 0) running.push_back(one);
      }
      continue;
    }
    double context = 0;
    for (const Running& one : running) context += static_cast<double>(one.context);
    const auto alive = static_cast<double>(running.size());
    seconds += costs.decode(alive, context / alive).seconds.value;
    for (Running& one : running) --one.left, ++one.context;
    std::erase_if(running, [](const Running& one) { return one.left == 0; });
  }
  return seconds;
}

TEST(Rollout, FixedLengthsTakeTheClosedForm) {
  const int sequences = 6, length = 40, prompt = 10;
  const ReplicaBatching batching{prompt, 2, 8, 1000};
  const auto segments = simulate_replica(Lengths(sequences, length), batching, linear_costs());
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].kind, SegmentKind::prefill);
  EXPECT_EQ(segments[0].steps, 3);
  EXPECT_EQ(segments[1].steps, length - 1);
  // Contexts prompt + 1 .. prompt + length - 1 of every sequence.
  const double contexts = (length - 1) * (prompt + length / 2.0);
  const double expected =
      3 * 3 + 0.5 * sequences + (length - 1) * (1 + 0.25 * sequences) + 0.01 * sequences * contexts;
  EXPECT_NEAR(seconds_of(segments), expected, 1e-9);
}

TEST(Rollout, EqualLengthsRunInWavesWhereSlotsAreFewer) {
  const ReplicaBatching one_wave{10, 1, 4, 1000}, four{10, 1, 16, 1000};
  const double wave = seconds_of(simulate_replica(Lengths(4, 20), one_wave, linear_costs()));
  EXPECT_NEAR(seconds_of(simulate_replica(Lengths(16, 20), one_wave, linear_costs())), 4 * wave,
              1e-9);
  EXPECT_LT(seconds_of(simulate_replica(Lengths(16, 20), four, linear_costs())), 4 * wave);
}

TEST(Rollout, MoreSlotsThanSequencesChangeNothing) {
  const Lengths lengths = {3, 9, 1, 27, 5};
  const ReplicaBatching exact{7, 1, 5, 100}, more{7, 1, 500, 100};
  EXPECT_EQ(seconds_of(simulate_replica(lengths, exact, linear_costs())),
            seconds_of(simulate_replica(lengths, more, linear_costs())));
}

TEST(Rollout, FromFinishToFinishEqualsTokenByToken) {
  std::mt19937 random(7);
  const ReplicaCosts linear = linear_costs();
  ReplicaCosts curved = linear;
  curved.decode = [](double sequences, double context) {
    return OperationTime{Seconds{1 + std::sqrt(sequences) * std::log1p(context)}, {}};
  };
  for (int round = 0; round < 200; ++round) {
    const auto any = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    Lengths lengths(static_cast<std::size_t>(any(1, 24)));
    for (std::int64_t& length : lengths) length = any(1, any(1, 120));
    const ReplicaBatching batching{any(1, 40), any(1, 4), any(1, 30), any(1, 200)};
    const double exact = token_by_token(lengths, batching, linear);
    EXPECT_NEAR(seconds_of(simulate_replica(lengths, batching, linear)), exact, 1e-9 * exact);
    const double bent = token_by_token(lengths, batching, curved);
    EXPECT_NEAR(seconds_of(simulate_replica(lengths, batching, curved)), bent, 1e-3 * bent);
  }
}

TEST(Rollout, CoarserSegmentsKeepTimeStepsAndCommunication) {
  Lengths lengths;
  for (int i = 1; i <= 200; ++i) lengths.push_back(i);
  const auto fine = simulate_replica(lengths, {5, 1, 300, 100000}, linear_costs());
  const auto coarse = coarsened(fine, 10);
  const auto sums = [](const std::vector<RolloutSegment>& segments) {
    double communication = 0, before = 0;
    std::int64_t steps = 0;
    for (const RolloutSegment& segment : segments) {
      EXPECT_EQ(segment.start_s, before);
      before = segment.end_s;
      communication += segment.communication_s;
      steps += segment.steps;
    }
    return std::pair(communication, steps);
  };
  EXPECT_EQ(fine.size(), 200u);
  EXPECT_LE(coarse.size(), 21u);
  EXPECT_GE(coarse.size(), 10u);
  EXPECT_EQ(sums(coarse), sums(fine));
  EXPECT_EQ(seconds_of(coarse), seconds_of(fine));
}

TEST(DrawLengths, TheQuantileInvertsTheNormalDistribution) {
  for (const double p : {1e-12, 1e-4, 0.02, 0.03, 0.3, 0.5, 0.8, 0.975, 0.98, 1 - 1e-9}) {
    EXPECT_NEAR(0.5 * std::erfc(-normal_quantile(p) / std::sqrt(2.0)) / p, 1, 1e-7) << p;
  }
}

TEST(DrawLengths, MeanAndAtomAtTheCapAreThoseOfTheDistribution) {
  Workload workload;
  workload.prompts_per_step = 20000;
  workload.samples_per_prompt = 10;
  workload.response_tokens = {640, 0.5, 1024};
  const Lengths lengths = draw_lengths(workload, 3, 0);
  const double mean =
      static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})) /
      static_cast<double>(lengths.size());
  EXPECT_NEAR(mean / mean_length(workload.response_tokens), 1, 2e-3);
  const auto capped = static_cast<double>(std::count(lengths.begin(), lengths.end(), 1024));
  EXPECT_NEAR(capped / static_cast<double>(lengths.size()),
              survival(workload.response_tokens, 1023.5), 3e-3);
  EXPECT_LE(*std::max_element(lengths.begin(), lengths.end()), 1024);
  EXPECT_GE(*std::min_element(lengths.begin(), lengths.end()), 1);
}

TEST(DrawLengths, MeasuredLengthsAreDrawnEquallyOften) {
  Workload workload;
  workload.prompts_per_step = 4000;
  workload.samples_per_prompt = 2;
  workload.response_tokens = {.mean = 40, .cv = 0.8, .max = 200, .quantiles = {10, 20, 30, 100}};
  std::map<std::int64_t, int> counts;
  for (const std::int64_t length : draw_lengths(workload, 3, 0)) ++counts[length];
  ASSERT_EQ(counts.size(), 4U);
  // 2,000 each; one standard deviation is 39.
  for (const std::int64_t length : {10, 20, 30, 100}) EXPECT_NEAR(counts[length], 2000, 160);
}

TEST(DrawLengths, ADrawDependsOnSeedStepPromptAndSampleOnly) {
  Workload small, large;
  small.response_tokens = large.response_tokens = {100, 1.0, 400};
  small.prompts_per_step = 3;
  large.prompts_per_step = 9;
  small.samples_per_prompt = large.samples_per_prompt = 4;
  const Lengths some = draw_lengths(small, 11, 2), all = draw_lengths(large, 11, 2);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
  EXPECT_NE(all, draw_lengths(large, 12, 2));
  EXPECT_NE(all, draw_lengths(large, 11, 3));
  EXPECT_EQ(all[6], draw_length(large.response_tokens, 11, 2, 1, 2));
}

TEST(DrawLengths, WithoutSpreadEveryResponseHasTheMean) {
  Workload workload;
  workload.prompts_per_step = 5;
  workload.response_tokens = {4, 0, 4};
  EXPECT_EQ(draw_lengths(workload, 1, 1), Lengths(5, 4));
}

// Linear decode costs: all that differs is what prefills cost. Chunked, a prompt is read once for
// all its samples, at the rate of a full batch of 100 / 10 prompts; alone, once per entry.
TEST(Rollout, ChunkedRefillsCostTheirShareOfAFullPrefill) {
  const Lengths lengths = {30, 50, 20, 40, 60, 10, 70, 35};
  const auto prefill_seconds = [&](bool alone) {
    const ReplicaBatching batching{10, 2, 2, 100, 1, alone};
    const ReplicaCosts costs = {[](double prompts, double) {
                                  return OperationTime{Seconds{7 + prompts}, {}};
                                },
                                [](double sequences, double) {
                                  return OperationTime{Seconds{sequences}, {}};
                                }};
    double seconds = 0;
    for (const RolloutSegment& segment : simulate_replica(lengths, batching, costs)) {
      if (segment.kind == SegmentKind::prefill) seconds += segment.end_s - segment.start_s;
    }
    return seconds;
  };
  EXPECT_NEAR(prefill_seconds(false), (7 + 1) + 3 * (7 + 10) / 10.0, 1e-9);
  EXPECT_NEAR(prefill_seconds(true), 7 * (7 + 1), 1e-9);  // six ends bring one sample each
}

/// Seconds until the last replica of `each` sequences is done, the mean of so many draws of
/// lengths.
double mean_of_slowest(const Workload& workload, std::int64_t each, const ReplicaBatching& batching,
                       const ReplicaCosts& costs, int draws) {
  double drawn = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const Lengths all = draw_lengths(workload, static_cast<std::uint64_t>(draw) + 1, 0);
    double slowest = 0;
    for (std::int64_t first = 0; first < workload.sequences(); first += each) {
      const auto mine =
          std::span(all).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(each));
      slowest = std::max(slowest, seconds_of(simulate_replica(mine, batching, costs)));
    }
    drawn += slowest / draws;
  }
  return drawn;
}

// Steps that cost by themselves, by sequence, by context: the mean of many draws is the oracle.
TEST(Rollout, ExpectedDecodingIsTheMeanOfSimulatedDraws) {
  const LengthSpec clipped{640, 0.5, 1024}, reasoning{1960, 0.5, 8192}, wide{500, 1.0, 4096},
      narrow{300, 0.1, 1000}, fixed{512, 0, 512};
  struct Decoding {
    LengthSpec lengths;
    int replicas;
    std::int64_t slots;
  };
  std::vector<Decoding> cases;
  for (const LengthSpec& lengths : {clipped, reasoning, wide, narrow, fixed}) {
    for (const auto& [replicas, slots] :
         {std::pair(1, 1024), {8, 128}, {64, 16}, {8, 90}, {8, 40}, {64, 4}, {2, 32}, {64, 1}}) {
      cases.push_back({lengths, replicas, slots});
    }
  }
  using Cost = std::function<double(double, double)>;
  const std::vector<Cost> costs = {
      [](double, double) { return 1.0; },
      [](double alive, double context) { return 1 + 0.02 * alive + 1e-5 * alive * context; }};
  Workload workload;
  workload.prompts_per_step = 256;
  workload.samples_per_prompt = 4;
  workload.prompt_tokens = 256;
  for (const auto& [lengths, replicas, slots] : cases) {
    workload.response_tokens = lengths;
    const std::int64_t each = workload.sequences() / replicas;
    const ReplicaBatching batching{256, 4, slots, 1 << 30, 1};
    const DecodeProfile profile =
        DecodeLengths(lengths, 1024).profile(static_cast<double>(each), static_cast<double>(slots));
    for (const Cost& cost : costs) {
      int prefills = 0;
      const ReplicaCosts rates = {[&](double, double) {
                                    ++prefills;
                                    return OperationTime{};
                                  },
                                  [&](double alive, double context) {
                                    return OperationTime{Seconds{cost(alive, context)}, {}};
                                  }};
      const int draws = lengths.cv > 0 ? 120 : 1;
      const double drawn = mean_of_slowest(workload, each, batching, rates, draws);
      const auto step = [&](double alive, double age) {
        return DecodeTime{Seconds{cost(alive, 257 + age)}, {}};
      };
      const DecodeTime expected = slowest_decoding(profile, replicas, step);
      EXPECT_NEAR(expected.seconds.value / drawn, 1, 0.05)
          << lengths.mean << " +- " << lengths.cv << ", " << replicas << " x " << slots;
      const double refills = static_cast<double>(prefills) / draws / replicas - 1;
      EXPECT_NEAR(profile.refills, refills, 0.03 * refills + 0.1);
    }
  }
}

// From finish to finish and from full cache to full cache, against every token and block. The cache
// is the closed form's, a fifth less of it, and half: from hardly any preemption to a lot.
TEST(Rollout, APagedCacheThatRunsOutPreemptsAsTokenByToken) {
  const FollowedCosts costs;
  const ReplicaCosts rates = {
      [&](double prompts, double) {
        return OperationTime{Seconds{prompts * 512 * costs.computed}, {}};
      },
      [&](double sequences, double context) {
        return OperationTime{
            Seconds{costs.step + sequences * costs.sequence + sequences * context * costs.token},
            {}};
      }};
  Workload workload;
  workload.prompts_per_step = 600;
  workload.prompt_tokens = 512;
  for (const LengthSpec& lengths : {LengthSpec{4000, 1, 32000}, LengthSpec{900, 0.4, 4096}}) {
    workload.response_tokens = lengths;
    for (const std::int64_t slots : {100, 250, 600}) {
      const double whole = PagedCache(workload, 16).tokens(600, static_cast<double>(slots));
      for (const double part : {1.0, 0.8, 0.5}) {
        const auto drawn = drawn_lengths(lengths, 600, 3);
        const auto blocks = static_cast<std::int64_t>(std::max(part * whole, 33000.0) / 16);
        const Followed followed = follow(drawn, 512, slots, 16, blocks, costs);
        ReplicaBatching batching{512, 1, slots, 16384, 1, false};
        const double unlimited = seconds_of(simulate_replica(drawn, batching, rates));
        batching.cache_tokens = static_cast<double>(blocks) * 16;
        batching.block_tokens = 16;
        const double simulated = seconds_of(simulate_replica(drawn, batching, rates));
        EXPECT_NEAR(simulated / followed.seconds, 1, 0.05)
            << lengths.mean << ", " << slots << " on " << part;
        if (part == 0.5) {
          EXPECT_GT(simulated, 1.05 * unlimited);
        }
      }
    }
  }
}

TEST(Rollout, ACacheThatIsLargeEnoughChangesNothing) {
  const Lengths lengths = {30, 50, 20, 40, 60, 10, 70, 35};
  const auto seconds = [&](double cache) {
    return seconds_of(
        simulate_replica(lengths, {10, 2, 4, 100, 1, false, cache, 16}, linear_costs()));
  };
  EXPECT_EQ(seconds(0), seconds(4 * (10 + 70 + 16)));
  EXPECT_GT(seconds(150), seconds(0));
  // One sequence runs however small the cache is.
  EXPECT_GT(seconds(1), seconds(150));
}

}  // namespace
}  // namespace tessera
