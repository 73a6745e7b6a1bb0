// When the sequences of a rollout end, against a replica followed token by token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "simulator/rollout/replica.h"
#include "simulator/rollout/tail.h"

namespace tessera {
namespace {

using Tokens = std::vector<std::int64_t>;

ReplicaCosts costs_by_tokens() {
  return {[](double prompts, double sequences) {
            return OperationTime{Seconds{3 * prompts + 0.5 * sequences}, {}};
          },
          [](double sequences, double context) {
            return OperationTime{Seconds{1 + 0.25 * sequences + 0.01 * sequences * context}, {}};
          }};
}

/// Seconds at which each sequence ends, ascending, one decode step after the other.
std::vector<double> ends_of(const Tokens& lengths, const ReplicaBatching& batching) {
  struct One {
    std::int64_t left = 0, context = 0;
  };
  const ReplicaCosts costs = costs_by_tokens();
  std::vector<One> running;
  std::vector<double> ends;
  double now = 0;
  for (std::size_t next = 0; next < lengths.size() || !running.empty();) {
    if (next < lengths.size() && std::ssize(running) < batching.max_sequences) {
      std::vector<One> entered;
      std::vector<std::size_t> prompts;
      for (; next < lengths.size() &&
             std::ssize(running) + std::ssize(entered) < batching.max_sequences;
           ++next) {
        const std::size_t prompt = next / static_cast<std::size_t>(batching.samples_per_prompt);
        if (prompts.empty() || prompts.back() != prompt) {
          const auto tokens = (std::ssize(prompts) + 1) * batching.prompt_tokens;
          if (!prompts.empty() && tokens > batching.prefill_tokens) break;
          prompts.push_back(prompt);
        }
        entered.push_back({lengths[next] - 1, batching.prompt_tokens + 1});
      }
      now += costs.prefill(static_cast<double>(prompts.size()), static_cast<double>(entered.size()))
                 .seconds.value;
      for (const One& one : entered) one.left > 0 ? running.push_back(one) : ends.push_back(now);
      continue;
    }
    double context = 0;
    for (const One& one : running) context += static_cast<double>(one.context);
    const auto alive = static_cast<double>(running.size());
    now += costs.decode(alive, context / alive).seconds.value;
    for (One& one : running) {
      ++one.context;
      if (--one.left == 0) ends.push_back(now);
    }
    std::erase_if(running, [](const One& one) { return one.left == 0; });
  }
  return ends;
}

/// Of one replica whose call starts at zero and which begins a second later.
ReplicaRollout rollout_of(const Tokens& lengths, const ReplicaBatching& batching, int replica) {
  return {0,
          replica,
          {replica},
          active_samples(simulate_replica(lengths, batching, costs_by_tokens()), 0, 1'000'000'000)};
}

TEST(RolloutTail, SequencesEndWhenTheyDoTokenByToken) {
  std::mt19937 random(11);
  const auto any = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 100; ++round) {
    std::vector<ReplicaRollout> rollout;
    std::vector<double> ends;
    const ReplicaBatching batching{any(1, 40), any(1, 4), any(1, 30), any(1, 200)};
    for (int replica = 0; replica < 3; ++replica) {
      Tokens lengths(static_cast<std::size_t>(any(1, 40)));
      for (std::int64_t& length : lengths) length = any(1, any(1, 120));
      rollout.push_back(rollout_of(lengths, batching, replica));
      const auto own = ends_of(lengths, batching);
      ends.insert(ends.end(), own.begin(), own.end());
      EXPECT_EQ(rollout.back().samples.back().active, 0);
      EXPECT_EQ(rollout.back().samples.back().ended, std::ssize(lengths));
      for (const ActiveSample& sample : rollout.back().samples) {
        EXPECT_LE(sample.active, batching.max_sequences);
        const double now = static_cast<double>(sample.time_ns) * 1e-9 - 1;
        const auto ended = std::count_if(
            own.begin(), own.end(), [&](double end) { return end <= now * (1 + 1e-9) + 2e-9; });
        EXPECT_EQ(sample.ended, ended);
      }
    }
    std::sort(ends.begin(), ends.end());
    const std::vector<RolloutTail> tails = rollout_tails(rollout);
    ASSERT_EQ(tails.size(), 1u);
    const auto near = [](std::int64_t ns, double seconds) {
      EXPECT_NEAR(static_cast<double>(ns) * 1e-9, seconds + 1, 1e-8 * (seconds + 1));
    };
    const std::size_t n = ends.size();
    EXPECT_EQ(tails[0].sequences, std::ssize(ends));
    near(tails[0].half_ns, ends[(n + 1) / 2 - 1]);
    near(tails[0].most_ns,
         ends[static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(n))) - 1]);
    near(tails[0].end_ns, ends.back());
    EXPECT_NEAR(tails[0].share(), 1 - (ends[(9 * n + 9) / 10 - 1] + 1) / (ends.back() + 1), 1e-7);
  }
}

// Eight sequences have slots for as long as eight wait or run.
TEST(RolloutTail, SlotsStayFullUntilNothingWaits) {
  const ReplicaRollout rollout =
      rollout_of({5, 9, 14, 20, 27, 35, 44, 54, 65, 77, 90, 104}, {10, 1, 8, 1000}, 0);
  for (const ActiveSample& sample : rollout.samples) {
    if (sample.time_ns == 0 || sample.active == 0) continue;
    EXPECT_EQ(sample.active, std::min<std::int64_t>(8, 12 - sample.ended)) << sample.ended;
  }
}

TEST(RolloutTail, PreemptedAndChunkedSequencesEndOnceEach) {
  std::mt19937 random(3);
  for (const bool alone : {true, false}) {
    for (int round = 0; round < 50; ++round) {
      Tokens lengths(60);
      const unsigned longest = round % 2 == 0 ? 80 : 3;
      for (std::int64_t& length : lengths) {
        length = 1 + static_cast<std::int64_t>(random() % longest);
      }
      const ReplicaBatching batching{.prompt_tokens = 10,
                                     .samples_per_prompt = 4,
                                     .max_sequences = 24,
                                     .prefill_tokens = 40,
                                     .refills_alone = alone,
                                     .cache_tokens = round % 2 == 0 ? 500.0 : 0.0,
                                     .block_tokens = 4};
      const ReplicaRollout rollout = rollout_of(lengths, batching, 0);
      EXPECT_EQ(rollout.samples.back().ended, 60);
      std::int64_t before = 0, active = 0;
      for (const ActiveSample& sample : rollout.samples) {
        EXPECT_LE(sample.ended - before, active);  // what ends had a slot
        EXPECT_GE(sample.ended, before);
        EXPECT_LE(sample.active, std::min<std::int64_t>(24, 60 - sample.ended));
        before = sample.ended;
        active = sample.active;
      }
    }
  }
}

}  // namespace
}  // namespace tessera
