// A graph of timed tasks on the streams of ranks, and the discrete-event run of it.
//
// Integer nanoseconds. A task occupies one stream of each of its ranks for its whole duration (a
// collective occupies the communication stream of every member). A stream runs its tasks in order
// of their ids, as a CUDA stream runs what was enqueued; a task starts when its dependencies have
// ended and it is at the head of all its streams. Ties are broken by id, so a run depends on
// nothing but the graph. Pure functions of plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/timeline/timeline.h"

namespace tessera {

using TaskId = int;  // position in TaskGraph::tasks

struct Task {
  std::string name;
  Phase phase = Phase::gen;
  Stream stream = Stream::compute;
  std::vector<int> ranks;  // that it occupies; empty = none (a pure dependency)
  std::int64_t duration_ns = 0;
  std::vector<TaskId> after;          // dependencies; smaller ids only
  std::int64_t bytes = 0;             // moved
  std::int64_t communication_ns = 0;  // part of the duration that a computing task communicates
};

struct TaskGraph {
  std::vector<Task> tasks;

  /// Appends a task and returns its id. Precondition: `task.after` names earlier tasks.
  TaskId add(Task task);
};

/// When each task ran, and how long it could have been late without delaying the end.
struct TaskRun {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t slack_ns = 0;
  bool operator==(const TaskRun&) const = default;
};

/// Runs the graph; result[i] belongs to tasks[i].
std::vector<TaskRun> run(const TaskGraph& graph);

/// One chain of tasks without slack from time zero to the end, in time order; each starts where a
/// dependency or the predecessor on one of its streams ended.
std::vector<TaskId> critical_path(const TaskGraph& graph, const std::vector<TaskRun>& runs);

}  // namespace tessera
