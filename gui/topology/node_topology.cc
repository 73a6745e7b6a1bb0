// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/topology/node_topology.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <map>
#include <sstream>
#include <vector>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"

namespace tessera::gui {
namespace {

using Cells = std::vector<std::string>;

constexpr std::size_t kMostBytes = 1 << 20, kMostParts = 256;
constexpr std::int64_t kMostLinks = 18;                                 // of a GPU, NVLink 4 and 5
constexpr double kSlowLink = 25e9, kFastLink = 50e9, kFastGpu = 600e9;  // bytes/s, a way
constexpr double kMostPcie = 128e9;                                     // of a GPU by PCIe 6.0 x16
// Of which 16 are reached (kReachedRate), as NCCL takes it of AMD's processors; it has 10 to 40 of
// Intel's since Skylake (graph/topo.h).
constexpr double kSocket = 20e9;
constexpr const char* kExpected = "the table that nvidia-smi topo -m prints";

// Without what underlines the headings on a terminal.
Cells words_of(const std::string& line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      plain += line[i];
      continue;
    }
    while (i < line.size() && std::isalpha(static_cast<unsigned char>(line[i])) == 0) ++i;
  }
  std::istringstream stream(plain);
  Cells words;
  for (std::string word; stream >> word && words.size() <= kMostParts;) words.push_back(word);
  return words;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 4 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}
bool is_gpu(const std::string& name) {
  return name.starts_with("GPU") && is_number(name.substr(3));
}

/// Links of NVLink where the word says so, 0 for another way; nullopt: it is no way.
std::optional<std::int64_t> links_in(const std::string& word) {
  static constexpr std::array<std::string_view, 6> kWays{"X", "SYS", "NODE", "PHB", "PXB", "PIX"};
  if (word.starts_with("NV") && is_number(word.substr(2))) {
    const std::int64_t links = std::stoll(word.substr(2));
    return links >= 1 && links <= kMostLinks ? std::optional(links) : std::nullopt;
  }
  if (std::find(kWays.begin(), kWays.end(), word) != kWays.end()) return 0;
  return std::nullopt;
}

struct Table {
  Cells parts;                        // of the heading: GPUs, then network cards
  std::map<std::string, Cells> rows;  // by part: its way to each
};

std::size_t gpus_in(const Cells& parts) {
  return static_cast<std::size_t>(std::count_if(parts.begin(), parts.end(), is_gpu));
}

// GPU0 GPU1 ... NIC0 ... CPU Affinity ...; a row has a way behind its name.
Cells heading_in(const Cells& words) {
  if (words.size() < 2 || words[0] != "GPU0" || links_in(words[1])) return {};
  const auto end = std::find(words.begin(), words.end(), "CPU");
  return {words.begin(), end};
}

std::optional<Table> table_in(std::string_view text, const std::string& file, Problems& problems) {
  const std::size_t before = problems.size();
  Table table;
  std::istringstream lines{std::string(text)};
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const Cells words = words_of(line);
    if (table.parts.empty()) {
      table.parts = heading_in(words);
      continue;
    }
    const Cells& parts = table.parts;
    if (words.empty() || std::find(parts.begin(), parts.end(), words[0]) == parts.end()) continue;
    const Cells ways(words.begin() + 1, words.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                            words.size(), parts.size() + 1)));
    const auto wrong = std::find_if(ways.begin(), ways.end(),
                                    [](const std::string& way) { return !links_in(way); });
    if (ways.size() < parts.size() || wrong != ways.end()) {
      problems.push_back(
          {file, std::to_string(number),
           wrong == ways.end() ? std::to_string(ways.size()) + " ways of " + words[0]
                               : "'" + *wrong + "'",
           std::to_string(parts.size()) + " of X, NV1 to NV18, PIX, PXB, PHB, NODE, SYS", ""});
      continue;
    }
    table.rows[words[0]] = ways;
  }
  if (table.parts.empty()) problems.push_back({file, "1", "no heading GPU0 ...", kExpected, ""});
  for (const std::string& part : table.parts) {
    if (!is_gpu(part) || table.rows.contains(part) || problems.size() != before) continue;
    problems.push_back({file, std::to_string(number), "no row of " + part, kExpected, ""});
  }
  return problems.size() == before ? std::optional(table) : std::nullopt;
}

