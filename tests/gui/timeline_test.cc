// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/timeline_index.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "cost_models/fit/derived_calibration.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/span_totals_model.h"
#include "gui/timeline/step_apart.h"
#include "tests/gui/model_tester.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

/// Spans of random lengths and gaps on the streams of some ranks; rank 1 does what rank 0 does.
Simulation random_simulation(unsigned seed, int ranks, int spans) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<std::int64_t>(random() % n); };
  Simulation simulation;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == 1) random.seed(seed);
    for (const Stream stream : {Stream::phases, Stream::compute, Stream::communication}) {
      std::int64_t now = below(50);
      for (int i = 0; i < spans; ++i) {
        const std::int64_t length = 1 + (below(8) == 0 ? below(2000) : below(20));
        const Phase phase = below(2) == 0 ? Phase::gen : Phase::update_actor;
        const std::string name = (below(3) == 0 ? "gather " : "F") + std::to_string(below(9));
        simulation.timeline.spans.push_back(
            {now, now + length, rank, stream, phase, 0, -1, name, below(100), below(5)});
        now += length + (below(3) == 0 ? below(60) : 0);
      }
    }
  }
  sort(simulation.timeline);
  return simulation;
}

const TimelineIndex& digits_index() {
  static const TimelineIndex index = [] {
    Problems problems;
    const Plan& plan = digits_plan();
    const auto constants = calibration_named(plan.provenance.calibration, plan.cluster, problems);
    return simulated(plan, *constants);
  }();
  return index;
}

TEST(TimeAxis, TheTimeUnderTheCursorStaysWhenItZooms) {
  const TimeAxis axis = fitted(0, 1e9, 1000);
  EXPECT_DOUBLE_EQ(axis.x_of(1e9), 1000);
  EXPECT_DOUBLE_EQ(axis.time_at(axis.x_of(123456)), 123456);
  const TimeAxis near = zoomed(axis, 0.5, 250);
  EXPECT_DOUBLE_EQ(near.time_at(250), axis.time_at(250));
  EXPECT_DOUBLE_EQ(near.ns_per_pixel, axis.ns_per_pixel / 2);
  EXPECT_DOUBLE_EQ(panned(near, 100).time_at(0), near.time_at(100));
}

TEST(TimeAxis, ShowsNothingOutsideTheTimeline) {
  EXPECT_EQ(bounded(zoomed(fitted(0, 1000, 100), 4, 50), 1000, 100), fitted(0, 1000, 100));
  const TimeAxis near = zoomed(fitted(0, 1000, 100), 0.1, 50);
  EXPECT_DOUBLE_EQ(bounded(panned(near, -1e6), 1000, 100).start_ns, 0);
  EXPECT_DOUBLE_EQ(bounded(panned(near, 1e6), 1000, 100).time_at(100), 1000);
}

TEST(TimeAxis, TicksAreRoundAndApart) {
  for (const double ns_per_pixel : {0.01, 0.7, 33.0, 4.2e3, 1e6, 7e8}) {
    const TimeAxis axis{12345 * ns_per_pixel, ns_per_pixel};
    const std::vector<Tick> ticks = ticks_of(axis, 1000, 100);
    ASSERT_GE(ticks.size(), 2u) << ns_per_pixel;
    ASSERT_LE(ticks.size(), 11u) << ns_per_pixel;
    const double step = (ticks[1].x - ticks[0].x) * ns_per_pixel;
    const double lead = step / std::pow(10.0, std::floor(std::log10(step) + 1e-9));
    EXPECT_TRUE(std::abs(lead - 1) < 1e-6 || std::abs(lead - 2) < 1e-6 || std::abs(lead - 5) < 1e-6)
        << lead;
    EXPECT_NE(ticks[0].text, ticks[1].text);
  }
}

// Late in a long trace a tick of milliseconds is told in seconds.
TEST(TimeAxis, TicksOfALongTraceAreInItsUnit) {
  const std::vector<Tick> late = ticks_of({108.2e9, 1e5}, 1000, 100);
  ASSERT_GE(late.size(), 3u);
  EXPECT_EQ(late[0].text, "108.20 s");
  EXPECT_EQ(late[1].text, "108.21 s");
  EXPECT_EQ(ticks_of({8.2e9, 1e5}, 1000, 100)[1].text, "8210 ms");
}

