#include "simulator/engine/task_graph.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

/// Everything a task waits for: its dependencies and the task before it on each of its streams.
std::vector<std::vector<TaskId>> all_predecessors(const TaskGraph& graph) {
  std::vector<std::vector<TaskId>> before(graph.tasks.size());
  constexpr size_t kStreams = 4;
  std::vector<TaskId> last;  // by rank and stream; -1 = none yet
  for (size_t id = 0; id < graph.tasks.size(); ++id) {
    const Task& task = graph.tasks[id];
    before[id] = task.after;
    for (const int rank : task.ranks) {
      const size_t slot = static_cast<size_t>(rank) * kStreams + static_cast<size_t>(task.stream);
      if (slot >= last.size()) last.resize(slot + kStreams, -1);
      const TaskId previous = std::exchange(last[slot], static_cast<TaskId>(id));
      if (previous >= 0) before[id].push_back(previous);
    }
    std::sort(before[id].begin(), before[id].end());
    before[id].erase(std::unique(before[id].begin(), before[id].end()), before[id].end());
  }
  return before;
}

std::vector<std::vector<TaskId>> reversed(const std::vector<std::vector<TaskId>>& before) {
  std::vector<std::vector<TaskId>> after(before.size());
  for (size_t id = 0; id < before.size(); ++id) {
    for (const TaskId earlier : before[id]) after[earlier].push_back(static_cast<TaskId>(id));
  }
  return after;
}

void fill_slack(const TaskGraph& graph, const std::vector<std::vector<TaskId>>& after,
                std::vector<TaskRun>& runs) {
  std::int64_t end = 0;
  for (const TaskRun& one : runs) end = std::max(end, one.end_ns);
  for (size_t i = runs.size(); i-- > 0;) {
    std::int64_t latest_end = end;
    for (const TaskId next : after[i]) {
      latest_end = std::min(latest_end, runs[next].start_ns + runs[next].slack_ns);
    }
    runs[i].slack_ns = latest_end - graph.tasks[i].duration_ns - runs[i].start_ns;
  }
}

}  // namespace

TaskId TaskGraph::add(Task task) {
  const auto id = static_cast<TaskId>(tasks.size());
  TESSERA_CHECK(task.duration_ns >= 0);
  for (const TaskId earlier : task.after) TESSERA_CHECK(earlier >= 0 && earlier < id);
  tasks.push_back(std::move(task));
  return id;
}

std::vector<TaskRun> run(const TaskGraph& graph) {
  const std::vector<std::vector<TaskId>> before = all_predecessors(graph);
  const std::vector<std::vector<TaskId>> after = reversed(before);
  std::vector<size_t> waiting(before.size());
  std::vector<TaskRun> runs(before.size());
  using Event = std::pair<std::int64_t, TaskId>;  // (end, task)
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  for (size_t id = 0; id < before.size(); ++id) {
    waiting[id] = before[id].size();
    if (waiting[id] == 0) events.emplace(graph.tasks[id].duration_ns, static_cast<TaskId>(id));
  }
  while (!events.empty()) {
    const auto [now, id] = events.top();
    events.pop();
    runs[id] = {now - graph.tasks[id].duration_ns, now, 0};
    for (const TaskId next : after[id]) {
      if (--waiting[next] == 0) events.emplace(now + graph.tasks[next].duration_ns, next);
    }
  }
  fill_slack(graph, after, runs);
  return runs;
}

std::vector<TaskId> critical_path(const TaskGraph& graph, const std::vector<TaskRun>& runs) {
  if (runs.empty()) return {};
  const std::vector<std::vector<TaskId>> before = all_predecessors(graph);
  TaskId current = 0;
  for (size_t id = 0; id < runs.size(); ++id) {
    if (runs[id].end_ns > runs[current].end_ns) current = static_cast<TaskId>(id);
  }
  std::vector<TaskId> path{current};
  while (runs[current].start_ns > 0 || !before[current].empty()) {
    const auto binding =
        std::find_if(before[current].begin(), before[current].end(),
                     [&](TaskId id) { return runs[id].end_ns == runs[current].start_ns; });
    if (binding == before[current].end()) break;
    current = *binding;
    path.push_back(current);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace tessera
