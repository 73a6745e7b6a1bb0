#include "simulator/tasks/task_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/stopped.h"
#include "cost_models/spec/enum_names.h"
#include "simulator/network/flows.h"

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

/// What each task waits for, and what waits for it.
struct Order {
  std::vector<std::vector<TaskId>> before, after;
};

Order order_of(const TaskGraph& graph) {
  std::vector<std::vector<TaskId>> before = all_predecessors(graph);
  std::vector<std::vector<TaskId>> after = reversed(before);
  return {std::move(before), std::move(after)};
}

using Event = std::pair<std::int64_t, TaskId>;  // (time, task)
using Events = std::priority_queue<Event, std::vector<Event>, std::greater<>>;

/// Tasks that take so long each; without slack.
std::vector<TaskRun> run_for(const Order& order, const std::vector<std::int64_t>& durations_ns,
                             const std::stop_token& stop) {
  std::vector<size_t> waiting(order.before.size());
  std::vector<TaskRun> runs(order.before.size());
  Events events;
  for (size_t id = 0; id < order.before.size(); ++id) {
    waiting[id] = order.before[id].size();
    if (waiting[id] == 0) events.emplace(durations_ns[id], static_cast<TaskId>(id));
  }
  while (!events.empty()) {
    end_if_stopped(stop);
    const auto [now, id] = events.top();
    events.pop();
    runs[id] = {now - durations_ns[id], now, 0};
    for (const TaskId next : order.after[id]) {
      if (--waiting[next] == 0) events.emplace(now + durations_ns[next], next);
    }
  }
  return runs;
}

void fill_slack(const std::vector<std::vector<TaskId>>& after, std::vector<TaskRun>& runs) {
  std::int64_t end = 0;
  for (const TaskRun& one : runs) end = std::max(end, one.end_ns);
  for (size_t i = runs.size(); i-- > 0;) {
    std::int64_t latest_end = end;
    for (const TaskId next : after[i]) {
      latest_end = std::min(latest_end, runs[next].start_ns + runs[next].slack_ns);
    }
    runs[i].slack_ns = latest_end - runs[i].end_ns;
  }
}

constexpr auto kExchanges = enum_names<Exchange>({{Exchange::none, "none"},
                                                  {Exchange::gradients, "gradients"},
                                                  {Exchange::parameters, "parameters"},
                                                  {Exchange::shards, "shards"},
                                                  {Exchange::stages, "stages"},
                                                  {Exchange::weights, "weights"},
                                                  {Exchange::host, "host"}});

double flow_bytes(const Task& task) {
  return task.card_bytes > 0 ? task.card_bytes : task.shared_bytes;
}

/// The tasks in time, where what they send is a flow.
class SharedRun {
 public:
  SharedRun(const TaskGraph& graph, const Order& order, std::span<const double> capacity)
      : graph_(graph), order_(order), flows_(capacity), waiting_(graph.tasks.size()) {
    result_.runs.resize(graph.tasks.size());
    flows_.keep_segments();
  }

  NetworkRun make(const std::stop_token& stop) {
    for (size_t id = 0; id < waiting_.size(); ++id) {
      waiting_[id] = order_.before[id].size();
      if (waiting_[id] == 0) start(static_cast<TaskId>(id), 0);
    }
    while (!events_.empty() || flows_.next_end() < kForever) {
      end_if_stopped(stop);
      const std::int64_t now = next_time();
      for (const int flow : flows_.take_ended(seconds(now), seconds(now))) {
        end(task_of_flow_[static_cast<size_t>(flow)], now);
      }
      while (!events_.empty() && events_.top().first == now) {
        const TaskId id = events_.top().second;
        events_.pop();
        proceed(id, now);
      }
      flows_.settle(seconds(now));
    }
    for (const FlowSegment& part : flows_.segments()) {
      result_.flows.push_back(
          {task_of_flow_[static_cast<size_t>(part.flow)], part.start_s, part.end_s, part.rate});
    }
    return std::move(result_);
  }

 private:
  static constexpr double kForever = std::numeric_limits<double>::infinity();
  static double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

  // Flows end at the next whole nanosecond.
  std::int64_t next_time() {
    const double flow = flows_.next_end();
    if (flow == kForever) return events_.top().first;
    auto at = static_cast<std::int64_t>(std::ceil(flow * 1e9));
    while (seconds(at) < flow) ++at;
    return events_.empty() ? at : std::min(at, events_.top().first);
  }

  void start(TaskId id, std::int64_t now) {
    const Task& task = graph_.tasks[id];
    result_.runs[id].start_ns = now;
    events_.emplace(now + task.duration_ns - task.flow_ns, id);
  }

