// Max-min fair rates against exact progressive filling in fractions, and flows in time against a
// run that works every rate out anew.
#include "simulator/network/flows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

namespace tessera {
namespace {

using Fraction = boost::multiprecision::cpp_rational;

/// Progressive filling by its definition: all rates grow together; where a link is full, its flows
/// stop. Exact.
std::vector<Fraction> filled(const std::vector<double>& capacity, const std::vector<Flow>& flows,
                             const std::vector<bool>& running) {
  std::vector<Fraction> rates(flows.size(), 0);
  std::vector<bool> grows = running;
  while (std::find(grows.begin(), grows.end(), true) != grows.end()) {
    std::vector<Fraction> free(capacity.begin(), capacity.end());
    std::vector<Fraction> growing(capacity.size(), 0);  // weights
    for (std::size_t i = 0; i < flows.size(); ++i) {
      for (std::size_t k = 0; k < flows[i].links.size(); ++k) {
        const auto link = static_cast<std::size_t>(flows[i].links[k]);
        const Fraction weight = flows[i].weights.empty() ? 1 : flows[i].weights[k];
        if (running[i]) free[link] -= rates[i] * weight;
        if (grows[i]) growing[link] += weight;
      }
    }
    Fraction step = -1;
    for (std::size_t link = 0; link < capacity.size(); ++link) {
      if (growing[link] == 0) continue;
      const Fraction most = free[link] / growing[link];
      if (step < 0 || most < step) step = most;
    }
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (grows[i]) rates[i] += step;
    }
    for (std::size_t i = 0; i < flows.size(); ++i) {
      for (const int link : flows[i].links) {
        const auto at = static_cast<std::size_t>(link);
        if (growing[at] > 0 && free[at] == step * growing[at]) grows[i] = false;
      }
    }
  }
  return rates;
}

/// Ends of flows, every rate worked out anew at every change.
std::vector<double> followed(const std::vector<double>& capacity, const std::vector<Flow>& flows) {
  std::vector<Fraction> left, ends(flows.size(), -1);
  for (const Flow& flow : flows) left.emplace_back(flow.bytes);
  Fraction now = 0;
  while (true) {
    std::vector<bool> running(flows.size());
    Fraction next = -1;
    const auto sooner = [&](const Fraction& time) {
      if (next < 0 || time < next) next = time;
    };
    for (std::size_t i = 0; i < flows.size(); ++i) {
      running[i] = ends[i] < 0 && Fraction(flows[i].start_s) <= now;
      if (ends[i] < 0 && !running[i]) sooner(Fraction(flows[i].start_s));
    }
    const std::vector<Fraction> rates = filled(capacity, flows, running);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (running[i]) sooner(now + left[i] / rates[i]);
    }
    if (next < 0) break;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (!running[i]) continue;
      left[i] -= rates[i] * (next - now);
      if (left[i] == 0) ends[i] = next;
    }
    now = next;
  }
  std::vector<double> seconds;
  for (const Fraction& end : ends) seconds.push_back(end.convert_to<double>());
  return seconds;
}

struct Case {
  std::vector<double> capacity;
  std::vector<Flow> flows;
};

/// Small whole numbers, so that ties and shared ends occur and fractions stay short.
Case random_case(std::mt19937& random, int most_flows) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  Case drawn;
  const int links = draw(1, 6);
  for (int i = 0; i < links; ++i) drawn.capacity.push_back(draw(1, 6));
  const int flows = draw(1, most_flows);
  for (int i = 0; i < flows; ++i) {
    Flow flow{.links = {},
              .bytes = static_cast<double>(draw(1, 9)),
              .start_s = draw(0, 2) == 0 ? static_cast<double>(draw(0, 4)) : 0.0};
    for (int link = 0; link < links; ++link) {
      if (draw(0, 2) == 0) flow.links.push_back(link);
    }
    if (flow.links.empty()) flow.links.push_back(draw(0, links - 1));
    if (draw(0, 1) == 0) {
      for (std::size_t k = 0; k < flow.links.size(); ++k) flow.weights.push_back(draw(1, 4));
    }
    drawn.flows.push_back(flow);
  }
  return drawn;
}

