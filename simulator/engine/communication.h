// What ranks exchange in a run, by kind, phase and group: what computing hides of it and what not.
//
// Pure functions over tasks and their run; seconds and bytes of one rank.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/engine/plan_tasks.h"

namespace tessera {

/// Of the rank on which the most of it is exposed.
struct CommunicationPart {
  /// `none` is what layers exchange within their passes (tensor, context and expert parallelism) as
  /// far as nothing there hides it; its group is not known here.
  Exchange exchange = Exchange::none;
  Phase phase = Phase::gen;
  int group_ranks = 0, group_nodes = 0;  // 0: not known
  int rank = 0;
  std::int64_t tasks = 0;
  double seconds = 0;                     // of the rank's streams
  double exposed_s = 0;                   // while the rank does not compute; the rest is hidden
  double card_bytes = 0, port_bytes = 0;  // of the rank, one way, between nodes and within one
  std::int64_t slack_ns = 0;              // the least of its tasks, over all ranks
  bool operator==(const CommunicationPart&) const = default;
};

/// Over all steps, what is most exposed first. Parts that take no time are left out.
std::vector<CommunicationPart> communication_parts(const IterationTasks& tasks,
                                                   const std::vector<TaskRun>& runs, int ranks);

}  // namespace tessera
