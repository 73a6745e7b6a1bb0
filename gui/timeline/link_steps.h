// SPDX-License-Identifier: GPL-3.0-or-later
// The load of a cluster's links over the simulated step, ready to be drawn and asked: one lane for
// links that carry the same, the fullest first.
//
// Loads are the simulator's own (simulator/tasks/link_load.h), shares of what a link carries;
// nothing is priced here. Views of an index, which must outlive them; pure functions. Nanoseconds
// from the timeline's start.
#pragma once

#include <QString>
#include <cstdint>
#include <string>
#include <vector>

#include "gui/timeline/rank_link.h"
#include "gui/timeline/timeline_index.h"

namespace tessera::gui {

/// By rank.
std::vector<RankLink> busiest_links(const Simulation& simulation);

/// Links of one kind whose loads and uses are equal; the first stands for all.
struct LinkLane {
  std::vector<const LinkLoad*> links;
  const LinkLoad& first() const { return *links.front(); }
};

/// What ranks exchange in a phase and no link's load has.
struct Uncounted {
  Phase phase = Phase::gen;
  Exchange exchange = Exchange::none;  // none: within passes (layers; shards that nothing hides)
  double seconds = 0;                  // of a step, of the rank that waits for it most
};

struct LinkSteps {
  std::vector<LinkLane> lanes;       // by the peak of their load, the fullest first
  std::vector<Uncounted> uncounted;  // what takes longest first
  const std::vector<CallSlack>* calls = nullptr;
  std::int64_t window_ns = 0, end_ns = 0;

  bool empty() const { return lanes.empty(); }
  /// The window of a time; the last one behind the end.
  std::size_t window(double ns) const;
};
LinkSteps link_steps_of(const TimelineIndex& index);

/// A rank sends or receives over one of the lane's links.
bool carries(const LinkLane& lane, int rank);

double load_at(const LinkSteps& steps, std::size_t lane, double ns);
/// What loads a lane at a time, the most first.
struct UseThen {
  const LinkUse* use = nullptr;
  double load = 0;
};
std::vector<UseThen> uses_at(const LinkSteps& steps, std::size_t lane, double ns);

/// The pixels [from, to) in which a lane is at most so full.
struct LoadColumn {
  int from = 0, to = 0;
  float load = 0;
  bool operator==(const LoadColumn&) const = default;
};
/// From the left without gaps.
std::vector<LoadColumn> columns_of(const LinkSteps& steps, std::size_t lane, const TimeAxis& axis,
                                   int width);
/// Where a lane's load next changes behind a time (step 1), or before it (-1).
double next_change(const LinkSteps& steps, std::size_t lane, double ns, int step);

/// "node 3, card 1, out", with how many others carry the same.
QString nameOf(const LinkLane& lane);
/// "network card", "leaf uplink", "uplink of a PCIe switch", "port within the node".
QString kindText(LinkKind kind);
/// "46.2 GB/s".
QString rateText(double bytes_per_s);
/// Which link is the fullest, and when.
QString loadText(const LinkSteps& steps);
/// What the loads are made of, and what ranks exchange that is in none of them.
QString countedText(const LinkSteps& steps);
/// A lane at a moment: how full, and which calls load it, a line each.
QString describe(const LinkSteps& steps, std::size_t lane, double ns);

/// A row for each link.
std::string csv_of(const LinkSteps& steps);
/// A lane for each, with its links, its load by window and its uses; and what no lane counts.
std::string json_of(const LinkSteps& steps);

}  // namespace tessera::gui
