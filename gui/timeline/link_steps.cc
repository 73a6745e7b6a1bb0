// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/link_steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/strict_json.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/timeline/span_text.h"
#include "gui/translations/said.h"

namespace tessera::gui {
namespace {

QString percentText(double share) {
  return QString::number(100 * share, 'f', share < 0.1 ? 1 : 0) + " %";
}

QString timeText(double ns) { return secondsText(ns * 1e-9); }

QString exchangeText(Exchange exchange) {
  return exchange == Exchange::none ? Words::tr("layers (tensor, context, expert parallelism)")
                                    : said(name_of(exchange));
}

QString useText(const LinkUse& use) {
  return QString("%1, %2").arg(toText(name_of(use.phase)), exchangeText(use.exchange));
}

bool alike(const LinkLoad& a, const LinkLoad& b) {
  return a.kind == b.kind && a.bytes_per_s == b.bytes_per_s && a.load == b.load && a.uses == b.uses;
}

/// The call in which the lane's fullest window lies, and where.
struct Fullest {
  std::size_t window = 0;
  const LinkUse* use = nullptr;
};

Fullest fullest_of(const LinkSteps& steps, std::size_t lane) {
  const std::vector<float>& load = steps.lanes[lane].first().load;
  Fullest fullest;
  fullest.window =
      static_cast<std::size_t>(std::max_element(load.begin(), load.end()) - load.begin());
  const double ns =
      (static_cast<double>(fullest.window) + 0.5) * static_cast<double>(steps.window_ns);
  const std::vector<UseThen> uses = uses_at(steps, lane, ns);
  if (!uses.empty()) fullest.use = uses.front().use;
  return fullest;
}

// Of an exchange in a phase the simulator knows all bytes or (what layers exchange while they
// generate, a reshard without exact transfers, copies to host memory) none.
std::vector<Uncounted> uncounted_of(const Simulation& simulation) {
  std::set<std::pair<Phase, Exchange>> counted;
  for (const LinkLoad& link : simulation.links) {
    for (const LinkUse& use : link.uses) counted.emplace(use.phase, use.exchange);
  }
  std::vector<Uncounted> parts;
  for (const CommunicationPart& part : simulation.communication) {
    if (counted.contains({part.phase, part.exchange})) continue;
    const double seconds = part.seconds / static_cast<double>(simulation.steps);
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const Uncounted& other) {
      return other.phase == part.phase && other.exchange == part.exchange;
    });
    if (same == parts.end()) {
      parts.push_back({part.phase, part.exchange, seconds});
    } else {
      same->seconds = std::max(same->seconds, seconds);
    }
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Uncounted& a, const Uncounted& b) { return a.seconds > b.seconds; });
  return parts;
}

// "gradients (update_actor, update_critic), weights (reshard)".
QString usesText(const LinkSteps& steps) {
  std::map<Exchange, std::set<Phase>> phases;
  for (const LinkLane& lane : steps.lanes) {
    for (const LinkUse& use : lane.first().uses) phases[use.exchange].insert(use.phase);
  }
  QStringList texts;
  for (const auto& [exchange, of] : phases) {
    QStringList names;
    for (const Phase phase : of) names << toText(name_of(phase));
    texts << QString("%1 (%2)").arg(exchangeText(exchange), names.join(", "));
  }
  return texts.join(", ");
}

// "shards in ref (1.2 s), layers (...) in gen (0.5 s), update_actor (0.2 s)".
QString uncountedText(const std::vector<Uncounted>& parts) {
  std::vector<std::pair<QString, QStringList>> phases;  // by what, in the order of the parts
  for (const Uncounted& part : parts) {
    // Of layers, or of FSDP's shards that nothing hides.
    const QString what = part.exchange == Exchange::none ? Words::tr("exchanges within passes")
                                                         : exchangeText(part.exchange);
    const auto known = std::find_if(phases.begin(), phases.end(),
                                    [&](const auto& one) { return one.first == what; });
    QStringList& of =
        known != phases.end() ? known->second : phases.emplace_back(what, QStringList{}).second;
    of << QString("%1 (%2)").arg(toText(name_of(part.phase)), secondsText(part.seconds));
  }
  QStringList texts;
  for (const auto& [what, of] : phases) {
    texts << Words::tr("%1 in %2").arg(what, of.join(", "));
  }
  return texts.join(", ");
}

Node numbers(const std::vector<float>& values) {
  Node list = list_node();
  for (const float value : values) list.items.push_back(node_of(static_cast<double>(value)));
  return list;
}

