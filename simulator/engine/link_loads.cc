#include "simulator/engine/link_loads.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "cost_models/documents/stopped.h"

namespace tessera {
namespace {

/// Bytes by window, from the first to the last with any.
struct WindowBytes {
  double all = 0;
  std::size_t first = 0;
  std::vector<double> windows;

  void add(std::size_t window, double bytes) {
    if (windows.empty()) first = window;
    if (window < first) {
      windows.insert(windows.begin(), first - window, 0.0);
      first = window;
    }
    if (window >= first + windows.size()) windows.resize(window + 1 - first);
    windows[window - first] += bytes;
  }
  double in(std::size_t window) const {
    return window >= first && window < first + windows.size() ? windows[window - first] : 0;
  }
};

/// What crosses one link for whom, and the times in which something does.
struct Crossed {
  std::map<std::pair<Phase, Exchange>, WindowBytes> uses;
  std::vector<std::pair<double, double>> times;
};

/// A stretch of time in which bytes of a pattern travel.
struct Stretch {
  const LinkPattern& pattern;
  std::pair<Phase, Exchange> use;
  double start = 0, end = 0;  // seconds
};

class Loads {
 public:
  Loads(const IterationTasks& tasks, const NetworkRun& run, std::int64_t end_ns, int windows)
      : tasks_(tasks),
        run_(run),
        end_s_(static_cast<double>(end_ns) * 1e-9),
        windows_(windows),
        crossed_(static_cast<std::size_t>(tasks.network.links())) {}

  std::vector<LinkLoad> make(const std::stop_token& stop) {
    for (std::size_t id = 0; id < tasks_.graph.tasks.size(); ++id) {
      end_if_stopped(stop);
      const Task& task = tasks_.graph.tasks[id];
      if (task.pattern < 0) continue;
      const double start = seconds(run_.runs[id].start_ns), end = seconds(run_.runs[id].end_ns);
      add_ports(stretch(task, start, end), task.port_bytes);
      if (task.flow_ns == 0 || !tasks_.shares_links) {
        const double flow = seconds(task.flow_ns);
        add_links(stretch(task, flow > 0 ? end - flow : start, end),
                  {task.card_bytes, task.port_bytes});
      }
    }
    for (const TaskFlow& flow : run_.flows) {
      end_if_stopped(stop);
      const Task& task = tasks_.graph.tasks[static_cast<std::size_t>(flow.task)];
      const double bytes = flow.rate * (flow.end_s - flow.start_s);
      add_links(stretch(task, flow.start_s, flow.end_s),
                task.card_bytes > 0 ? Carried{bytes, 0} : Carried{0, bytes});
    }
    for (const HiddenExchange& hidden : tasks_.hidden) add_hidden(hidden);
    std::vector<LinkLoad> loads;
    for (int link = 0; link < tasks_.network.links(); ++link) {
      end_if_stopped(stop);
      Crossed& crossed = crossed_[static_cast<std::size_t>(link)];
      if (!crossed.uses.empty()) loads.push_back(load_of(link, crossed));
    }
    return loads;
  }

 private:
  static double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

  const LinkPattern& pattern(int index) const {
    return tasks_.graph.patterns[static_cast<std::size_t>(index)];
  }
  Stretch stretch(const Task& task, double start, double end) const {
    return {pattern(task.pattern), {task.phase, task.exchange}, start, end};
  }

  // Beside the backward pass that ends where the task behind it starts.
  void add_hidden(const HiddenExchange& hidden) {
    const auto behind = static_cast<std::size_t>(hidden.behind_pass);
    const double end = seconds(run_.runs[behind].start_ns);
    const Phase phase = tasks_.graph.tasks[behind].phase;
    const Stretch at{pattern(hidden.pattern),
                     {phase, hidden.exchange},
                     std::max(0.0, end - seconds(hidden.beside_ns)),
                     end};
    add_ports(at, hidden.port_bytes);
    add_links(at,
              {hidden.card_bytes, tasks_.shares_links ? hidden.shared_bytes : hidden.port_bytes});
  }

  void add_ports(const Stretch& at, double bytes) {
    if (bytes <= 0) return;
    for (const int rank : at.pattern.out) add(tasks_.network.port(rank, false), bytes, at);
    for (const int rank : at.pattern.in) add(tasks_.network.port(rank, true), bytes, at);
  }

  /// Bytes of a rank between nodes, and within one.
  struct Carried {
    double across = 0, within = 0;
  };

  // Ports of a pattern's ranks were added.
  void add_links(const Stretch& at, const Carried& bytes) {
    const LinkPattern& pattern = at.pattern;
    for (std::size_t i = 0; i < pattern.links.size(); ++i) {
      const int link = pattern.links[i];
      if (tasks_.network.is_port(link) && !pattern.out.empty()) continue;
      add(link, pattern.weights[i] * (tasks_.network.is_within(link) ? bytes.within : bytes.across),
          at);
    }
  }