TEST(Timeline, RanksThatDoTheSameAreOneGroup) {
  const TimelineIndex index = index_of(random_simulation(7, 4, 40));
  ASSERT_EQ(index.groups.size(), 3u);
  EXPECT_EQ(index.groups[0].ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(ranksText(index.groups[0]), "ranks 0-1");
  EXPECT_EQ(index.groups[2].ranks, (std::vector<int>{3}));
  // A nanosecond makes them two.
  Simulation other = random_simulation(7, 2, 40);
  other.timeline.spans.back().end_ns += 1;
  EXPECT_EQ(index_of(std::move(other)).groups.size(), 2u);
}

/// What every pixel shows, span by span.
std::vector<double> painted(const TimelineIndex& index, const Lane& lane, const TimeAxis& axis,
                            int width) {
  std::vector<double> cover(static_cast<std::size_t>(width), 0);
  for (std::size_t i = lane.first; i < lane.last; ++i) {
    const double from = axis.x_of(static_cast<double>(index.span(i).start_ns));
    const double to = axis.x_of(static_cast<double>(index.span(i).end_ns));
    for (int x = std::max(0, static_cast<int>(std::floor(from))); x < width && x < to; ++x) {
      cover[static_cast<std::size_t>(x)] +=
          std::max(0.0, std::min(to, x + 1.0) - std::max(from, static_cast<double>(x)));
    }
  }
  return cover;
}

TEST(Timeline, WhatIsDrawnIsWhatIsThereAtEveryZoom) {
  const TimelineIndex index = index_of(random_simulation(11, 2, 3000));
  constexpr int kWidth = 300;
  for (const Lane& lane : index.lanes) {
    for (const double part : {1.0, 0.3, 0.02, 0.001}) {
      const double end = static_cast<double>(index.end_ns);
      const TimeAxis axis = fitted(0.4 * end * (1 - part), (0.4 + 0.6 * part) * end, kWidth);
      const std::vector<double> wanted = painted(index, lane, axis, kWidth);
      const std::vector<Slab> slabs = slabs_of(index, lane, axis, kWidth);
      ASSERT_LE(slabs.size(), 2u * kWidth);
      std::vector<bool> drawn(kWidth);
      std::size_t next = 0;
      double covered = 0;
      for (const Slab& slab : slabs) {
        EXPECT_GE(slab.first, next);
        EXPECT_LT(slab.first, slab.last);
        next = slab.last;
        for (int x = slab.from; x < std::min(slab.to, kWidth); ++x) {
          drawn[static_cast<std::size_t>(x)] = true;
        }
        if (slab.last > slab.first + 1) covered += slab.cover;
      }
      for (int x = 0; x < kWidth; ++x) {
        const auto at = static_cast<std::size_t>(x);
        // A pixel that a span ends in may be left to the span's neighbour on the left.
        if (wanted[at] > 1e-9) {
          EXPECT_TRUE(drawn[at] || drawn[at - (at > 0 ? 1 : 0)]) << x;
        } else if (at > 0 && wanted[at - 1] == 0) {
          EXPECT_FALSE(drawn[at]) << x;
        }
      }
      EXPECT_LE(covered, kWidth);
    }
  }
}

TEST(Timeline, SpansOfAPixelCoverItByTheirShare) {
  Simulation simulation;
  for (std::int64_t i = 0; i < 1000; ++i) {  // half of all time
    simulation.timeline.spans.push_back(
        {i * 10, i * 10 + 5, 0, Stream::compute, Phase::gen, 0, -1, "decode", 0, 0});
  }
  const TimelineIndex index = index_of(std::move(simulation));
  const std::vector<Slab> slabs = slabs_of(index, index.lanes[0], fitted(0, 10000, 20), 20);
  ASSERT_EQ(slabs.size(), 20u);
  for (const Slab& slab : slabs) EXPECT_NEAR(slab.cover, 0.5, 1e-9);
  EXPECT_EQ(slabs[3], (Slab{3, 4, 0.5, 150, 200}));
}

TEST(Timeline, TotalsAreThoseOfAllSpansOneByOne) {
  const TimelineIndex index = index_of(random_simulation(5, 3, 500));
  const std::vector<Lane> lanes(index.lanes.begin(), index.lanes.end());
  const std::int64_t from = index.end_ns / 4, to = index.end_ns / 2;
  std::map<std::tuple<std::string, Phase, Stream>, std::pair<std::int64_t, std::int64_t>> wanted;
  for (const Span& span : index.simulation.timeline.spans) {
    const std::int64_t busy = std::min(to, span.end_ns) - std::max(from, span.start_ns);
    if (span.stream == Stream::phases || busy <= 0) continue;
    auto& sum = wanted[{span.name[0] == 'F' ? "F" : "gather", span.phase, span.stream}];
    ++sum.first;
    sum.second += busy;
  }
  const std::vector<SpanTotal> totals = totals_of(index, lanes, from, to);
  ASSERT_EQ(totals.size(), wanted.size());
  for (const SpanTotal& total : totals) {
    const auto& [count, busy] = wanted.at({total.name, total.phase, total.stream});
    EXPECT_EQ(total.count, count);
    EXPECT_EQ(total.busy_ns, busy);
  }
  EXPECT_TRUE(std::is_sorted(totals.begin(), totals.end(),
                             [](const auto& a, const auto& b) { return a.busy_ns > b.busy_ns; }));
}

TEST(Timeline, ASpanIsFoundByItsTimeAndByItsName) {
  const TimelineIndex index = index_of(random_simulation(3, 1, 200));
  const Lane& lane = index.lanes[1];
  for (std::size_t i = lane.first; i < lane.last; ++i) {
    const double middle = static_cast<double>(index.span(i).start_ns + index.span(i).end_ns) / 2;
    EXPECT_EQ(span_at(index, lane, middle, 0), i);
  }
  EXPECT_EQ(span_at(index, lane, static_cast<double>(index.end_ns) + 1e6, 10), std::nullopt);
  const std::vector<std::uint32_t> found = matches_before(index, "GATHER 3");
  std::uint32_t wanted = 0;
  for (std::size_t i = 0; i < index.name_of.size(); ++i) {
    EXPECT_EQ(found[i], wanted);
    wanted += index.span(i).name == "gather 3" ? 1 : 0;
  }
  EXPECT_EQ(found.back(), wanted);
  EXPECT_GT(wanted, 0u);
  EXPECT_TRUE(matches_before(index, "").empty());
}

TEST(StepApart, IsTheDifferenceOfBothSidesPhaseByPhaseAndSumsToTheWhole) {
  const Simulation& simulation = digits_index().simulation;
  const Plan& plan = digits_plan();
  const std::vector<PhaseApart> apart = apart_by_phase(simulation, plan);
  double sum = 0, before = std::numeric_limits<double>::infinity();
  std::set<Phase> phases;
  for (const PhaseApart& one : apart) {
    sum += one.seconds;
    EXPECT_LE(std::abs(one.seconds), before) << "the largest first";
    before = std::abs(one.seconds);
    if (!one.phase) continue;
    EXPECT_TRUE(phases.insert(*one.phase).second) << "each once";
    const auto found = simulation.phases_s.find(*one.phase);
    const double simulated = found == simulation.phases_s.end() ? 0 : found->second;
    const auto known = plan.prediction.phases_s.find(*one.phase);
    const double predicted = known == plan.prediction.phases_s.end() ? 0 : known->second.value;
    EXPECT_DOUBLE_EQ(one.seconds, simulated - predicted) << name_of(*one.phase);
  }
  EXPECT_EQ(apart.size(), phases.size() + 1) << "and what they overlap, or leave between them";
  EXPECT_NEAR(sum, simulation.step_s - plan.prediction.step_s.value, 1e-9);
  const QString text = besidePredictedText(simulation, plan);
  ASSERT_TRUE(apart.front().phase.has_value());
  EXPECT_TRUE(text.contains(QString::fromStdString(std::string(name_of(*apart.front().phase)))))
      << text.toStdString();
}

TEST(StepApart, SaysNothingOfWhatDoesNotDiffer) {
  Plan plan = digits_plan();
  Simulation simulation;
  simulation.step_s = plan.prediction.step_s.value;
  for (const auto& [phase, seconds] : plan.prediction.phases_s) {
    simulation.phases_s[phase] = seconds.value;
  }
  const QString text = besidePredictedText(simulation, plan);
  EXPECT_FALSE(text.contains("gen ")) << text.toStdString();
  simulation.phases_s[Phase::gen] += 2;
  simulation.step_s += 1.5;
  EXPECT_TRUE(besidePredictedText(simulation, plan)
                  .contains("+1.50 s: gen +2.00 s, overlaps and gaps between calls -500.0 ms"))
      << besidePredictedText(simulation, plan).toStdString();
}

TEST(Timeline, OfAPlanItIsTheSimulators) {
  Problems problems;
  const Plan& plan = digits_plan();
  const auto constants = calibration_named(plan.provenance.calibration, plan.cluster, problems);
  EXPECT_EQ(digits_index().simulation, simulate(plan, *constants));
  EXPECT_EQ(digits_index().end_ns, std::llround(digits_index().simulation.step_s * 1e9));
}

TEST(Timeline, TheCriticalPathIsMarkedWholeAndHasNoSlack) {
  const TimelineIndex& index = digits_index();
  std::set<std::int64_t> starts, marked;
  for (const PathTask& task : index.simulation.critical_path) {
    if (!task.ranks.empty()) starts.insert(task.start_ns);
  }
  for (std::size_t i = 0; i < index.name_of.size(); ++i) {
    if (!index.on_critical_path(i)) continue;
    marked.insert(index.span(i).start_ns);
    EXPECT_EQ(index.span(i).slack_ns, 0) << index.span(i).name;
    EXPECT_TRUE(describe(index, i, nullptr).contains("critical path"));
  }
  EXPECT_EQ(marked, starts);
  ASSERT_GT(marked.size(), 5u);
  // The simulator's own slack, which some task that is off the path has.
  const auto& spans = index.simulation.timeline.spans;
  EXPECT_TRUE(std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
    return span.slack_ns > 0 &&
           describe(index, static_cast<std::size_t>(&span - spans.data()), nullptr)
               .contains("slack");
  }));
}

