// SPDX-License-Identifier: GPL-3.0-or-later
// Where a stream does nothing the window says what it waits for, as the simulator has it.
#include "gui/timeline/lane_gap.h"

#include <gtest/gtest.h>

#include <QString>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/span_totals_model.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

/// TP 2 x PP 2 training: stages wait for one another.
const TimelineIndex& digits_index() {
  static const TimelineIndex index = simulated(digits_plan(), *calibration_of(digits_plan()));
  return index;
}

std::vector<LaneGap> gaps_of(const TimelineIndex& index, const Lane& lane) {
  std::vector<LaneGap> gaps;
  std::int64_t now = 0;
  for (std::size_t i = lane.first; i <= lane.last; ++i) {
    const std::int64_t start = i == lane.last ? index.end_ns : index.span(i).start_ns;
    if (start > now) gaps.push_back({lane, now, start, i});
    if (i < lane.last) now = index.span(i).end_ns;
  }
  return gaps;
}

TEST(LaneGap, IsFoundByItsTimeAndNoSpanIsOne) {
  const TimelineIndex& index = digits_index();
  std::size_t found = 0;
  for (const Lane& lane : index.lanes) {
    for (const LaneGap& gap : gaps_of(index, lane)) {
      const double middle = static_cast<double>(gap.from_ns + gap.to_ns) / 2;
      EXPECT_EQ(gap_at(index, lane, middle), gap);
      ++found;
    }
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      EXPECT_EQ(gap_at(index, lane, static_cast<double>(index.span(i).start_ns)), std::nullopt);
    }
    EXPECT_EQ(gap_at(index, lane, static_cast<double>(index.end_ns)), std::nullopt);
  }
  EXPECT_GT(found, 20u);
}

TEST(LaneGap, EndsWhereWhatItWaitedForEnded) {
  const TimelineIndex& index = digits_index();
  for (const Lane& lane : index.lanes) {
    for (const LaneGap& gap : gaps_of(index, lane)) {
      const std::vector<std::size_t> chain = awaited_in(index, gap);
      if (gap.next == lane.last) {
        EXPECT_TRUE(chain.empty());
        continue;
      }
      ASSERT_FALSE(chain.empty()) << describe(index, gap, nullptr).toStdString();
      std::int64_t end = gap.to_ns;
      for (const std::size_t span : chain) {
        EXPECT_EQ(index.span(span).end_ns, end);
        end = index.span(span).start_ns;
      }
      EXPECT_TRUE(end <= gap.from_ns || !awaited_by(index, chain.back()));
    }
  }
}

TEST(LaneGap, OfAPipelineSaysTheStageThatItWaitsFor) {
  const TimelineIndex& index = digits_index();
  const PhaseLayout& layout = index.layouts[Phase::update_actor];
  ASSERT_EQ(layout.stage_of_rank.size(), 4u);
  bool forward = false, backward = false;
  for (const Lane& lane : index.lanes) {
    if (lane.stream != Stream::compute) continue;
    const int stage = layout.stage_of_rank[static_cast<std::size_t>(lane.rank)];
    for (const LaneGap& gap : gaps_of(index, lane)) {
      if (gap.next == lane.last || index.span(gap.next).phase != Phase::update_actor) continue;
      const QString text = describe(index, gap, nullptr);
      // The second stage begins with what the first sends, which goes on with what comes back.
      forward |= stage == 1 && index.span(gap.next).name == "F0" &&
                 text.contains("waits for <b>send F0 of stage 0</b>") &&
                 text.contains("which waited for <b>F0 of stage 0</b>");
      backward |= stage == 0 && index.span(gap.next).name == "B0" &&
                  text.contains("waits for <b>send B0 of stage 1</b>");
      EXPECT_TRUE(text.startsWith("<b>idle ")) << text.toStdString();
    }
  }
  EXPECT_TRUE(forward);
  EXPECT_TRUE(backward);
}

