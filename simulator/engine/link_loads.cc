#include "simulator/engine/link_loads.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace tessera {
namespace {

/// Bytes of one link by window, and the times in which something crosses it.
struct Crossed {
  double bytes = 0;
  std::vector<double> windows;
  std::vector<std::pair<double, double>> times;
};

class Loads {
 public:
  Loads(const IterationTasks& tasks, const NetworkRun& run, std::int64_t end_ns, int windows)
      : tasks_(tasks),
        run_(run),
        end_s_(static_cast<double>(end_ns) * 1e-9),
        windows_(windows),
        crossed_(static_cast<std::size_t>(tasks.network.links())) {}

  std::vector<LinkLoad> make() {
    for (std::size_t id = 0; id < tasks_.graph.tasks.size(); ++id) {
      const Task& task = tasks_.graph.tasks[id];
      if (task.pattern < 0) continue;
      const double start = static_cast<double>(run_.runs[id].start_ns) * 1e-9;
      const double end = static_cast<double>(run_.runs[id].end_ns) * 1e-9;
      add_ports(task, start, end);
      if (task.flow_ns == 0 || !tasks_.shares_links) {
        const double flow = static_cast<double>(task.flow_ns) * 1e-9;
        add_links(task, task.card_bytes, flow > 0 ? end - flow : start, end);
      }
    }
    for (const TaskFlow& flow : run_.flows) {
      const Task& task = tasks_.graph.tasks[static_cast<std::size_t>(flow.task)];
      add_links(task, flow.rate * (flow.end_s - flow.start_s), flow.start_s, flow.end_s);
    }
    std::vector<LinkLoad> loads;
    for (int link = 0; link < tasks_.network.links(); ++link) {
      Crossed& crossed = crossed_[static_cast<std::size_t>(link)];
      if (crossed.bytes > 0) loads.push_back(load_of(link, crossed));
    }
    return loads;
  }

 private:
  const LinkPattern& pattern_of(const Task& task) const {
    return tasks_.graph.patterns[static_cast<std::size_t>(task.pattern)];
  }

  void add_ports(const Task& task, double start, double end) {
    if (task.port_bytes <= 0) return;
    const LinkPattern& pattern = pattern_of(task);
    for (const int rank : pattern.out) {
      add(tasks_.network.port(rank, false), task.port_bytes, start, end);
    }
    for (const int rank : pattern.in) {
      add(tasks_.network.port(rank, true), task.port_bytes, start, end);
    }
  }

  // Ports among the links are those of a reshard's senders and receivers.
  void add_links(const Task& task, double card_bytes, double start, double end) {
    const LinkPattern& pattern = pattern_of(task);
    for (std::size_t i = 0; i < pattern.links.size(); ++i) {
      const bool port = tasks_.network.is_port(pattern.links[i]);
      const double bytes = port ? task.port_bytes : card_bytes;
      add(pattern.links[i], pattern.weights[i] * bytes, start, end);
    }
  }

  void add(int link, double bytes, double start, double end) {
    if (bytes <= 0 || end <= start) return;
    Crossed& crossed = crossed_[static_cast<std::size_t>(link)];
    crossed.bytes += bytes;
    crossed.times.emplace_back(start, end);
    if (windows_ <= 0) return;
    crossed.windows.resize(static_cast<std::size_t>(windows_));
    const double window = end_s_ / windows_, rate = bytes / (end - start);
    const auto last = static_cast<std::size_t>(windows_) - 1;
    for (std::size_t w = std::min(last, static_cast<std::size_t>(start / window)); w <= last; ++w) {
      const double from = static_cast<double>(w) * window;
      if (from >= end) break;
      const double to = w == last ? end : from + window;
      crossed.windows[w] += rate * std::max(0.0, std::min(end, to) - std::max(start, from));
    }
  }

  LinkLoad load_of(int link, Crossed& crossed) const {
    LinkLoad load{.link = link,
                  .kind = tasks_.network.kind(link),
                  .name = tasks_.network.name(link),
                  .bytes_per_s = tasks_.network.rate(link),
                  .bytes = std::llround(crossed.bytes),
                  .busy_share = 0,
                  .load = {}};
    std::sort(crossed.times.begin(), crossed.times.end());
    double busy = 0, covered = 0;
    for (const auto& [start, end] : crossed.times) {
      busy += std::max(0.0, end - std::max(start, covered));
      covered = std::max(covered, end);
    }
    load.busy_share = busy / end_s_;
    const double most = load.bytes_per_s * end_s_ / std::max(1, windows_);
    for (const double bytes : crossed.windows) {
      load.load.push_back(most > 0 ? static_cast<float>(bytes / most) : 0.0F);
    }
    return load;
  }

  const IterationTasks& tasks_;
  const NetworkRun& run_;
  double end_s_;
  int windows_;
  std::vector<Crossed> crossed_;  // by link
};

}  // namespace

std::vector<LinkLoad> link_loads(const IterationTasks& tasks, const NetworkRun& run,
                                 std::int64_t end_ns, int windows) {
  if (end_ns <= 0) return {};
  return Loads(tasks, run, end_ns, windows).make();
}

}  // namespace tessera