TEST(Flows, RatesAreThoseOfProgressiveFilling) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const Case drawn = random_case(random, 12);
    const std::vector<double> rates = fair_rates(drawn.capacity, drawn.flows);
    const std::vector<Fraction> exact =
        filled(drawn.capacity, drawn.flows, std::vector<bool>(drawn.flows.size(), true));
    for (std::size_t flow = 0; flow < rates.size(); ++flow) {
      const auto wanted = exact[flow].convert_to<double>();
      ASSERT_NEAR(rates[flow], wanted, 1e-12 * wanted) << "case " << i << ", flow " << flow;
    }
  }
}

TEST(Flows, EndWhenAllRatesAreWorkedOutAnewAtEveryChange) {
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    const Case drawn = random_case(random, 7);
    const std::vector<double> ends = finish_times(drawn.capacity, drawn.flows);
    const std::vector<double> wanted = followed(drawn.capacity, drawn.flows);
    for (std::size_t flow = 0; flow < ends.size(); ++flow) {
      ASSERT_NEAR(ends[flow], wanted[flow], 1e-9 * wanted[flow]) << "case " << i << ", " << flow;
    }
  }
}

/// Ends of flows, all rates worked out together at every change, in doubles: for sizes that
/// fractions are too slow for. fair_rates is held against them above.
std::vector<double> refilled(const std::vector<double>& capacity, const std::vector<Flow>& flows) {
  std::vector<double> left, ends(flows.size(), -1);
  for (const Flow& flow : flows) left.push_back(flow.bytes);
  for (double now = 0;;) {
    std::vector<Flow> running;
    std::vector<std::size_t> which;
    double next = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (ends[i] >= 0) continue;
      if (flows[i].start_s > now) {
        next = std::min(next, flows[i].start_s);
        continue;
      }
      running.push_back(flows[i]);
      which.push_back(i);
    }
    const std::vector<double> rates = fair_rates(capacity, running);
    for (std::size_t k = 0; k < which.size(); ++k) {
      next = std::min(next, now + left[which[k]] / rates[k]);
    }
    if (std::isinf(next)) return ends;
    for (std::size_t k = 0; k < which.size(); ++k) {
      double& rest = left[which[k]];
      if (now + rest / rates[k] <= next * (1 + 1e-13)) ends[which[k]] = next;
      rest -= rates[k] * (next - now);
    }
    now = next;
  }
}

TEST(Flows, OfManyLinksChangeOnlyAsFarAsBottlenecksAreTouchedAndEndAlike) {
  std::mt19937 random(13);
  for (int i = 0; i < 60; ++i) {
    Case drawn;
    // From few links that all flows meet on to many on which changes stay near.
    const int links = 30 << i % 4;
    std::uniform_real_distribution<double> size(1, 10), time(0, 3);
    std::uniform_int_distribution<int> link(0, links - 1);
    for (int k = 0; k < links; ++k) drawn.capacity.push_back(size(random));
    for (int k = 0; k < 120; ++k) {
      Flow flow{.links = {link(random)}, .bytes = size(random), .start_s = time(random)};
      for (const int other : {link(random), link(random)}) {
        if (std::find(flow.links.begin(), flow.links.end(), other) == flow.links.end()) {
          flow.links.push_back(other);
        }
      }
      drawn.flows.push_back(flow);
    }
    const std::vector<double> ends = finish_times(drawn.capacity, drawn.flows);
    const std::vector<double> wanted = refilled(drawn.capacity, drawn.flows);
    for (std::size_t flow = 0; flow < ends.size(); ++flow) {
      ASSERT_NEAR(ends[flow], wanted[flow], 1e-9 * wanted[flow]) << "case " << i << ", " << flow;
    }
  }
}

