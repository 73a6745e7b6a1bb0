// SPDX-License-Identifier: GPL-3.0-or-later
// How many sequences each replica of the rollout has active over the simulated generation, ready to
// be drawn and asked.
//
// Samples and the moments of the tail are the simulator's own (simulator/rollout/tail.h). Times
// here count from the start of the call, in nanoseconds. Views of an index, which must outlive
// them; pure functions.
#pragma once

#include <QString>
#include <cstdint>
#include <string>
#include <vector>

#include "gui/timeline/timeline_index.h"

namespace tessera::gui {

/// One replica, with its own half, nine tenths and end.
struct ReplicaSteps {
  const ReplicaRollout* rollout = nullptr;
  RolloutTail tail;
};

struct RolloutSteps {
  RolloutTail tail;                    // of all replicas together
  std::vector<ReplicaSteps> replicas;  // by replica
  std::int64_t most_active = 0;        // of any replica at any time

  bool empty() const { return replicas.empty(); }
  /// From the start of the call on.
  std::int64_t since(std::int64_t ns) const { return ns - tail.start_ns; }
  std::int64_t length_ns() const { return tail.end_ns - tail.start_ns; }
};

/// Of the first step.
RolloutSteps rollout_steps_of(const TimelineIndex& index);

/// Of a replica at a time.
ActiveSample active_at(const RolloutSteps& steps, std::size_t replica, double ns);
/// Of all replicas together.
ActiveSample active_at(const RolloutSteps& steps, double ns);

/// Where anything changes on any replica: ascending, each time once.
std::vector<std::int64_t> changes_of(const RolloutSteps& steps);

/// The pixels [from, to) in which a replica has at most so many active.
struct ActiveColumn {
  int from = 0, to = 0;
  std::int64_t active = 0;
  bool operator==(const ActiveColumn&) const = default;
};
/// From the left without gaps.
std::vector<ActiveColumn> columns_of(const RolloutSteps& steps, std::size_t replica,
                                     const TimeAxis& axis, int width);

/// The replica that a rank is part of; -1 = none.
int replica_of_rank(const RolloutSteps& steps, int rank);

/// When half and nine tenths have ended, and what the tail costs.
QString tailText(const RolloutSteps& steps);
/// A moment: how many are active, how many have ended, and of the chosen replica (-1 = none).
QString describe(const RolloutSteps& steps, int replica, double ns);

/// Every sample in a row.
std::string csv_of(const RolloutSteps& steps);
/// The moments of the tail, of all and of each replica.
std::string json_of(const RolloutSteps& steps);

}  // namespace tessera::gui