TEST(LaneGap, IdleTimeIsWhatNoLineOfARankFills) {
  const TimelineIndex& index = digits_index();
  const std::int64_t from = index.end_ns / 5, to = index.end_ns;
  const IdleTotal all = idle_of(index, index.lanes, from, to);
  std::set<std::int64_t> edges{from, to};
  for (const Span& span : index.simulation.timeline.spans) {
    edges.insert(std::clamp(span.start_ns, from, to));
    edges.insert(std::clamp(span.end_ns, from, to));
  }
  std::int64_t wanted = 0;
  for (const RankGroup& group : index.groups) {
    for (const int rank : group.ranks) {
      for (auto edge = edges.begin(); std::next(edge) != edges.end(); ++edge) {
        const auto lanes = lanes_of(index, rank);
        const bool busy = std::any_of(lanes.begin(), lanes.end(), [&](const Lane& lane) {
          return lane.stream != Stream::phases &&
                 span_at(index, lane, (static_cast<double>(*edge) + 0.5), 0);
        });
        if (!busy) wanted += *std::next(edge) - *edge;
      }
    }
  }
  EXPECT_EQ(all.ns, wanted);
  EXPECT_GT(all.gaps, 3);
  // Of single lanes it is what their spans leave.
  for (const Lane& lane : index.lanes) {
    std::int64_t busy = 0;
    for (const SpanTotal& total : totals_of(index, std::span(&lane, 1), from, to)) {
      busy += total.busy_ns;
    }
    EXPECT_EQ(idle_of(index, std::span(&lane, 1), from, to).ns, to - from - busy);
  }
}

TEST(LaneGap, TheTotalsHaveIdleTimeInItsPlace) {
  const TimelineIndex& index = digits_index();
  SpanTotalsModel model;
  const IdleTotal idle = idle_of(index, index.lanes, 0, index.end_ns);
  model.setTotals(totals_of(index, index.lanes, 0, index.end_ns), idle, 4 * index.end_ns);
  ASSERT_GE(model.idleRow(), 0);
  EXPECT_EQ(model.index(model.idleRow(), SpanTotalsModel::Name).data(), "idle");
  EXPECT_NEAR(model.index(model.idleRow(), SpanTotalsModel::Share)
                  .data(SpanTotalsModel::SortRole)
                  .toDouble(),
              static_cast<double>(idle.ns) / static_cast<double>(4 * index.end_ns), 1e-12);
  EXPECT_FALSE(model.index(model.idleRow(), 0).data(SpanTotalsModel::PhaseRole).isValid());
  EXPECT_TRUE(
      std::is_sorted(model.totals().begin(), model.totals().end(),
                     [](const SpanTotal& a, const SpanTotal& b) { return a.busy_ns > b.busy_ns; }));
}

TEST(LaneGap, WhatTensorParallelRanksExchangeIsPartOfTheirPasses) {
  const TimelineIndex& index = digits_index();
  std::int64_t spans = 0, parts = 0;
  for (std::size_t i = 0; i < index.name_of.size(); ++i) {
    const std::int64_t ns = communication_ns(index, i);
    spans += ns;
    const Span& span = index.span(i);
    if (span.phase != Phase::update_actor || span.stream != Stream::compute) continue;
    if (span.name[0] != 'F' && span.name[0] != 'B') continue;
    EXPECT_GT(ns, 0) << span.name;
    EXPECT_LT(ns, span.end_ns - span.start_ns) << span.name;
    const QString text = describe(index, i, nullptr);
    EXPECT_TRUE(text.contains("communicates within its layers (tp2)")) << text.toStdString();
  }
  for (const SpanTotal& total : totals_of(index, index.lanes, 0, index.end_ns)) {
    parts += total.communication_ns;
  }
  EXPECT_GT(spans, 0);
  EXPECT_EQ(parts, spans);
}

// Else instants wrap around, and pictures of it show numbers below nothing.
TEST(TimelineIndex, AStepBeyondIntegerNanosecondsIsRefused) {
  Calibration slow = *calibration_of(digits_plan());
  slow.matmul_flops.value = 1e-3;
  EXPECT_THROW(simulated(digits_plan(), slow), Error);
}

}  // namespace
}  // namespace tessera::gui
