// Replicas that share experts: oracles are a loop over single tokens, cases counted by hand, and
// the mean of many draws.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "cost_models/decoding.h"
#include "cost_models/spec/expert_parallel.h"
#include "simulator/rollout/draw_lengths.h"
#include "simulator/rollout/replica.h"
#include "tests/simulator/linear_costs.h"

namespace tessera {
namespace {

using Lengths = std::vector<std::int64_t>;

std::vector<std::vector<RolloutSegment>> together(const std::vector<Lengths>& lengths,
                                                  const ReplicaBatching& batching,
                                                  const ReplicaCosts& costs) {
  const std::vector<std::span<const std::int64_t>> views(lengths.begin(), lengths.end());
  return simulate_lockstep(views, batching, costs);
}

double seconds_of(const std::vector<std::vector<RolloutSegment>>& replicas) {
  return replicas.front().back().end_s;
}

// One replica as the rule has it, token by token.
struct Single {
  explicit Single(const Lengths& all) : lengths(all) {}

  struct Running {
    std::int64_t left = 0, context = 0;
  };
  const Lengths& lengths;
  std::vector<Running> running;
  std::size_t next = 0;
  bool decoded = false;

  bool admits(const ReplicaBatching& batching) const {
    return next < lengths.size() && std::ssize(running) < batching.max_sequences;
  }
  double cached() const {
    double sum = 0;
    for (const Running& one : running) sum += static_cast<double>(one.context);
    return sum;
  }
  double admit(const ReplicaBatching& batching, const ReplicaCosts& costs) {
    std::int64_t entered = 0;
    std::vector<Running> fresh;
    for (; admits(batching) && std::ssize(running) + entered < batching.max_sequences; ++entered) {
      if (entered > 0 && (entered + 1) * batching.prompt_tokens > batching.prefill_tokens) break;
      fresh.push_back({lengths[next++] - 1, batching.prompt_tokens + 1});
    }
    std::erase_if(fresh, [](const Running& one) { return one.left == 0; });
    running.insert(running.end(), fresh.begin(), fresh.end());
    const auto prompts = static_cast<double>(entered);
    if (batching.refills_alone || !decoded) return costs.prefill(prompts, prompts).seconds.value;
    const double whole = std::max(prompts, std::floor(static_cast<double>(batching.prefill_tokens) /
                                                      static_cast<double>(batching.prompt_tokens)));
    return costs.prefill(whole, whole).seconds.value * prompts / whole;
  }
  void decode() {
    decoded = true;
    for (Running& one : running) --one.left, ++one.context;
    std::erase_if(running, [](const Running& one) { return one.left == 0; });
  }
};

// Every pass is one of all replicas: the prefills of those that have some, or a token of each
// sequence, at the rows of the fullest and the keys of the one that reads most.
double token_by_token(const std::vector<Lengths>& lengths, const ReplicaBatching& batching,
                      const ReplicaCosts& costs) {
  std::vector<Single> replicas(lengths.begin(), lengths.end());
  double seconds = 0;
  while (true) {
    double prefill = -1;
    for (Single& each : replicas) {
      if (each.admits(batching)) prefill = std::max(prefill, each.admit(batching, costs));
    }
    if (prefill >= 0) {
      seconds += prefill;
      continue;
    }
    double rows = 0, read = 0;
    for (const Single& each : replicas) {
      rows = std::max(rows, static_cast<double>(each.running.size()));
      read = std::max(read, each.cached());
    }
    if (rows == 0) return seconds;
    seconds += costs.decode(rows, read / rows).seconds.value;
    for (Single& each : replicas) each.decode();
  }
}

TEST(Lockstep, FromEventToEventEqualsTokenByToken) {
  std::mt19937 random(11);
  const ReplicaCosts costs = linear_costs();
  for (int round = 0; round < 200; ++round) {
    const auto any = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    std::vector<Lengths> lengths(static_cast<std::size_t>(any(1, 6)));
    for (Lengths& own : lengths) {
      own.resize(static_cast<std::size_t>(any(1, 20)));
      for (std::int64_t& length : own) length = any(1, any(1, 90));
    }
    const ReplicaBatching batching{any(1, 40), 1, any(1, 24), any(1, 200), 1, any(0, 1) == 1};
    const double exact = token_by_token(lengths, batching, costs);
    // Which replica reads most may change within a piece.
    EXPECT_NEAR(seconds_of(together(lengths, batching, costs)), exact, 2e-4 * exact);
  }
}

TEST(Lockstep, OfOneReplicaIsTheReplica) {
  const Lengths lengths = {30, 50, 20, 40, 60, 10, 70, 35};
  const ReplicaBatching batching{10, 2, 4, 100, 1, false, 150, 16};
  const auto alone = simulate_replica(lengths, batching, linear_costs());
  const auto group = together({lengths}, batching, linear_costs());
  ASSERT_EQ(group.front().size(), alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(group.front()[i].end_s, alone[i].end_s);
  }
}

// 10 and 40 tokens: 39 steps of one row each, and the first replica waits through 30 of them.
TEST(Lockstep, AReplicaThatHasEndedWorksOnUntilAllHave) {
  const ReplicaBatching batching{1, 1, 4, 100};
  const ReplicaCosts costs{[](double, double) {
                             return OperationTime{Seconds{5}, {}};
                           },
                           [](double sequences, double) {
                             return OperationTime{Seconds{sequences}, {}};
                           }};
  const auto replicas = together({{10}, {40}}, batching, costs);
  ASSERT_EQ(replicas.size(), 2U);
  EXPECT_EQ(replicas[0].back().sequences, 0);
  EXPECT_EQ(replicas[0].back().start_s, 5 + 9);
  EXPECT_EQ(replicas[0].back().end_s, 5 + 39);
  EXPECT_EQ(replicas[1].back().end_s, 5 + 39);
  // Four rows of the one are four of the other: nothing is spared by its three that have ended.
  const auto padded = together({{10, 10, 10, 40}, {40, 40, 40, 40}}, batching, costs);
  EXPECT_EQ(seconds_of(padded), 5 + 39 * 4);
}

TEST(Lockstep, ReplicasShareExpertsWhereTheseAreDealtBeyondTensorParallelRanks) {
  const auto of = [](int tp, int ep, int etp) {
    Degrees degrees;
    degrees.tp = tp;
    degrees.ep = ep;
    degrees.etp = etp;
    return replicas_in_lockstep(degrees);
  };
  EXPECT_EQ(of(4, 1, 4), 1);   // cut as the rest is
  EXPECT_EQ(of(4, 4, 1), 1);   // whole ones over a replica's ranks
  EXPECT_EQ(of(2, 4, 2), 4);   // dealt to four replicas, and cut
  EXPECT_EQ(of(2, 16, 1), 8);  // whole ones over eight replicas of two ranks
}

// Steps that cost by themselves, by sequence, by context; all replicas in one group, or in two.
TEST(Lockstep, ExpectedDecodingIsTheMeanOfSimulatedDraws) {
  const LengthSpec clipped{640, 0.5, 1024}, reasoning{1960, 0.5, 8192}, fixed{512, 0, 512};
  Workload workload;
  workload.prompts_per_step = 256;
  workload.samples_per_prompt = 4;
  workload.prompt_tokens = 256;
  const auto cost = [](double alive, double context) {
    return 1 + 0.02 * alive + 1e-5 * alive * context;
  };
  const ReplicaCosts rates{[](double, double) { return OperationTime{}; },
                           [&](double alive, double context) {
                             return OperationTime{Seconds{cost(alive, context)}, {}};
                           }};
  for (const LengthSpec& lengths : {clipped, reasoning, fixed}) {
    for (const auto& [slots, group] : {std::pair(128, 8), {128, 4}, {48, 8}, {16, 8}}) {
      workload.response_tokens = lengths;
      constexpr int kReplicas = 8, kDraws = 24;
      ParallelLayout layout;
      layout.dp = kReplicas;
      layout.ep = group;
      const ReplicaBatching batching{256, 4, slots, 1 << 30, 1};
      double drawn = 0;
      const int draws = lengths.cv > 0 ? kDraws : 1;
      for (int draw = 0; draw < draws; ++draw) {
        const Lengths all = draw_lengths(workload, static_cast<std::uint64_t>(draw) + 1, 0);
        double slowest = 0;
        for (const auto& each :
             simulate_replicas(all, ReplicaDeal{workload, PromptDealing::whole_prompts, layout},
                               batching, rates)) {
          slowest = std::max(slowest, each.back().end_s);
        }
        drawn += slowest / draws;
      }
      const DecodeProfile profile =
          DecodeLengths(lengths, 1024).profile(1024.0 / kReplicas, static_cast<double>(slots));
      const auto step = [&](double alive, double age) {
        return DecodeTime{Seconds{cost(alive, 257 + age)}, {}};
      };
      const double expected = slowest_decoding(profile, kReplicas, step, group).seconds.value;
      EXPECT_NEAR(expected / drawn, 1, 0.05)
          << lengths.mean << " +- " << lengths.cv << ", " << slots << " slots, groups of " << group;
    }
  }
}

}  // namespace
}  // namespace tessera