// All of a GPU's: a switch gives it them to each other one, without one they are shared out.
std::int64_t links_of(const Table& table, std::size_t gpus) {
  std::int64_t fewest = kMostLinks, widest = 0, least_sum = kMostLinks;
  for (std::size_t a = 0; a < gpus; ++a) {
    std::int64_t sum = 0;
    for (std::size_t b = 0; b < gpus; ++b) {
      if (a == b) continue;
      const std::int64_t links = *links_in(table.rows.at(table.parts[a])[b]);
      fewest = std::min(fewest, links);
      widest = std::max(widest, links);
      sum += links;
    }
    least_sum = std::min(least_sum, sum);
  }
  if (gpus < 2 || fewest == 0) return 0;
  const bool shared_out = widest * static_cast<std::int64_t>(gpus - 1) <= kMostLinks;
  return shared_out ? least_sum : fewest;
}

// GPUs whose way to one another is none of `far`, where they are as many everywhere and have
// consecutive numbers; 0: they are all, or single ones, or lie otherwise. A bridge of NVLink hides
// the way of its pair, which is taken to be as near as others are.
std::int64_t together(const Table& table, std::size_t gpus,
                      std::initializer_list<std::string_view> far) {
  const auto near = [&](std::size_t a, std::size_t b) {
    return std::find(far.begin(), far.end(), table.rows.at(table.parts[a])[b]) == far.end();
  };
  std::size_t count = 0, bridged = 0;
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    if (!near(0, gpu)) continue;
    ++count;
    if (*links_in(table.rows.at(table.parts[0])[gpu]) > 0) ++bridged;
  }
  if (count - bridged <= 1 || count == gpus) return 0;
  for (std::size_t a = 0; a < gpus; ++a) {
    for (std::size_t b = 0; b < gpus; ++b) {
      if (near(a, b) != (a / count == b / count)) return 0;
    }
  }
  return static_cast<std::int64_t>(count);
}

std::int64_t cards_of(const Table& table, std::size_t gpus) {
  std::int64_t near = 0;
  for (std::size_t card = gpus; card < table.parts.size(); ++card) {
    for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
      const std::string& way = table.rows.at(table.parts[gpu])[card];
      if (way != "PIX" && way != "PXB") continue;
      ++near;
      break;
    }
  }
  return near > 0 ? near : static_cast<std::int64_t>(table.parts.size() - gpus);
}

}  // namespace

std::optional<NodeTopology> parse_topology(std::string_view text, const std::string& file,
                                           Problems& problems) {
  const auto table = table_in(text, file, problems);
  if (!table) return std::nullopt;
  const std::size_t gpus = gpus_in(table->parts);
  if (gpus == 0 || !std::all_of(table->parts.begin(),
                                table->parts.begin() + static_cast<std::ptrdiff_t>(gpus), is_gpu)) {
    problems.push_back({file, "1", "GPUs behind network cards", kExpected, ""});
    return std::nullopt;
  }
  NodeTopology topology{static_cast<std::int64_t>(gpus), links_of(*table, gpus),
                        cards_of(*table, gpus)};
  if (topology.links > 0) return topology;
  topology.gpus_per_switch = together(*table, gpus, {"PHB", "NODE", "SYS"});
  topology.gpus_per_socket = together(*table, gpus, {"SYS"});
  return topology;
}

std::optional<NodeTopology> read_topology(const std::filesystem::path& file, Problems& problems) {
  const auto text = read_text_file(file, kMostBytes, problems);
  return text ? parse_topology(*text, file.string(), problems) : std::nullopt;
}

ClusterSpec with_topology(ClusterSpec cluster, const NodeTopology& topology, Problems& problems) {
  const double rate = cluster.intra_per_gpu.value;
  if (!cluster.groups.empty()) {
    problems.push_back(
        {"the topology", "", "a cluster of several GPU types", "one of one type", ""});
  } else if (topology.links == 0 && topology.gpus > 1 && rate > kMostPcie) {
    problems.push_back({"the topology", "", "GPUs that NVLink does not join",
                        "a cluster whose GPUs are joined by PCIe, as l40s-8 or a100-pcie-8",
                        "it says how fast they are"});
  }
  cluster.gpus_per_node = topology.gpus;
  if (cluster.nics_per_node > 0 && topology.cards > 0) cluster.nics_per_node = topology.cards;
  const auto lay = [](SharedLink& link, std::int64_t gpus, BytesPerSecond otherwise) {
    link = gpus == 0 ? SharedLink{} : SharedLink{gpus, link.gpus > 0 ? link.rate : otherwise};
  };
  lay(cluster.pcie_switch, topology.gpus_per_switch, cluster.intra_per_gpu);
  lay(cluster.socket, topology.gpus_per_socket, BytesPerSecond{kSocket});
  if (topology.links == 0) return cluster;
  const double link = rate >= kFastGpu ? kFastLink : kSlowLink;
  cluster.intra_per_gpu = BytesPerSecond{link * static_cast<double>(topology.links)};
  cluster.intra_link = "NVLink, " + std::to_string(topology.links) + " links a GPU";
  return cluster;
}

}  // namespace tessera::gui
