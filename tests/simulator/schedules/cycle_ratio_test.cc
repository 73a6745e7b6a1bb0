// The slowest cycle against all simple cycles of small random graphs, compared as fractions.
#include "simulator/schedules/cycle_ratio.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>

namespace tessera {
namespace {

struct Ratio {
  std::int64_t duration = 0, steps = 0;
};

bool less(const Ratio& a, const Ratio& b) { return a.duration * b.steps < b.duration * a.steps; }

/// Of all cycles that visit no event twice, by going along every path.
std::optional<Ratio> by_brute_force(int events, const std::vector<EventWait>& waits) {
  std::optional<Ratio> most;
  std::vector<bool> visited(static_cast<std::size_t>(events));
  const std::function<void(int, int, Ratio)> walk = [&](int first, int at, Ratio so_far) {
    for (const EventWait& wait : waits) {
      if (wait.on != at || wait.event < first) continue;  // cycles begin at their smallest event
      const Ratio next{so_far.duration + wait.duration_ns, so_far.steps + wait.steps};
      if (wait.event == first) {
        if (!most || less(*most, next)) most = next;
      } else if (!visited[static_cast<std::size_t>(wait.event)]) {
        visited[static_cast<std::size_t>(wait.event)] = true;
        walk(first, wait.event, next);
        visited[static_cast<std::size_t>(wait.event)] = false;
      }
    }
  };
  for (int first = 0; first < events; ++first) walk(first, first, {});
  return most;
}

/// Waits of the same step go from smaller to larger events, so that every cycle reaches back.
std::vector<EventWait> random_waits(int events, std::mt19937& random) {
  const auto below = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  std::vector<EventWait> waits(static_cast<std::size_t>(1 + below(3 * events)));
  for (EventWait& wait : waits) {
    wait = {below(events), below(events), below(4) == 0 ? 0 : 1 + below(1'000'000'000), below(4)};
    if (wait.on >= wait.event && wait.steps == 0) wait.steps = 1;
  }
  return waits;
}

TEST(CycleRatio, IsThatOfTheSlowestOfAllCycles) {
  int without = 0, apart = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    const int events = 1 + static_cast<int>(random() % 7);
    const auto waits = random_waits(events, random);
    const auto expected = by_brute_force(events, waits);
    const SlowestCycle found = slowest_cycle(events, waits);
    if (!expected) {
      EXPECT_EQ(found.steps, 0) << seed;
      ++without;
      continue;
    }
    if (expected->duration == 0) {  // Boost names no cycle that takes no time
      EXPECT_EQ(found.period_ns(), 0) << seed;
      continue;
    }
    ASSERT_GT(found.steps, 0) << seed;
    EXPECT_EQ(found.duration_ns * expected->steps, expected->duration * found.steps) << seed;
    if (found.events.size() < static_cast<std::size_t>(events)) ++apart;
  }
  EXPECT_GT(without, 100);
  EXPECT_GT(apart, 1000);
}

TEST(CycleRatio, NamesTheEventsInTheOrderOfTheirWaits) {
  const std::vector<EventWait> waits{
      {1, 0, 5, 0}, {2, 1, 7, 0}, {0, 2, 3, 2}, {2, 2, 4, 1}, {3, 2, 900, 0}};
  const SlowestCycle found = slowest_cycle(4, waits);
  EXPECT_EQ(found.duration_ns, 15);
  EXPECT_EQ(found.steps, 2);
  ASSERT_EQ(found.events.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found.events[(i + 1) % 3], (found.events[i] + 1) % 3);
  }
}

}  // namespace
}  // namespace tessera