TEST(Flows, OverCardsBehindUplinksEndAsIfAllWereWorkedOutAnew) {
  // Most links never limit a flow; some nodes' cards do, once their uplinks have little to do.
  std::mt19937 random(19);
  for (int i = 0; i < 20; ++i) {
    constexpr int kNodes = 6, kCards = 4;
    Case drawn;
    std::uniform_real_distribution<double> size(1, 10), time(0, 2), weight(0.25, 2);
    std::uniform_int_distribution<int> card(0, kNodes * kCards - 1);
    for (int k = 0; k < 2 * kNodes * kCards; ++k) drawn.capacity.push_back(size(random));
    for (int k = 0; k < 2 * kNodes; ++k) drawn.capacity.push_back(3 * size(random));
    while (drawn.flows.size() < 150) {
      const int from = card(random), to = card(random);
      if (from / kCards == to / kCards) continue;
      const int uplinks = 2 * kNodes * kCards;
      Flow& flow = drawn.flows.emplace_back();
      flow = {.links = {2 * from, uplinks + 2 * (from / kCards), 2 * to + 1,
                        uplinks + 2 * (to / kCards) + 1},
              .bytes = size(random),
              .start_s = time(random)};
      if (i % 2 == 0) continue;
      for (int k = 0; k < 4; ++k) flow.weights.push_back(weight(random));
    }
    const std::vector<double> ends = finish_times(drawn.capacity, drawn.flows);
    const std::vector<double> wanted = refilled(drawn.capacity, drawn.flows);
    for (std::size_t flow = 0; flow < ends.size(); ++flow) {
      ASSERT_NEAR(ends[flow], wanted[flow], 1e-9 * wanted[flow]) << "case " << i << ", " << flow;
    }
  }
}

TEST(Flows, OfManyLinksEachAfterThousandsOfChangesEndAsIfAllWereWorkedOutAnew) {
  // Rings over half of the links and single ones, so that bottlenecks overtake one another, and so
  // many changes of the same links that sums kept by them would show it.
  std::mt19937 random(29);
  for (int i = 0; i < 4; ++i) {
    constexpr int kLinks = 14;
    std::uniform_real_distribution<double> size(1, 10), time(0, 2500), weight(0.1, 2);
    Case drawn;
    for (int k = 0; k < kLinks; ++k) drawn.capacity.push_back(size(random));
    while (drawn.flows.size() < 1500) {
      Flow flow{.links = {}, .bytes = size(random), .start_s = time(random)};
      const unsigned part = random() % 3 == 0 ? 2 : 6;
      for (int link = 0; link < kLinks; ++link) {
        if (random() % part == 0) flow.links.push_back(link);
      }
      for (std::size_t k = 0; i > 0 && k < flow.links.size(); ++k) {
        flow.weights.push_back(weight(random));
      }
      if (!flow.links.empty()) drawn.flows.push_back(flow);
    }
    const std::vector<double> ends = finish_times(drawn.capacity, drawn.flows);
    const std::vector<double> wanted = refilled(drawn.capacity, drawn.flows);
    for (std::size_t flow = 0; flow < ends.size(); ++flow) {
      ASSERT_NEAR(ends[flow], wanted[flow], 1e-9 * wanted[flow]) << "case " << i << ", " << flow;
    }
  }
}

TEST(Flows, AFlowThatEndsLeavesItsShareToTheOthers) {
  // Two flows over a link of 10 B/s: 5 B/s each until the first has its 10 bytes, then 10 B/s.
  const std::vector<double> capacity{10};
  const std::vector<Flow> flows{{{0}, 10, 0}, {{0}, 30, 0}};
  EXPECT_EQ(finish_times(capacity, flows), (std::vector<double>{2, 4}));
}