TEST(SpanTotalsModel, KeepsTheContract) {
  SpanTotalsModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  const TimelineIndex& index = digits_index();
  const std::vector<Lane> lanes(index.lanes.begin(), index.lanes.end());
  model.setTotals(totals_of(index, lanes, 0, index.end_ns), idle_of(index, lanes, 0, index.end_ns),
                  2 * index.end_ns);
  ASSERT_GT(model.rowCount(), 2);
  double share = 0;
  for (int row = 0; row < model.rowCount(); ++row) {
    share += model.index(row, SpanTotalsModel::Share).data(SpanTotalsModel::SortRole).toDouble();
    for (int column = 0; column < model.columnCount(); ++column) {
      // Idle time has neither phase nor stream, and little communicates within its layers.
      const bool may_be_empty = column == SpanTotalsModel::Communicates || row == model.idleRow();
      EXPECT_TRUE(may_be_empty || !model.index(row, column).data().toString().isEmpty());
    }
  }
  std::int64_t busy = 0;
  for (const SpanTotal& total : model.totals()) busy += total.busy_ns;
  EXPECT_NEAR(share, static_cast<double>(busy) / static_cast<double>(2 * index.end_ns), 1e-12);
}

TEST(SpanText, NamesThatSayLittleAreExplained) {
  EXPECT_TRUE(meaningText("F12").contains("forward"));
  EXPECT_TRUE(meaningText("B").contains("backward"));
  EXPECT_TRUE(meaningText("prepare").contains("software"));
  for (const char* name : {"optimizer", "Forward", "decode 8 sequences, 512 steps", ""}) {
    EXPECT_EQ(meaningText(name), "") << name;
  }
}

}  // namespace
}  // namespace tessera::gui
