// A graph of timed tasks on the streams of ranks, and the discrete-event run of it.
//
// Integer nanoseconds. A task occupies one stream of each of its ranks for its whole duration (a
// collective occupies the communication stream of every member). A stream runs its tasks in order
// of their ids, as a CUDA stream runs what was enqueued; a task starts when its dependencies have
// ended and it is at the head of all its streams. Ties are broken by id, so a run depends on
// nothing but the graph. What a task sends has a fixed duration, in which every GPU has its equal
// share of the links, or is a flow that shares them with what else crosses them at that moment:
// between nodes, and within them where GPUs share links. Pure functions of plain values.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "simulator/timeline/timeline.h"

namespace tessera {

using TaskId = int;  // position in TaskGraph::tasks

/// What a task of communication or copies moves.
enum class Exchange : std::uint8_t {
  none,        // it computes
  gradients,   // summed over replicas
  parameters,  // gathered after an optimizer step
  shards,      // of layers: FSDP, ZeRO-2
  stages,      // hidden states and their gradients between pipeline stages
  weights,     // of a reshard
  host,        // to and from host memory
};
std::string_view name_of(Exchange exchange);

/// Where the bytes of tasks go: links with a weight for each byte that one rank's card carries, or,
/// of what stays within a node, one rank puts on the wire; and ranks whose ports within their node
/// carry its bytes. Ports are among the links where flows share them, with the part of their rate
/// that such a flow can use; a reshard's are, and it has no ranks.
struct LinkPattern {
  std::vector<int> links;  // ascending
  std::vector<double> weights;
  std::vector<int> out, in;  // ranks
  int group_ranks = 1, group_nodes = 1;
};

struct Task {
  std::string name;
  Phase phase = Phase::gen;
  Stream stream = Stream::compute;
  std::vector<int> ranks;  // that it occupies; empty = none (a pure dependency)
  std::int64_t duration_ns = 0;
  std::vector<TaskId> after;          // dependencies; smaller ids only
  std::int64_t bytes = 0;             // moved
  std::int64_t communication_ns = 0;  // part of the duration that a computing task communicates
  Exchange exchange = Exchange::none;
  int pattern = -1;                       // of TaskGraph::patterns; -1: not known
  double card_bytes = 0, port_bytes = 0;  // of a rank, one way, between nodes and within one
  double shared_bytes = 0;  // of port_bytes, those of its flow, where it has one within a node
  /// Part at the end of the duration in which card_bytes, or shared_bytes, travel where every GPU
  /// has its equal share of links; 0: it shares none.
  std::int64_t flow_ns = 0;
};

struct TaskGraph {
  std::vector<Task> tasks;
  std::vector<LinkPattern> patterns;

  /// Appends a task and returns its id. Precondition: `task.after` names earlier tasks.
  TaskId add(Task task);
};

/// When each task ran, and how long it could have been late without delaying the end.
struct TaskRun {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t slack_ns = 0;
  bool operator==(const TaskRun&) const = default;
};

/// Runs the graph; result[i] belongs to tasks[i]. Throws Stopped (cost_models/documents/stopped.h).
std::vector<TaskRun> run(const TaskGraph& graph, const std::stop_token& stop = {});

/// The bytes of a task that cross links at one rate, of which each link carries its weight.
struct TaskFlow {
  TaskId task = 0;
  double start_s = 0, end_s = 0;
  double rate = 0;  // bytes per second over a rank's card
};

struct NetworkRun {
  std::vector<TaskRun> runs;
  std::vector<TaskFlow> flows;
  /// What tasks took because others crossed their links, over all tasks; and the end of all where
  /// none had to wait for another.
  double shared_s = 0;
  std::int64_t alone_end_ns = 0;
};

/// The same where what tasks send between nodes are flows over links of so many bytes per second
/// (simulator/network/flows.h). A task's time beside its flow is as before.
NetworkRun run(const TaskGraph& graph, std::span<const double> capacity,
               const std::stop_token& stop = {});

/// Of a task's run the time in which it communicates; what its flow took beside its equal share is
/// part of it.
std::int64_t communication_ns(const Task& task, const TaskRun& run);

/// For each task what it waited for: the dependency, or the predecessor on one of its streams, at
/// whose end it started (of several the first); -1 = nothing.
std::vector<TaskId> awaited_tasks(const TaskGraph& graph, const std::vector<TaskRun>& runs);

/// One chain of tasks without slack from time zero to the end, in time order; each starts where
/// what it waited for (`awaited`) ended.
std::vector<TaskId> critical_path(const std::vector<TaskId>& awaited,
                                  const std::vector<TaskRun>& runs);

}  // namespace tessera
