// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/step/rollout_steps.h"

#include <algorithm>
#include <limits>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/strict_json.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/timeline/span_text.h"

namespace tessera::gui {
namespace {

const std::vector<ActiveSample>& samplesOf(const RolloutSteps& steps, std::size_t replica) {
  return steps.replicas[replica].rollout->samples;
}

QString sinceText(const RolloutSteps& steps, std::int64_t ns) {
  return secondsText(static_cast<double>(steps.since(ns)) * 1e-9);
}

QString ranksOf(const ReplicaRollout& replica) { return ranksText(RankGroup{replica.ranks}); }

Node tail_node(const RolloutTail& tail) {
  Node node = map_node();
  add(node, "sequences", node_of(tail.sequences));
  add(node, "start_ns", node_of(tail.start_ns));
  add(node, "half_ended_ns", node_of(tail.half_ns));
  add(node, "nine_tenths_ended_ns", node_of(tail.most_ns));
  add(node, "end_ns", node_of(tail.end_ns));
  add(node, "tail_share", node_of(tail.share()));
  return node;
}

}  // namespace

RolloutSteps rollout_steps_of(const TimelineIndex& index) {
  const std::vector<ReplicaRollout>& all = index.simulation.rollout;
  const std::vector<RolloutTail> tails = rollout_tails(all);
  RolloutSteps steps;
  if (tails.empty()) return steps;
  steps.tail = tails.front();
  for (const ReplicaRollout& replica : all) {
    if (replica.step != steps.tail.step) break;
    steps.replicas.push_back({&replica, rollout_tails(std::span(&replica, 1)).front()});
    for (const ActiveSample& sample : replica.samples) {
      steps.most_active = std::max(steps.most_active, sample.active);
    }
  }
  return steps;
}

ActiveSample active_at(const RolloutSteps& steps, std::size_t replica, double ns) {
  const std::vector<ActiveSample>& samples = samplesOf(steps, replica);
  const auto after =
      std::partition_point(samples.begin(), samples.end(), [&](const ActiveSample& sample) {
        return static_cast<double>(steps.since(sample.time_ns)) <= ns;
      });
  return after == samples.begin() ? samples.front() : *(after - 1);
}

ActiveSample active_at(const RolloutSteps& steps, double ns) {
  ActiveSample all{.time_ns = steps.tail.start_ns};
  for (std::size_t replica = 0; replica < steps.replicas.size(); ++replica) {
    const ActiveSample one = active_at(steps, replica, ns);
    all.active += one.active;
    all.ended += one.ended;
    all.time_ns = std::max(all.time_ns, one.time_ns);
  }
  return all;
}

std::vector<std::int64_t> changes_of(const RolloutSteps& steps) {
  std::vector<std::int64_t> times;
  for (std::size_t replica = 0; replica < steps.replicas.size(); ++replica) {
    for (const ActiveSample& sample : samplesOf(steps, replica)) {
      times.push_back(steps.since(sample.time_ns));
    }
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

std::vector<ActiveColumn> columns_of(const RolloutSteps& steps, std::size_t replica,
                                     const TimeAxis& axis, int width) {
  const std::vector<ActiveSample>& samples = samplesOf(steps, replica);
  std::size_t at = 0;
  const auto next_ns = [&] {
    return at + 1 < samples.size() ? static_cast<double>(steps.since(samples[at + 1].time_ns))
                                   : std::numeric_limits<double>::infinity();
  };
  std::vector<ActiveColumn> columns;
  for (int x = 0; x < width; ++x) {
    while (next_ns() <= axis.time_at(x)) ++at;
    std::int64_t active = samples[at].active;
    while (next_ns() < axis.time_at(x + 1)) active = std::max(active, samples[++at].active);
    if (!columns.empty() && columns.back().active == active) {
      columns.back().to = x + 1;
    } else {
      columns.push_back({x, x + 1, active});
    }
  }
  return columns;
}

int replica_of_rank(const RolloutSteps& steps, int rank) {
  for (std::size_t replica = 0; replica < steps.replicas.size(); ++replica) {
    const std::vector<int>& ranks = steps.replicas[replica].rollout->ranks;
    if (std::binary_search(ranks.begin(), ranks.end(), rank)) return static_cast<int>(replica);
  }
  return -1;
}

QString tailText(const RolloutSteps& steps) {
  const RolloutTail& tail = steps.tail;
  if (steps.empty()) return {};
  if (tail.half_ns == tail.end_ns) {
    return Words::tr("All %1 responses end together, after %2: there is no tail.")
        .arg(countText(static_cast<double>(tail.sequences)), sinceText(steps, tail.end_ns));
  }
  const auto last =
      std::max_element(steps.replicas.begin(), steps.replicas.end(),
                       [](const auto& a, const auto& b) { return a.tail.end_ns < b.tail.end_ns; });
  const QString where = steps.replicas.size() > 1
                            ? Words::tr(", the very last on %1").arg(ranksOf(*last->rollout))
                            : QString();
  return Words::tr(
             "Half of the %1 responses have ended after %2, nine tenths after %3. The others "
             "take another %4: <b>the tail is %5 % of the generation</b>%6.")
      .arg(countText(static_cast<double>(tail.sequences)), sinceText(steps, tail.half_ns),
           sinceText(steps, tail.most_ns),
           secondsText(static_cast<double>(tail.end_ns - tail.most_ns) * 1e-9))
      .arg(100 * tail.share(), 0, 'f', 0)
      .arg(where);
}

QString describe(const RolloutSteps& steps, int replica, double ns) {
  if (steps.empty()) return {};
  const auto words = [](const ActiveSample& at, std::int64_t of) {
    return Words::tr("%1 active, %2 of %3 ended")
        .arg(countText(static_cast<double>(at.active)), countText(static_cast<double>(at.ended)),
             countText(static_cast<double>(of)));
  };
  QString text =
      Words::tr("%1 into the generation: %2")
          .arg(secondsText(ns * 1e-9), words(active_at(steps, ns), steps.tail.sequences));
  if (replica < 0) return text;
  const auto at = static_cast<std::size_t>(replica);
  return text + "\n" + ranksOf(*steps.replicas[at].rollout) + ": " +
         words(active_at(steps, at, ns), steps.replicas[at].tail.sequences);
}

std::string csv_of(const RolloutSteps& steps) {
  if (steps.empty()) return {};
  CsvTable table;
  table.header = {"replica", "first_rank", "time_ns", "active", "ended"};
  for (const ReplicaSteps& replica : steps.replicas) {
    for (const ActiveSample& sample : replica.rollout->samples) {
      CsvRow row;
      for (const std::int64_t number :
           {std::int64_t{replica.rollout->replica}, std::int64_t{replica.rollout->ranks.front()},
            sample.time_ns, sample.active, sample.ended}) {
        row.cells.push_back(std::to_string(number));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return to_csv(table);
}

std::string json_of(const RolloutSteps& steps) {
  if (steps.empty()) return {};
  Node root = tail_node(steps.tail), replicas = list_node();
  for (const ReplicaSteps& replica : steps.replicas) {
    Node each = tail_node(replica.tail), ranks = list_node();
    for (const int rank : replica.rollout->ranks) ranks.items.push_back(node_of(rank));
    add(each, "replica", node_of(replica.rollout->replica));
    add(each, "ranks", std::move(ranks));
    replicas.items.push_back(std::move(each));
  }
  add(root, "replicas", std::move(replicas));
  return json_text(root);
}

}  // namespace tessera::gui
