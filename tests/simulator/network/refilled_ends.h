// When tasks end whose flows share links, by progressive filling from nothing at each change.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "simulator/network/flows.h"
#include "simulator/tasks/task_graph.h"

namespace tessera {

/// The graph's run with all rates worked out anew whenever anything begins or ends.
inline std::vector<double> refilled_ends(const TaskGraph& graph,
                                         const std::vector<double>& capacity) {
  const double never = std::numeric_limits<double>::infinity();
  const std::size_t count = graph.tasks.size();
  std::vector<double> fixed_end(count, -1), left(count, -1), ends(count, -1);
  const auto begins = [&](std::size_t id) {
    for (const TaskId before : graph.tasks[id].after) {
      if (ends[static_cast<std::size_t>(before)] < 0) return false;
    }
    for (std::size_t other = 0; other < id; ++other) {  // of its streams
      if (ends[other] >= 0 || graph.tasks[other].stream != graph.tasks[id].stream) continue;
      for (const int rank : graph.tasks[id].ranks) {
        const auto& ranks = graph.tasks[other].ranks;
        if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) return false;
      }
    }
    return true;
  };
  for (double now = 0;;) {
    for (bool again = true; again;) {
      again = false;
      for (std::size_t id = 0; id < count; ++id) {
        const Task& task = graph.tasks[id];
        if (fixed_end[id] < 0 && begins(id)) {
          fixed_end[id] = now + static_cast<double>(task.duration_ns - task.flow_ns) * 1e-9;
          left[id] = task.flow_ns == 0     ? 0
                     : task.card_bytes > 0 ? task.card_bytes
                                           : task.shared_bytes;
          again = true;
        }
        const bool done = fixed_end[id] >= 0 && fixed_end[id] <= now + 1e-15 && left[id] <= 1e-9;
        if (ends[id] < 0 && done) {
          ends[id] = now;
          again = true;
        }
      }
    }
    std::vector<Flow> flows;
    std::vector<std::size_t> of;
    double next = never;
    for (std::size_t id = 0; id < count; ++id) {
      if (fixed_end[id] < 0 || ends[id] >= 0) continue;
      if (fixed_end[id] > now + 1e-15) {
        next = std::min(next, fixed_end[id]);
        continue;
      }
      const LinkPattern& pattern =
          graph.patterns[static_cast<std::size_t>(graph.tasks[id].pattern)];
      flows.push_back({pattern.links, left[id], 0, pattern.weights});
      of.push_back(id);
    }
    const std::vector<double> rates = fair_rates(capacity, flows);
    for (std::size_t i = 0; i < of.size(); ++i) {
      next = std::min(next, now + left[of[i]] / rates[i]);
    }
    if (std::isinf(next)) return ends;
    for (std::size_t i = 0; i < of.size(); ++i) left[of[i]] -= rates[i] * (next - now);
    now = next;
  }
}

}  // namespace tessera