  // Its part beside the flow has passed.
  void proceed(TaskId id, std::int64_t now) {
    const Task& task = graph_.tasks[id];
    if (task.flow_ns == 0) return end(id, now);
    const LinkPattern& pattern = graph_.patterns[static_cast<size_t>(task.pattern)];
    flows_.begin(seconds(now), {.links = pattern.links,
                                .bytes = flow_bytes(task),
                                .start_s = 0,
                                .weights = pattern.weights});
    task_of_flow_.push_back(id);
  }

  void end(TaskId id, std::int64_t now) {
    result_.runs[id].end_ns = now;
    for (const TaskId next : order_.after[id]) {
      if (--waiting_[next] == 0) start(next, now);
    }
  }

  const TaskGraph& graph_;
  const Order& order_;
  FlowRun flows_;
  std::vector<size_t> waiting_;
  std::vector<TaskId> task_of_flow_;
  Events events_;
  NetworkRun result_;
};

// What a task takes where nothing else crosses its links.
std::int64_t alone_ns(const TaskGraph& graph, const Task& task, std::span<const double> capacity) {
  if (task.flow_ns == 0) return task.duration_ns;
  const LinkPattern& pattern = graph.patterns[static_cast<size_t>(task.pattern)];
  double most_s = 0;
  for (size_t i = 0; i < pattern.links.size(); ++i) {
    const double rate = capacity[static_cast<size_t>(pattern.links[i])];
    most_s = std::max(most_s, flow_bytes(task) * pattern.weights[i] / rate);
  }
  return task.duration_ns - task.flow_ns + static_cast<std::int64_t>(std::ceil(most_s * 1e9));
}

}  // namespace

std::string_view name_of(Exchange exchange) { return kExchanges[exchange]; }

TaskId TaskGraph::add(Task task) {
  const auto id = static_cast<TaskId>(tasks.size());
  TESSERA_CHECK(task.duration_ns >= 0);
  for (const TaskId earlier : task.after) TESSERA_CHECK(earlier >= 0 && earlier < id);
  tasks.push_back(std::move(task));
  return id;
}

std::vector<TaskRun> run(const TaskGraph& graph, const std::stop_token& stop) {
  std::vector<std::int64_t> durations;
  durations.reserve(graph.tasks.size());
  for (const Task& task : graph.tasks) durations.push_back(task.duration_ns);
  const Order order = order_of(graph);
  std::vector<TaskRun> runs = run_for(order, durations, stop);
  fill_slack(order.after, runs);
  return runs;
}

NetworkRun run(const TaskGraph& graph, std::span<const double> capacity,
               const std::stop_token& stop) {
  const Order order = order_of(graph);
  NetworkRun result = SharedRun(graph, order, capacity).make(stop);
  fill_slack(order.after, result.runs);
  std::vector<std::int64_t> alone;
  alone.reserve(graph.tasks.size());
  std::int64_t shared = 0;
  for (size_t id = 0; id < graph.tasks.size(); ++id) {
    alone.push_back(alone_ns(graph, graph.tasks[id], capacity));
    const TaskRun& one = result.runs[id];
    shared += std::max<std::int64_t>(0, one.end_ns - one.start_ns - alone.back());
  }
  result.shared_s = static_cast<double>(shared) * 1e-9;
  for (const TaskRun& one : run_for(order, alone, stop)) {
    result.alone_end_ns = std::max(result.alone_end_ns, one.end_ns);
  }
  return result;
}

std::int64_t communication_ns(const Task& task, const TaskRun& run) {
  return std::max<std::int64_t>(
      0, task.communication_ns + run.end_ns - run.start_ns - task.duration_ns);
}

std::vector<TaskId> awaited_tasks(const TaskGraph& graph, const std::vector<TaskRun>& runs) {
  const std::vector<std::vector<TaskId>> before = all_predecessors(graph);
  std::vector<TaskId> awaited;
  awaited.reserve(runs.size());
  for (size_t id = 0; id < runs.size(); ++id) {
    const auto binding = std::find_if(before[id].begin(), before[id].end(), [&](TaskId earlier) {
      return runs[earlier].end_ns == runs[id].start_ns;
    });
    awaited.push_back(binding == before[id].end() ? -1 : *binding);
  }
  return awaited;
}

std::vector<TaskId> critical_path(const std::vector<TaskId>& awaited,
                                  const std::vector<TaskRun>& runs) {
  if (runs.empty()) return {};
  TaskId current = 0;
  for (size_t id = 0; id < runs.size(); ++id) {
    if (runs[id].end_ns > runs[current].end_ns) current = static_cast<TaskId>(id);
  }
  std::vector<TaskId> path;
  for (; current >= 0; current = awaited[current]) path.push_back(current);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace tessera
