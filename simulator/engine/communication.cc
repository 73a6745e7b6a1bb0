#include "simulator/engine/communication.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace tessera {
namespace {

using Times = std::vector<std::pair<std::int64_t, std::int64_t>>;  // ascending, apart

/// Nanoseconds of a span in which the rank computes. `next`: the first of its times that may count;
/// spans come with ascending starts.
std::int64_t hidden_ns(const TaskRun& span, const Times& computing, std::size_t& next) {
  while (next < computing.size() && computing[next].second <= span.start_ns) ++next;
  std::int64_t hidden = 0;
  for (std::size_t i = next; i < computing.size() && computing[i].first < span.end_ns; ++i) {
    hidden +=
        std::min(span.end_ns, computing[i].second) - std::max(span.start_ns, computing[i].first);
  }
  return hidden;
}

using Key = std::tuple<Exchange, Phase, int, int>;  // group's ranks and nodes

class Parts {
 public:
  Parts(const IterationTasks& tasks, const std::vector<TaskRun>& runs, int ranks)
      : tasks_(tasks), runs_(runs), of_rank_(static_cast<std::size_t>(ranks)) {
    for (std::size_t id = 0; id < tasks.graph.tasks.size(); ++id) {
      for (const int rank : tasks.graph.tasks[id].ranks) {
        of_rank_[static_cast<std::size_t>(rank)].push_back(static_cast<TaskId>(id));
      }
    }
  }

  std::vector<CommunicationPart> make() {
    for (const HiddenExchange& hidden : tasks_.hidden) {
      for (const int rank : hidden.ranks) {
        hidden_of_rank_[rank].push_back(&hidden);
      }
    }
    for (std::size_t rank = 0; rank < of_rank_.size(); ++rank) add_rank(static_cast<int>(rank));
    std::vector<CommunicationPart> parts;
    for (auto& [key, part] : most_) {
      part.slack_ns = slack_.at(key);
      parts.push_back(part);
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) { return a.exposed_s > b.exposed_s; });
    return parts;
  }

 private:
  const Task& task_of(TaskId id) const { return tasks_.graph.tasks[static_cast<std::size_t>(id)]; }
  const TaskRun& run_of(TaskId id) const { return runs_[static_cast<std::size_t>(id)]; }

  // A rank's stream runs its tasks in the order of their ids.
  void add_rank(int rank) {
    const std::vector<TaskId>& own = of_rank_[static_cast<std::size_t>(rank)];
    Times computing;
    for (const TaskId id : own) {
      const TaskRun& run = run_of(id);
      if (task_of(id).stream == Stream::compute && run.end_ns > run.start_ns) {
        computing.emplace_back(run.start_ns, run.end_ns);
      }
    }
    std::map<Key, CommunicationPart> parts;
    std::map<Stream, std::size_t> next;
    for (const TaskId id : own) {
      const Task& task = task_of(id);
      const bool within = task.stream == Stream::compute;
      const TaskRun& run = run_of(id);
      const std::int64_t took = within ? communication_ns(task, run) : run.end_ns - run.start_ns;
      if (took <= 0) continue;
      const std::int64_t hidden = within ? 0 : hidden_ns(run, computing, next[task.stream]);
      const Key key = key_of(task.exchange, task.phase, task.pattern);
      CommunicationPart& part = parts[key];
      ++part.tasks;
      part.seconds += static_cast<double>(took) * 1e-9;
      part.exposed_s += static_cast<double>(took - hidden) * 1e-9;
      part.card_bytes += task.card_bytes;
      part.port_bytes += task.port_bytes;
      const auto slack = slack_.try_emplace(key, run.slack_ns).first;
      slack->second = std::min(slack->second, run.slack_ns);
    }
    for (const HiddenExchange* const hidden : hidden_of_rank_[rank]) add_hidden(*hidden, parts);
    for (auto& [key, part] : parts) {
      std::tie(part.exchange, part.phase, part.group_ranks, part.group_nodes) = key;
      part.rank = rank;
      const auto [known, fresh] = most_.try_emplace(key, part);
      const auto rate = [](const CommunicationPart& one) {
        return std::tuple(one.exposed_s, one.seconds);
      };
      if (!fresh && rate(part) > rate(known->second)) known->second = part;
    }
  }

  // What has no task of its own counts as one.
  void add_hidden(const HiddenExchange& hidden, std::map<Key, CommunicationPart>& parts) {
    const Task& shown = task_of(hidden.shown);
    const Key key = key_of(hidden.exchange, shown.phase, hidden.pattern);
    CommunicationPart& part = parts[key];
    if (shown.ranks.empty()) ++part.tasks;
    part.seconds += static_cast<double>(hidden.hidden_ns) * 1e-9;
    part.card_bytes += hidden.card_bytes;
    part.port_bytes += hidden.port_bytes;
    const std::int64_t slack_ns = run_of(hidden.shown).slack_ns;
    const auto slack = slack_.try_emplace(key, slack_ns).first;
    slack->second = std::min(slack->second, slack_ns);
  }

  Key key_of(Exchange exchange, Phase phase, int of_pattern) const {
    if (of_pattern < 0 || exchange == Exchange::none || exchange == Exchange::weights) {
      return {exchange, phase, 0, 0};
    }
    const LinkPattern& pattern = tasks_.graph.patterns[static_cast<std::size_t>(of_pattern)];
    return {exchange, phase, pattern.group_ranks, pattern.group_nodes};
  }

  const IterationTasks& tasks_;
  const std::vector<TaskRun>& runs_;
  std::vector<std::vector<TaskId>> of_rank_;
  std::map<int, std::vector<const HiddenExchange*>> hidden_of_rank_;
  std::map<Key, CommunicationPart> most_;
  std::map<Key, std::int64_t> slack_;
};

}  // namespace

std::vector<CommunicationPart> communication_parts(const IterationTasks& tasks,
                                                   const std::vector<TaskRun>& runs, int ranks) {
  return Parts(tasks, runs, ranks).make();
}

}  // namespace tessera
