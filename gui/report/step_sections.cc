// SPDX-License-Identifier: GPL-3.0-or-later
// What was worked out of a plan's step: its timeline, and who sends whom which weights.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/report/figure.h"
#include "gui/report/figure_frame.h"
#include "gui/report/sections.h"
#include "gui/reshard/methods_model.h"
#include "gui/timeline/span_text.h"
#include "gui/translations/said.h"

namespace tessera::gui {
namespace {

constexpr double kLanesWidth = 960, kLaneNames = 190, kLaneHeight = 15, kRulerHeight = 26;
constexpr int kMostGroups = 12;  // of equal ranks that are drawn
constexpr int kLaneAlpha = 90;   // of what fills next to nothing of its pixels

/// Slabs that follow one another and look alike, as one.
struct Stretch {
  int from = 0, to = 0;
  std::size_t first = 0, last = 0;
  int alpha = 255;
};

int alpha_of(double cover) {
  constexpr int kShades = 5;  // fewer make a smaller file
  const double shade = std::round(cover * kShades) / kShades;
  return kLaneAlpha + static_cast<int>((255 - kLaneAlpha) * shade);
}

std::vector<Stretch> stretches_of(const TimelineIndex& index, const Lane& lane,
                                  const TimeAxis& axis, int width) {
  std::vector<Stretch> stretches;
  for (const Slab& slab : slabs_of(index, lane, axis, width)) {
    const int alpha = alpha_of(slab.cover);
    if (!stretches.empty()) {
      Stretch& last = stretches.back();
      const bool narrow = slab.to - slab.from <= 1 && last.last - last.first > 1;
      if (narrow && last.to == slab.from && last.alpha == alpha &&
          index.phase(last.first) == index.phase(slab.first)) {
        last.to = slab.to;
        last.last = slab.last;
        continue;
      }
    }
    stretches.push_back({slab.from, slab.to, slab.first, slab.last, alpha});
  }
  return stretches;
}

QString detail_of(const TimelineIndex& index, const Stretch& stretch) {
  const Span span = index.span(stretch.first);
  const QString phase = toText(name_of(span.phase));
  if (stretch.last > stretch.first + 1) {
    return Words::tr("%1: %2 operations").arg(phase).arg(stretch.last - stretch.first);
  }
  const auto seconds = static_cast<double>(span.end_ns - span.start_ns) * 1e-9;
  return QString("%1, %2: %3").arg(phase, QString::fromStdString(span.name), secondsText(seconds));
}

void add_lane(Markup& to, const TimelineIndex& index, const Lane& lane, double top) {
  const int width = static_cast<int>(kLanesWidth - kLaneNames);
  const TimeAxis axis = fitted(0, static_cast<double>(index.end_ns), width);
  for (const Stretch& stretch : stretches_of(index, lane, axis, width)) {
    QColor colour = colourOf(index.phase(stretch.first));
    colour.setAlpha(stretch.alpha);
    add_box(to, kLaneNames + stretch.from, top + 1, stretch.to - stretch.from, kLaneHeight - 2,
            colour, detail_of(index, stretch));
  }
  add_label(to, kLaneNames - 8, top + kLaneHeight - 4, said(name_of(lane.stream)), "tick end");
}

/// The ends of flows along both sides, a cell for each pair.
void add_matrix(Markup& to, const ReshardFacts& facts) {
  constexpr double kSide = 560, kNames = 84, kAbove = 22;
  constexpr QRgb kMoves = 0xff0072b2, kStays = 0xff8a8f98;
  const int in_one = facts.by_node ? facts.ranks_per_node : 1;
  const int ends = (facts.ranks + in_one - 1) / in_one;
  const std::vector<Flow>& flows = facts.parts.front().flows;
  std::int64_t most = 1;
  for (const Flow& flow : flows) most = std::max(most, flow.bytes);
  const double cell = std::clamp(kSide / ends, 2.0, 42.0);
  open_figure(to, Words::tr("Bytes from sender (rows) to receiver (columns)"), kNames + cell * ends,
              kAbove + cell * ends);
  const int apart = std::max(1, static_cast<int>(std::ceil(26 / cell)));
  for (int end = 0; end < ends; end += apart) {
    const QString name = QString::number(end);
    add_label(to, kNames + cell * (end + 0.5), kAbove - 7, name, "tick middle");
    add_label(to, kNames - 6, kAbove + cell * (end + 0.5) + 4,
              facts.by_node ? Words::tr("node %1").arg(end) : Words::tr("rank %1").arg(end),
              "tick end");
  }
  for (const Flow& flow : flows) {
    const bool stays = flow.from == flow.to;
    QColor colour(stays ? kStays : kMoves);
    colour.setAlphaF(0.25F + 0.75F * static_cast<float>(flow.bytes) / static_cast<float>(most));
    const QString bytes = byte_number(static_cast<double>(flow.bytes));
    add_box(to, kNames + cell * flow.to, kAbove + cell * flow.from, cell - 1, cell - 1, colour,
            stays ? Words::tr("%1 stay on %2").arg(bytes).arg(flow.from)
                  : Words::tr("%1 from %2 to %3").arg(bytes).arg(flow.from).arg(flow.to));
  }
  close_figure(to, {{Words::tr("moves"), QColor(kMoves)}, {Words::tr("stays"), QColor(kStays)}});
}

QString moved_text(const ReshardFacts& facts) {
  std::map<int, std::int64_t> received;
  std::int64_t moved = 0, stayed = 0;
  for (const Flow& flow : facts.parts.front().flows) {
    (flow.from == flow.to ? stayed : moved) += flow.bytes;
    if (flow.from != flow.to) received[flow.to] += flow.bytes;
  }
  std::int64_t most = 0;
  for (const auto& [end, bytes] : received) most = std::max(most, bytes);
  const auto text = [](std::int64_t bytes) { return byte_number(static_cast<double>(bytes)); };
  return (facts.by_node ? Words::tr("%1 move between nodes, at most %2 to one of them; %3 stay "
                                    "within nodes.")
                        : Words::tr("%1 move, at most %2 to one rank; %3 stay where they are."))
      .arg(text(moved), text(most), text(stayed));
}

}  // namespace

void add_timeline(Markup& to, const TimelineIndex& index, const Plan& plan) {
  to.element("h2", Words::tr("The simulated step"));
  to.element("p", besidePredictedText(index.simulation, plan));
  const std::size_t groups = std::min(index.groups.size(), static_cast<std::size_t>(kMostGroups));
  std::size_t lanes = 0;
  for (std::size_t group = 0; group < groups; ++group) {
    lanes += lanes_of(index, index.groups[group].ranks.front()).size();
  }
  const double bottom = kLaneHeight * static_cast<double>(lanes) + 8 * static_cast<double>(groups);
  const ValueAxis axis{0, static_cast<double>(index.end_ns) * 1e-9, kLaneNames, kLanesWidth};
  open_figure(to, Words::tr("Operations of equal ranks over the step"), kLanesWidth + 20,
              bottom + kRulerHeight);
  if (index.end_ns > 0) add_grid(to, axis, 0, bottom, second_number);
  double top = 0;
  std::set<Phase> phases;
  for (std::size_t group = 0; group < groups; ++group) {
    const RankGroup& ranks = index.groups[group];
    const QString who = ranksText(ranks);
    add_label(
        to, 0, top + kLaneHeight - 4,
        who.size() <= 18
            ? who
            : Words::tr("%1 ranks, first %2").arg(ranks.ranks.size()).arg(ranks.ranks.front()),
        "name");
    for (const Lane& lane : lanes_of(index, ranks.ranks.front())) {
      add_lane(to, index, lane, top);
      for (std::size_t span = lane.first; span < lane.last && lane.stream == Stream::phases; ++span)
        phases.insert(index.phase(span));
      top += kLaneHeight;
    }
    top += 8;
  }
  std::vector<std::pair<QString, QColor>> legend;
  for (const Phase phase : phases) legend.emplace_back(toText(name_of(phase)), colourOf(phase));
  close_figure(to, legend);
  if (index.groups.size() > groups) {
    to.element("p", Words::tr("and %1 groups of ranks more").arg(index.groups.size() - groups));
  }
}

void add_reshard(Markup& to, const ReshardFacts& facts) {
  to.element("h2", Words::tr("The way of the weights"));
  if (facts.parts.empty()) {
    to.element("p", facts.no_flows);
  } else {
    if (!facts.counted.isEmpty()) to.element("p", facts.counted);
    to.element("p", moved_text(facts));
    add_matrix(to, facts);
  }
  MethodsModel methods;
  methods.setMethods(facts.methods, facts.used);
  add_table(to, methods, MethodsModel::BadRole);
}

}  // namespace tessera::gui