Node lane_node(const LinkLane& lane) {
  const LinkLoad& link = lane.first();
  Node node = map_node(), names = list_node(), uses = list_node();
  for (const LinkLoad* each : lane.links) names.items.push_back(node_of(each->name));
  for (const LinkUse& use : link.uses) {
    Node each = map_node();
    add(each, "phase", node_of(std::string(name_of(use.phase))));
    add(each, "what", node_of(std::string(name_of(use.exchange))));
    add(each, "bytes", node_of(use.bytes));
    add(each, "first_window", node_of(use.first_window));
    add(each, "load", numbers(use.load));
    uses.items.push_back(std::move(each));
  }
  add(node, "links", std::move(names));
  add(node, "kind", node_of(std::string(name_of(link.kind))));
  add(node, "bytes_per_s", node_of(link.bytes_per_s));
  add(node, "bytes", node_of(link.bytes));
  add(node, "busy_share", node_of(link.busy_share));
  add(node, "mean_load", node_of(link.mean_load));
  add(node, "most_load", node_of(link.most_load));
  add(node, "load", numbers(link.load));
  add(node, "uses", std::move(uses));
  return node;
}

}  // namespace

std::size_t LinkSteps::window(double ns) const {
  if (empty() || window_ns <= 0) return 0;
  const auto last = static_cast<double>(lanes.front().first().load.size()) - 1;
  return static_cast<std::size_t>(
      std::clamp(std::floor(ns / static_cast<double>(window_ns)), 0.0, std::max(0.0, last)));
}

std::vector<RankLink> busiest_links(const Simulation& simulation) {
  std::vector<RankLink> ranks(simulation.ranks.size());
  for (const LinkLoad& link : simulation.links) {
    for (const int rank : link.ranks) {
      if (rank >= static_cast<int>(ranks.size())) continue;
      RankLink& busiest = ranks[static_cast<std::size_t>(rank)];
      if (busiest.name.empty() || link.mean_load > busiest.mean_load) {
        busiest = {link.mean_load, link.name};
      }
    }
  }
  return ranks;
}

LinkSteps link_steps_of(const TimelineIndex& index) {
  const Simulation& simulation = index.simulation;
  LinkSteps steps{
      {}, uncounted_of(simulation), &simulation.calls, simulation.load_window_ns, index.end_ns};
  // Equal lanes have equal sums; among those few are compared in full.
  std::multimap<std::tuple<LinkKind, std::int64_t, double>, std::size_t> known;
  for (const LinkLoad& link : simulation.links) {
    const std::tuple key(link.kind, link.bytes, link.most_load);
    const auto [from, to] = known.equal_range(key);
    const auto same = std::find_if(
        from, to, [&](const auto& lane) { return alike(steps.lanes[lane.second].first(), link); });
    if (same != to) {
      steps.lanes[same->second].links.push_back(&link);
    } else {
      known.emplace(key, steps.lanes.size());
      steps.lanes.push_back({{&link}});
    }
  }
  std::stable_sort(steps.lanes.begin(), steps.lanes.end(), [](const auto& a, const auto& b) {
    // Peaks that are told alike are: what crosses a link in the step decides then.
    const auto peak = [](const LinkLane& lane) {
      return std::lround(100 * lane.first().most_load);
    };
    return std::tuple(-peak(a), -a.first().mean_load) < std::tuple(-peak(b), -b.first().mean_load);
  });
  return steps;
}

bool carries(const LinkLane& lane, int rank) {
  return rank >= 0 && std::any_of(lane.links.begin(), lane.links.end(), [&](const LinkLoad* link) {
           return std::binary_search(link->ranks.begin(), link->ranks.end(), rank);
         });
}

double load_at(const LinkSteps& steps, std::size_t lane, double ns) {
  return steps.lanes[lane].first().load[steps.window(ns)];
}

std::vector<UseThen> uses_at(const LinkSteps& steps, std::size_t lane, double ns) {
  const auto window = static_cast<std::ptrdiff_t>(steps.window(ns));
  std::vector<UseThen> uses;
  for (const LinkUse& use : steps.lanes[lane].first().uses) {
    const std::ptrdiff_t at = window - use.first_window;
    if (at < 0 || at >= std::ssize(use.load)) continue;
    const float load = use.load[static_cast<std::size_t>(at)];
    if (load > 0) uses.push_back({&use, load});
  }
  std::stable_sort(uses.begin(), uses.end(),
                   [](const UseThen& a, const UseThen& b) { return a.load > b.load; });
  return uses;
}

