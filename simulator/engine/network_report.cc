#include "simulator/engine/network_report.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "cost_models/documents/printed.h"

namespace tessera {
namespace {

constexpr double kGib = 1 << 30;

std::string group_text(const CommunicationPart& part) {
  if (part.group_ranks == 0) return "-";
  if (part.group_nodes <= 1) return printed("%d on a node", part.group_ranks);
  return printed("%d on %d nodes", part.group_ranks, part.group_nodes);
}

std::string_view kind_text(const CommunicationPart& part) {
  return part.exchange == Exchange::none ? "within layers" : name_of(part.exchange);
}

std::string parts_text(const Simulation& simulation) {
  std::string text =
      printed("%-16s %-14s %-16s %10s %10s %10s %12s %12s\n", "communication", "what", "group",
              "exposed", "hidden", "slack", "over cards", "over ports");
  const auto steps = static_cast<double>(simulation.steps);
  for (const CommunicationPart& part : simulation.communication) {
    text +=
        printed("%-16s %-14s %-16s %8.3f s %8.3f s %8.3f s %8.2f GiB %8.2f GiB\n",
                std::string(name_of(part.phase)).c_str(), std::string(kind_text(part)).c_str(),
                group_text(part).c_str(), part.exposed_s / steps,
                (part.seconds - part.exposed_s) / steps, static_cast<double>(part.slack_ns) * 1e-9,
                part.card_bytes / kGib / steps, part.port_bytes / kGib / steps);
  }
  return text;
}

std::string links_text(const Simulation& simulation) {
  std::string text;
  for (const LinkKind kind : {LinkKind::card, LinkKind::uplink, LinkKind::pcie_switch,
                              LinkKind::socket, LinkKind::port}) {
    const LinkLoad* busiest = nullptr;
    for (const LinkLoad& link : simulation.links) {
      if (link.kind != kind) continue;
      if (busiest == nullptr || link.bytes > busiest->bytes) busiest = &link;
    }
    if (busiest == nullptr) continue;
    text +=
        printed("busiest %-6s  %s: something crosses it %.1f%% of the time, %.1f%% of its bytes\n",
                std::string(name_of(kind)).c_str(), busiest->name.c_str(),
                100 * busiest->busy_share, 100 * busiest->mean_load);
  }
  return text;
}

}  // namespace

std::vector<Counter> load_counters(const Simulation& simulation, std::size_t most_events) {
  std::vector<std::size_t> order(simulation.links.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return simulation.links[one].bytes > simulation.links[other].bytes;
  });
  std::map<std::size_t, Counter> counters;
  std::size_t events = 0;
  for (const std::size_t place : order) {
    const LinkLoad& link = simulation.links[place];
    Counter counter{link.name, "per cent", simulation.load_window_ns, {}};
    for (const float load : link.load) counter.values.push_back(100 * static_cast<double>(load));
    events += counter.changes().size();
    if (most_events > 0 && events > most_events) break;
    counters.emplace(place, std::move(counter));
  }
  std::vector<Counter> shown;
  for (auto& [place, counter] : counters) shown.push_back(std::move(counter));
  return shown;
}

std::string network_text(const Simulation& simulation) {
  if (simulation.communication.empty()) return {};
  std::string text = parts_text(simulation) + links_text(simulation);
  const SharedLinks& shared = simulation.shared;
  if (shared.any) {
    text += printed(
        "links are shared: %.3f s of the step (%.3f s of all waits); %.3f s with equal shares\n",
        shared.step_s, shared.waited_s, shared.equal_step_s);
  }
  return text + "\n";
}

void add_network(const Simulation& simulation, nlohmann::ordered_json& json) {
  auto& parts = json["communication"] = nlohmann::ordered_json::array();
  const auto steps = static_cast<double>(simulation.steps);
  for (const CommunicationPart& part : simulation.communication) {
    parts.push_back({{"phase", name_of(part.phase)},
                     {"what", part.exchange == Exchange::none ? "layers" : name_of(part.exchange)},
                     {"rank", part.rank}});
    if (part.group_ranks > 0) {
      parts.back()["group"] = {{"ranks", part.group_ranks}, {"nodes", part.group_nodes}};
    }
    parts.back().update({{"exposed_s", part.exposed_s / steps},
                         {"hidden_s", (part.seconds - part.exposed_s) / steps},
                         {"card_bytes", part.card_bytes / steps},
                         {"port_bytes", part.port_bytes / steps},
                         {"slack_ns", part.slack_ns}});
  }
  auto& links = json["links"] = nlohmann::ordered_json::array();
  for (const LinkLoad& link : simulation.links) {
    links.push_back({{"link", link.name},
                     {"kind", name_of(link.kind)},
                     {"bytes_per_s", link.bytes_per_s},
                     {"bytes", link.bytes},
                     {"busy_share", link.busy_share},
                     {"mean_load", link.mean_load},
                     {"most_load", link.most_load}});
  }
  const SharedLinks& shared = simulation.shared;
  if (!shared.any) return;
  json["shared_links"] = {{"step_s", shared.step_s},
                          {"waited_s", shared.waited_s},
                          {"equal_step_s", shared.equal_step_s}};
}

}  // namespace tessera
