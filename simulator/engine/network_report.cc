#include "simulator/engine/network_report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <string_view>

namespace tessera {
namespace {

[[gnu::format(printf, 1, 2)]] std::string line(const char* format, ...) {
  char text[256];
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return text;
}

constexpr double kGib = 1 << 30;

std::string group_text(const CommunicationPart& part) {
  if (part.group_ranks == 0) return "-";
  if (part.group_nodes <= 1) return line("%d on a node", part.group_ranks);
  return line("%d on %d nodes", part.group_ranks, part.group_nodes);
}

std::string_view kind_text(const CommunicationPart& part) {
  return part.exchange == Exchange::none ? "within layers" : name_of(part.exchange);
}

std::string_view kind_text(LinkKind kind) {
  switch (kind) {
    case LinkKind::card:
      return "card";
    case LinkKind::uplink:
      return "uplink";
    case LinkKind::port:
      return "port";
  }
  return {};
}

/// Bytes that crossed it over what it could have carried in the whole run.
double mean_load(const Simulation& simulation, const LinkLoad& link) {
  const double run_s = simulation.step_s * static_cast<double>(simulation.steps);
  const double most = link.bytes_per_s * run_s;
  return most > 0 ? static_cast<double>(link.bytes) / most : 0;
}

std::string parts_text(const Simulation& simulation) {
  std::string text = line("%-16s %-14s %-16s %10s %10s %10s %12s %12s\n", "communication", "what",
                          "group", "exposed", "hidden", "slack", "over cards", "over ports");
  const auto steps = static_cast<double>(simulation.steps);
  for (const CommunicationPart& part : simulation.communication) {
    text += line("%-16s %-14s %-16s %8.3f s %8.3f s %8.3f s %8.2f GiB %8.2f GiB\n",
                 std::string(name_of(part.phase)).c_str(), std::string(kind_text(part)).c_str(),
                 group_text(part).c_str(), part.exposed_s / steps,
                 (part.seconds - part.exposed_s) / steps, static_cast<double>(part.slack_ns) * 1e-9,
                 part.card_bytes / kGib / steps, part.port_bytes / kGib / steps);
  }
  return text;
}

std::string links_text(const Simulation& simulation) {
  std::string text;
  for (const LinkKind kind : {LinkKind::card, LinkKind::uplink, LinkKind::port}) {
    const LinkLoad* busiest = nullptr;
    for (const LinkLoad& link : simulation.links) {
      if (link.kind != kind) continue;
      if (busiest == nullptr || link.bytes > busiest->bytes) busiest = &link;
    }
    if (busiest == nullptr) continue;
    text += line("busiest %-6s  %s: something crosses it %.1f%% of the time, %.1f%% of its bytes\n",
                 std::string(kind_text(kind)).c_str(), busiest->name.c_str(),
                 100 * busiest->busy_share, 100 * mean_load(simulation, *busiest));
  }
  return text;
}

}  // namespace

std::string network_text(const Simulation& simulation) {
  if (simulation.communication.empty()) return {};
  std::string text = parts_text(simulation) + links_text(simulation);
  const SharedLinks& shared = simulation.shared;
  if (shared.any) {
    text += line(
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
    const auto most = std::max_element(link.load.begin(), link.load.end());
    links.push_back({{"link", link.name},
                     {"kind", kind_text(link.kind)},
                     {"bytes_per_s", link.bytes_per_s},
                     {"bytes", link.bytes},
                     {"busy_share", link.busy_share},
                     {"mean_load", mean_load(simulation, link)},
                     {"most_load", most == link.load.end() ? 0 : *most}});
  }
  const SharedLinks& shared = simulation.shared;
  if (!shared.any) return;
  json["shared_links"] = {{"step_s", shared.step_s},
                          {"waited_s", shared.waited_s},
                          {"equal_step_s", shared.equal_step_s}};
}

}  // namespace tessera
