#include "simulator/network/machine_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

std::optional<double> number_from(std::string_view text) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::int64_t> index_from(std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// One thing that may be set. `most`: values above it are out of range.
struct Setting {
  std::string_view name;
  bool indexed = false;  // NAME/NUMBER
  bool whole = false;
  double least = 0, most = 0;
  std::string_view expected;
  void (*apply)(ClusterSpec&, MachineSettings&, std::int64_t index, double value);
  std::int64_t (*indices)(const ClusterSpec&);  // of NUMBER, how many there are
};

constexpr double kAny = std::numeric_limits<double>::max();

void set_cards(ClusterSpec& cluster, std::int64_t cards) {
  cluster.nics_per_node = cards;
  for (NodeGroup& group : cluster.groups) group.nics_per_node = cards;
}

void set_rate(ClusterSpec& cluster, double rate) {
  cluster.nic = BytesPerSecond{rate};
  for (NodeGroup& group : cluster.groups) group.nic = cluster.nic;
}

std::int64_t none(const ClusterSpec&) { return 0; }

/// The links that GPUs of a node share; the names are the cluster's keys.
constexpr std::string_view kSwitchGpus = "gpus_per_switch", kSwitchRate = "gb_s_per_switch_one_way",
                           kSocketGpus = "gpus_per_socket", kSocketRate = "gb_s_per_socket_one_way";

template <SharedLink ClusterSpec::*link>
void set_sharing(ClusterSpec& cluster, MachineSettings& /*settings*/, std::int64_t /*index*/,
                 double value) {
  (cluster.*link).gpus = static_cast<std::int64_t>(value);
}

template <SharedLink ClusterSpec::*link>
void set_link_rate(ClusterSpec& cluster, MachineSettings& /*settings*/, std::int64_t /*index*/,
                   double value) {
  (cluster.*link).rate = gb_per_s(value);
}

const std::array<Setting, 11>& every_setting() {
  constexpr std::string_view kSharing = "a whole number from 0 (none share one) to 1024",
                             kSharedRate = "GB/s from 1e-6 to 1e9";
  static const std::array<Setting, 11> all{{
      {"nic_bytes_per_s", false, false, 1, kAny, "a rate of at least 1 byte per second",
       [](ClusterSpec& cluster, MachineSettings&, std::int64_t, double value) {
         set_rate(cluster, value);
       },
       none},
      {"nics_per_node", false, true, 1, 1024, "a whole number from 1 to 1024",
       [](ClusterSpec& cluster, MachineSettings&, std::int64_t, double value) {
         set_cards(cluster, static_cast<std::int64_t>(value));
       },
       none},
      {"oversubscription", false, false, 1, 1e6, "a number from 1 to 1e6",
       [](ClusterSpec& cluster, MachineSettings&, std::int64_t, double value) {
         cluster.oversubscription = value;
       },
       none},
      {"nodes_per_leaf", false, true, 1, 1e6, "a whole number from 1 to 1e6",
       [](ClusterSpec& cluster, MachineSettings&, std::int64_t, double value) {
         cluster.nodes_per_leaf = static_cast<std::int64_t>(value);
       },
       none},
      {"rails", false, true, 0, 1, "0 or 1",
       [](ClusterSpec& cluster, MachineSettings&, std::int64_t, double value) {
         cluster.rails = value > 0;
       },
       none},
      {kSwitchGpus, false, true, 0, 1024, kSharing, set_sharing<&ClusterSpec::pcie_switch>, none},
      {kSwitchRate, false, false, 1e-6, 1e9, kSharedRate, set_link_rate<&ClusterSpec::pcie_switch>,
       none},
      {kSocketGpus, false, true, 0, 1024, kSharing, set_sharing<&ClusterSpec::socket>, none},
      {kSocketRate, false, false, 1e-6, 1e9, kSharedRate, set_link_rate<&ClusterSpec::socket>,
       none},
      {"lost_nics", true, true, 1, 1023, "a whole number of cards, of which the node keeps one",
       [](ClusterSpec&, MachineSettings& settings, std::int64_t index, double value) {
         settings.lost_card_of.insert(settings.lost_card_of.end(), static_cast<std::size_t>(value),
                                      index);
       },
       [](const ClusterSpec& cluster) { return cluster.nodes; }},
      {"slow_rank", true, false, 1e-3, 1e3, "a factor from 0.001 to 1000",
       [](ClusterSpec&, MachineSettings& settings, std::int64_t index, double value) {
         settings.slow_ranks[static_cast<int>(index)] = value;
       },
       [](const ClusterSpec& cluster) { return cluster.gpus(); }},
  }};
  return all;
}

const Setting* find(std::string_view name) {
  const auto& all = every_setting();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Setting& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

/// A word that names a setting. `whole_name`: with its index.
struct Word {
  const Setting* setting = nullptr;
  std::string whole_name, index, value;
};

Word split(const std::string& word) {
  Word parts;
  const auto equals = word.find('=');
  parts.whole_name = word.substr(0, equals);
  parts.value = equals == word.npos ? "" : word.substr(equals + 1);
  const auto slash = parts.whole_name.find('/');
  if (slash != word.npos) parts.index = parts.whole_name.substr(slash + 1);
  parts.setting = find(parts.whole_name.substr(0, slash));
  if (parts.setting != nullptr && !parts.setting->indexed && slash != word.npos) {
    parts.setting = nullptr;
  }
  return parts;
}

void apply(const Word& word, ClusterSpec& cluster, MachineSettings& settings, Problems& problems) {
  const Setting& setting = *word.setting;
  std::int64_t index = 0;
  if (setting.indexed) {
    const auto given = index_from(word.index);
    const std::int64_t count = setting.indices(cluster);
    if (!given || *given >= count) {
      problems.push_back({"--set", word.whole_name, "'" + word.index + "'",
                          std::string(setting.name) + "/NUMBER=VALUE with a number from 0 to " +
                              std::to_string(count - 1),
                          ""});
      return;
    }
    index = *given;
  }
  const auto value = number_from(word.value);
  const bool fits = value && *value >= setting.least && *value <= setting.most &&
                    (!setting.whole || *value == std::floor(*value));
  if (!fits) {
    problems.push_back(
        {"--set", word.whole_name, "'" + word.value + "'", std::string(setting.expected), ""});
    return;
  }
  setting.apply(cluster, settings, index, *value);
}

/// A link that GPUs share has a number of them and a rate, whichever of the two is set here.
void check_shared(const SharedLink& link, std::string_view gpus, std::string_view rate,
                  const std::set<std::string>& given, Problems& problems) {
  const bool sets_gpus = given.contains(std::string(gpus)),
             sets_rate = given.contains(std::string(rate));
  const auto lacks = [&](std::string_view one, std::string_view other) {
    problems.push_back({"--set", std::string(one), "no " + std::string(other),
                        "--set " + std::string(other) + "=VALUE beside it, as the cluster has none",
                        ""});
  };
  if (sets_gpus && link.gpus > 0 && link.rate.value <= 0) lacks(gpus, rate);
  if (sets_rate && !sets_gpus && link.gpus == 0) lacks(rate, gpus);
}

}  // namespace

std::vector<std::string> set_machine(ClusterSpec& cluster, MachineSettings& settings,
                                     std::span<const std::string> words, Problems& problems) {
  std::vector<std::string> others;
  std::set<std::string> given;
  for (const std::string& word : words) {
    const Word parts = split(word);
    if (parts.setting == nullptr) {
      others.push_back(word);
    } else if (!given.insert(parts.whole_name).second) {
      problems.push_back({"--set", parts.whole_name, "'" + word + "'",
                          "a name that no --set before gave", "one value for each"});
    } else {
      apply(parts, cluster, settings, problems);
    }
  }
  if (problems.empty()) {
    check_shared(cluster.pcie_switch, kSwitchGpus, kSwitchRate, given, problems);
    check_shared(cluster.socket, kSocketGpus, kSocketRate, given, problems);
  }
  const std::int64_t cards =
      std::min(std::max<std::int64_t>(1, cluster.nics_per_node), cluster.gpus_per_node);
  for (const std::int64_t node : settings.lost_card_of) {
    const auto lost = std::count(settings.lost_card_of.begin(), settings.lost_card_of.end(), node);
    if (lost < cards) continue;
    problems.push_back(
        {"--set", "lost_nics/" + std::to_string(node), std::to_string(lost),
         "fewer cards than the " + std::to_string(cards) + " that GPUs of a node use", ""});
    break;
  }
  return others;
}

}  // namespace tessera