TEST(Flows, OfSegmentsCarryTheirBytesAndNeverMoreThanALinkDoes) {
  std::mt19937 random(17);
  for (int i = 0; i < 200; ++i) {
    const Case drawn = random_case(random, 9);
    FlowRun run(drawn.capacity);
    run.keep_segments();
    for (const Flow& flow : drawn.flows) run.begin(0, flow);
    run.settle(0);
    while (!std::isinf(run.next_end())) {
      const double now = run.next_end();
      run.take_ended(now, now * (1 + 1e-12));
      run.settle(now);
    }
    std::vector<double> carried(drawn.flows.size(), 0);
    for (const FlowSegment& part : run.segments()) {
      carried[static_cast<std::size_t>(part.flow)] += part.rate * (part.end_s - part.start_s);
      // What crosses each of its links in the middle of it.
      const double time = (part.start_s + part.end_s) / 2;
      std::vector<double> load(drawn.capacity.size(), 0);
      for (const FlowSegment& other : run.segments()) {
        if (other.start_s > time || other.end_s <= time) continue;
        const Flow& flow = drawn.flows[static_cast<std::size_t>(other.flow)];
        for (std::size_t k = 0; k < flow.links.size(); ++k) {
          load[static_cast<std::size_t>(flow.links[k])] +=
              other.rate * (flow.weights.empty() ? 1 : flow.weights[k]);
        }
      }
      for (std::size_t link = 0; link < load.size(); ++link) {
        ASSERT_LE(load[link], drawn.capacity[link] * (1 + 1e-9));
      }
    }
    for (std::size_t flow = 0; flow < carried.size(); ++flow) {
      ASSERT_NEAR(carried[flow], drawn.flows[flow].bytes, 1e-9) << "case " << i;
    }
  }
}

TEST(EndTimes, KnowTheEarliestOfTimesThatChange) {
  std::mt19937 random(23);
  const double never = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 50; ++i) {
    EndTimes times;
    std::vector<double> all;
    const auto place = [&](int places) { return static_cast<int>(random() % (places + 1)); };
    for (int change = 0; change < 200; ++change) {
      std::vector<std::pair<int, double>> some;
      for (std::size_t count = random() % 12; count > 0; --count) {
        const int at = place(static_cast<int>(all.size()));
        const bool again =
            std::any_of(some.begin(), some.end(), [&](const auto& one) { return one.first == at; });
        if (again) continue;
        some.emplace_back(at, random() % 5 == 0 ? never : static_cast<double>(random() % 50));
        all.resize(std::max(all.size(), static_cast<std::size_t>(at) + 1), never);
        all[static_cast<std::size_t>(at)] = some.back().second;
      }
      if (some.size() == 1) {
        times.set(some.front().first, some.front().second);
      } else {
        times.set(some);
      }
      const auto least = std::min_element(all.begin(), all.end());
      if (least == all.end()) continue;
      ASSERT_EQ(times.earliest(), *least);
      if (*least == never) continue;
      ASSERT_EQ(times.first(), least - all.begin());
    }
  }
}

TEST(Flows, ThatCrossNothingOrHaveNoBytesEndWhereTheyBegin) {
  const std::vector<double> capacity{10};
  const std::vector<Flow> flows{{{}, 10, 3}, {{0}, 0, 2}};
  EXPECT_EQ(finish_times(capacity, flows), (std::vector<double>{3, 2}));
  EXPECT_EQ(fair_rates(capacity, std::vector<Flow>{{{}, 1, 0}}).front(),
            std::numeric_limits<double>::infinity());
}

TEST(Flows, ApartFromOneAnotherDoNotTouch) {
  std::int64_t changes = 0;
  const std::vector<double> capacity{10, 5};
  const std::vector<Flow> flows{{{0}, 10, 0}, {{1}, 10, 0}};
  EXPECT_EQ(finish_times(capacity, flows, &changes), (std::vector<double>{1, 2}));
  EXPECT_EQ(changes, 4);
}

}  // namespace
}  // namespace tessera