std::vector<LoadColumn> columns_of(const LinkSteps& steps, std::size_t lane, const TimeAxis& axis,
                                   int width) {
  const std::vector<float>& load = steps.lanes[lane].first().load;
  std::vector<LoadColumn> columns;
  for (int x = 0; x < width; ++x) {
    const std::size_t first = steps.window(axis.time_at(x));
    const std::size_t last = steps.window(std::nextafter(axis.time_at(x + 1), axis.time_at(x)));
    const float most = *std::max_element(load.begin() + static_cast<std::ptrdiff_t>(first),
                                         load.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    if (!columns.empty() && columns.back().load == most) {
      columns.back().to = x + 1;
    } else {
      columns.push_back({x, x + 1, most});
    }
  }
  return columns;
}

double next_change(const LinkSteps& steps, std::size_t lane, double ns, int step) {
  const std::vector<float>& load = steps.lanes[lane].first().load;
  const auto start = [&](std::size_t window) {
    return static_cast<double>(window) * static_cast<double>(steps.window_ns);
  };
  std::size_t window = steps.window(ns);
  const float now = load[window];
  while (step > 0 ? window + 1 < load.size() : window > 0) {
    window = step > 0 ? window + 1 : window - 1;
    if (load[window] != now) return start(window);
  }
  return start(window);
}

QString nameOf(const LinkLane& lane) {
  const QString name = said(lane.first().name);
  if (lane.links.size() == 1) return name;
  return Words::tr("%1 and %2 like it")
      .arg(name, countText(static_cast<double>(lane.links.size() - 1)));
}

QString kindText(LinkKind kind) {
  switch (kind) {
    case LinkKind::card:
      return Words::tr("network card");
    case LinkKind::uplink:
      return Words::tr("leaf uplink");
    case LinkKind::pcie_switch:
      return Words::tr("uplink of a PCIe switch");
    case LinkKind::socket:
      return Words::tr("link of a socket");
    case LinkKind::port:
      break;
  }
  return Words::tr("port within the node");
}

QString rateText(double bytes_per_s) {
  return QString::number(bytes_per_s * 1e-9, 'f', bytes_per_s < 1e10 ? 1 : 0) + " GB/s";
}

QString loadText(const LinkSteps& steps) {
  if (steps.empty()) return {};
  const LinkLoad& link = steps.lanes.front().first();
  const Fullest fullest = fullest_of(steps, 0);
  const double ns = static_cast<double>(fullest.window) * static_cast<double>(steps.window_ns);
  const QString text =
      Words::tr(
          "The fullest is <b>%1</b> (%2, %3): it carries %4 % of what it could in the step, "
          "and %5 % at its peak, after %6")
          .arg(said(link.name), kindText(link.kind), rateText(link.bytes_per_s))
          .arg(100 * link.mean_load, 0, 'f', 1)
          .arg(100 * link.most_load, 0, 'f', 0)
          .arg(timeText(ns));
  return fullest.use == nullptr ? text + "." : text + " (" + useText(*fullest.use) + ").";
}

QString countedText(const LinkSteps& steps) {
  const QString parts = uncountedText(steps.uncounted);
  const QString uses = usesText(steps);
  QString text = uses.isEmpty() ? QString() : Words::tr("Counted: %1.").arg(uses) + " ";
  return text + (parts.isEmpty() ? Words::tr("Ranks exchange nothing else.")
                                 : Words::tr("<b>Not counted</b>: %1.").arg(parts));
}

QString describe(const LinkSteps& steps, std::size_t lane, double ns) {
  const LinkLane& of = steps.lanes[lane];
  QString text = Words::tr("%1, after %2: %3 of %4")
                     .arg(nameOf(of), timeText(ns), percentText(load_at(steps, lane, ns)),
                          rateText(of.first().bytes_per_s));
  for (const UseThen& then : uses_at(steps, lane, ns)) {
    text += "\n" + useText(*then.use) + ": " + percentText(then.load);
  }
  return text;
}

std::string csv_of(const LinkSteps& steps) {
  if (steps.empty()) return {};
  CsvTable table;
  table.header = {"link",  "kind",       "first_rank", "bytes_per_s",
                  "bytes", "busy_share", "mean_load",  "most_load"};
  const auto text = [](double number) { return QString::number(number, 'g', 9).toStdString(); };
  for (const LinkLane& lane : steps.lanes) {
    for (const LinkLoad* link : lane.links) {
      const int first = link->ranks.empty() ? -1 : link->ranks.front();
      table.rows.push_back(
          {0,
           {link->name, std::string(name_of(link->kind)), std::to_string(first),
            text(link->bytes_per_s), std::to_string(link->bytes), text(link->busy_share),
            text(link->mean_load), text(link->most_load)}});
    }
  }
  return to_csv(table);
}

std::string json_of(const LinkSteps& steps) {
  if (steps.empty()) return {};
  Node root = map_node(), lanes = list_node();
  for (const LinkLane& lane : steps.lanes) lanes.items.push_back(lane_node(lane));
  add(root, "window_ns", node_of(steps.window_ns));
  add(root, "end_ns", node_of(steps.end_ns));
  add(root, "lanes", std::move(lanes));
  Node uncounted = list_node();
  for (const Uncounted& part : steps.uncounted) {
    Node each = map_node();
    add(each, "phase", node_of(std::string(name_of(part.phase))));
    add(each, "what", node_of(std::string(name_of(part.exchange))));
    add(each, "seconds", node_of(part.seconds));
    uncounted.items.push_back(std::move(each));
  }
  add(root, "not_counted", std::move(uncounted));
  return json_text(root);
}

}  // namespace tessera::gui