  // Copies are measured faster than a port's sheet: no link carries more than it can.
  void add(int link, double bytes, Stretch at) {
    if (bytes <= 0 || at.end <= at.start) return;
    const double least = bytes / tasks_.network.rate(link);
    at.start = std::max(0.0, std::min(at.start, at.end - least));
    Crossed& crossed = crossed_[static_cast<std::size_t>(link)];
    crossed.times.emplace_back(at.start, at.end);
    WindowBytes& use = crossed.uses[at.use];
    use.all += bytes;
    if (windows_ <= 0) return;
    const double window = end_s_ / windows_, rate = bytes / (at.end - at.start);
    const auto last = static_cast<std::size_t>(windows_) - 1;
    for (std::size_t w = std::min(last, static_cast<std::size_t>(at.start / window)); w <= last;
         ++w) {
      const double from = static_cast<double>(w) * window;
      if (from >= at.end) break;
      const double to = w == last ? at.end : from + window;
      use.add(w, rate * std::max(0.0, std::min(at.end, to) - std::max(at.start, from)));
    }
  }

  // Exchanges that are priced apart may cross a link at once, as layers' and what a backward pass
  // hides: what it cannot carry then has crossed it before, at the beginning afterwards.
  void level(int link, Crossed& crossed) const {
    const double most = tasks_.network.rate(link) * end_s_ / std::max(1, windows_);
    if (most <= 0) return;
    double left = 0;
    for (int w = windows_ - 1; w >= 0; --w) left = pass_on(crossed, w, w - 1, most);
    for (int w = 0; left > 0 && w + 1 < windows_; ++w) left = pass_on(crossed, w, w + 1, most);
  }

  // Leaves at most so many bytes in a window, of each use its part; returns what was too many.
  double pass_on(Crossed& crossed, int from, int to, double most) const {
    const auto window = static_cast<std::size_t>(from);
    double all = 0;
    for (const auto& [what, use] : crossed.uses) all += use.in(window);
    if (all <= most * (1 + 1e-9)) return 0;
    if (to < 0) return all - most;
    for (auto& [what, use] : crossed.uses) {
      const double excess = use.in(window) * (1 - most / all);
      if (excess <= 0) continue;
      use.windows[window - use.first] -= excess;
      use.add(static_cast<std::size_t>(to), excess);
    }
    return all - most;
  }

  LinkLoad load_of(int link, Crossed& crossed) const {
    level(link, crossed);
    LinkLoad load{.link = link,
                  .kind = tasks_.network.kind(link),
                  .name = tasks_.network.name(link),
                  .ranks = tasks_.network.ranks_of(link),
                  .bytes_per_s = tasks_.network.rate(link),
                  .bytes = 0,
                  .busy_share = busy_s(crossed) / end_s_,
                  .mean_load = 0,
                  .most_load = 0,
                  .load = {},
                  .uses = {}};
    double bytes = 0;
    std::vector<double> windows(static_cast<std::size_t>(std::max(0, windows_)));
    for (const auto& [what, use] : crossed.uses) {
      bytes += use.all;
      for (std::size_t i = 0; i < use.windows.size(); ++i) {
        windows[use.first + i] += use.windows[i];
      }
      load.uses.push_back(use_of(what, use, load.bytes_per_s));
    }
    load.bytes = std::llround(bytes);
    if (load.bytes_per_s > 0) load.mean_load = bytes / (load.bytes_per_s * end_s_);
    load.busy_share = std::max(load.busy_share, load.mean_load);
    for (const double in_window : windows) {
      load.load.push_back(share(in_window, load.bytes_per_s));
      load.most_load = std::max<double>(load.most_load, load.load.back());
    }
    return load;
  }

  float share(double bytes_in_window, double bytes_per_s) const {
    const double most = bytes_per_s * end_s_ / std::max(1, windows_);
    return most > 0 ? static_cast<float>(bytes_in_window / most) : 0.0F;
  }

  LinkUse use_of(const std::pair<Phase, Exchange>& what, const WindowBytes& use,
                 double bytes_per_s) const {
    LinkUse result{what.first, what.second, std::llround(use.all), static_cast<int>(use.first), {}};
    for (const double bytes : use.windows) result.load.push_back(share(bytes, bytes_per_s));
    return result;
  }

  static double busy_s(Crossed& crossed) {
    std::sort(crossed.times.begin(), crossed.times.end());
    double busy = 0, covered = 0;
    for (const auto& [start, end] : crossed.times) {
      busy += std::max(0.0, end - std::max(start, covered));
      covered = std::max(covered, end);
    }
    return busy;
  }

  const IterationTasks& tasks_;
  const NetworkRun& run_;
  double end_s_;
  int windows_;
  std::vector<Crossed> crossed_;  // by link
};

}  // namespace

std::vector<LinkLoad> link_loads(const IterationTasks& tasks, const NetworkRun& run,
                                 std::int64_t end_ns, int windows, const std::stop_token& stop) {
  if (end_ns <= 0) return {};
  return Loads(tasks, run, end_ns, windows).make(stop);
}

}  // namespace tessera
