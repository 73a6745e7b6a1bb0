#include "cost_models/nccl/tuning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>

#include "cost_models/documents/printed.h"
#include "cost_models/spec/device/device_kind.h"

namespace tessera {
namespace {

using ByProtocol = std::array<double, 3>;  // LL, LL128, Simple

constexpr std::array kAlgorithms{NcclAlgorithm::tree, NcclAlgorithm::ring, NcclAlgorithm::nvls,
                                 NcclAlgorithm::nvls_tree};
constexpr std::array kProtocols{NcclProtocol::ll, NcclProtocol::ll128, NcclProtocol::simple};

// Microseconds (tuning.cc: baseLatencies, hwLatencies).
constexpr ByProtocol kTreeBase{6.8, 14.0, 8.4}, kRingBase{6.6, 14.0, 8.4};
constexpr ByProtocol kTreeNvlink{0.6, 1.25, 4.0}, kRingNvlink{0.6, 1.9, 3.4};
constexpr ByProtocol kTreeNet{5.0, 8.5, 14.0}, kRingNet{2.7, 4.0, 14.0};
constexpr double kNvlsNvlink = 25, kNvlsTreeNet = 20.9;
constexpr double kNetOverhead = 1;  // of a message on Intel's processors; Simple has three
// Latency of an all-reduce's ring over nodes, Simple, from so many bytes a rank on.
constexpr double kRingPlateau = 1.4, kPlateauBytes = 65536.0 / 16;

// Trees by power of two from 64 bytes on (treeCorrectionFactor).
constexpr std::array<std::array<double, 24>, 3> kTreeBySize{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
      .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}}};

// Speeds of a channel that the search tries within a node and between nodes (search.cc), GB/s.
constexpr std::array kInside80{40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 3.0};
constexpr std::array kInside90{60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0};
constexpr std::array kInside100{90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0};
constexpr std::array kBetween80{48.0, 30.0, 28.0, 24.0, 20.0, 18.0,
                                15.0, 12.0, 10.0, 9.0,  6.0,  3.0};
constexpr std::array kBetween90{48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0,
                                20.0, 17.5, 15.0, 12.0, 6.0,  3.0};
constexpr std::array kBetween100{96.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0,
                                 22.0, 20.0, 17.5, 15.0, 12.0, 6.0,  3.0};

/// GB/s of a generation: bounds of a channel by one, two and more nodes.
struct Generation {
  int capability = 90;
  double link_part = 0;  // of the data sheet's rate that NCCL counts on (topo.h)
  double most_ll = 0;    // within a node
  double ring_ll128 = 0;
  std::array<double, 3> tree_ll128{}, tree{}, nvls_tree{};
  double nvls_part = 0;
  std::span<const double> inside, between;  // speeds of a channel, falling
};
constexpr std::array<Generation, 3> kGenerations{{
    {80, 0.8, 87.7, 20, {20, 20, 20}, {24, 23.6, 17.8}, {0, 0, 0}, 0, kInside80, kBetween80},
    {90,
     0.824,
     141,
     36.7,
     {36.7, 36.7, 29},
     {38.7, 41.4, 36},
     {0, 57.7, 45.5},
     0.85,
     kInside90,
     kBetween90},
    {100,
     0.802,
     282,
     40,
     {55.6, 31.67, 20},
     {70, 42.8, 24},
     {0, 96, 80},
     0.74,
     kInside100,
     kBetween100},
}};
constexpr std::array<double, 2> kMostLlBetweenNodes{39.0, 20.4};  // two, more; Intel's processors

constexpr int kChannels = 12;  // of rings and trees within a node (logs of DGX-H100 and A100)

double speed_within(std::span<const double> speeds, double most) {
  for (const double speed : speeds) {
    if (speed <= most) return speed;
  }
  return most;
}

std::size_t index_of(NcclProtocol protocol) { return static_cast<std::size_t>(protocol); }

const Generation& generation_of(const NcclMachine& machine) {
  for (const Generation& one : kGenerations) {
    if (one.capability == machine.generation) return one;
  }
  return kGenerations[1];
}

/// What a model of one algorithm is made of.
struct Group {
  NcclCollective collective;
  int ranks = 2, nodes = 1;
  const NcclMachine& machine;
  const Generation& generation;

  bool sums() const { return collective == NcclCollective::all_reduce; }
  int per_node() const { return ranks / nodes; }
  int steps() const { return (sums() ? 2 : 1) * (ranks - 1); }
  int steps_between() const { return (sums() ? 2 : 1) * (nodes - 1); }
  std::size_t span() const { return nodes == 1 ? 0U : nodes == 2 ? 1U : 2U; }
  double links() const { return machine.nvlink.value * 1e-9 * generation.link_part; }
  int channels() const {
    return nodes == 1 ? kChannels : static_cast<int>(std::max<std::int64_t>(1, machine.cards));
  }
  double channel() const {
    const double inside = links() / channels();
    if (nodes == 1) return speed_within(generation.inside, inside);
    return speed_within(generation.between, std::min(inside, machine.card.value * 1e-9));
  }
  /// Of a step within a node where the group spans several.
  double inside_us(double hardware, NcclProtocol protocol) const {
    const double overhead = kNetOverhead * (protocol == NcclProtocol::simple ? 3 : 1);
    return nodes > 1 ? std::max(hardware, overhead) : hardware;
  }
};

struct Model {
  double latency_us = 0, gb_s = 0;  // of the whole buffer
};

double most_ll(const Group& group) {
  if (group.nodes == 1) return group.generation.most_ll;
  return kMostLlBetweenNodes[group.nodes == 2 ? 0 : 1];
}

Model ring(const Group& group, NcclProtocol protocol, double bytes) {
  double bus = group.channels() * group.channel();
  if (protocol == NcclProtocol::ll) bus = std::min(most_ll(group), bus / 2);
  if (protocol == NcclProtocol::ll128) {
    bus = std::min(0.92 * bus, group.channels() * group.generation.ring_ll128);
  }
  const std::size_t p = index_of(protocol);
  double latency =
      kRingBase[p] +
      (group.steps() - group.steps_between()) * group.inside_us(kRingNvlink[p], protocol) +
      group.steps_between() * (group.per_node() == 1 ? kTreeNet : kRingNet)[p];
  const bool plateau = group.sums() && group.nodes > 1 && protocol == NcclProtocol::simple &&
                       bytes >= group.ranks * kPlateauBytes;
  if (plateau) latency *= kRingPlateau;
  return {latency, bus * group.ranks / group.steps()};
}

Model tree(const Group& group, NcclProtocol protocol, double bytes) {
  const int channels = group.channels();
  double bus =
      std::min(0.92 * channels * group.channel(), channels * group.generation.tree[group.span()]);
  if (protocol == NcclProtocol::ll) bus = std::min(bus / 3.8, most_ll(group));
  if (protocol == NcclProtocol::ll128) {
    bus = std::min(bus * (group.nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                   channels * group.generation.tree_ll128[group.span()]);
  }
  const std::size_t p = index_of(protocol);
  const double levels = std::floor(std::log2(group.nodes));
  const auto size = static_cast<std::size_t>(std::max(0.0, std::floor(std::log2(bytes / 64))));
  if (size < kTreeBySize[p].size()) bus *= kTreeBySize[p][size];
  return {kTreeBase[p] + 2 * ((group.per_node() - 1) * group.inside_us(kTreeNvlink[p], protocol) +
                              levels * kTreeNet[p]),
          bus / 2};
}

/// A channel for each of a node's GPUs.
double nvls_channel(const Group& group) {
  const double gpus = group.per_node();
  return speed_within(group.generation.inside, group.links() / gpus) * group.generation.nvls_part *
         (gpus - 1) / gpus;
}

Model nvls(const Group& group) {
  const double gpus = group.per_node();
  const double bus = gpus * nvls_channel(group) * (group.sums() ? 2 : (gpus - 1) / gpus);
  return {kNvlsNvlink, bus * group.ranks / group.steps()};
}

Model nvls_tree(const Group& group) {
  const double between = group.channel() * (group.nodes == 2 ? 2 : 1);
  const double channel =
      std::min({2 * nvls_channel(group), between, group.generation.nvls_tree[group.span()]});
  return {kNvlsNvlink + 2 * std::floor(std::log2(group.nodes)) * kNvlsTreeNet,
          group.per_node() * channel / 2};
}

bool exists(const Group& group, NcclAlgorithm algorithm, NcclProtocol protocol) {
  const bool simple = protocol == NcclProtocol::simple;
  switch (algorithm) {
    case NcclAlgorithm::ring:
      return true;
    case NcclAlgorithm::tree:
      return group.sums();
    case NcclAlgorithm::nvls:
      return simple && group.machine.multicast && group.nodes == 1 && group.ranks > 2;
    case NcclAlgorithm::nvls_tree:
      return simple && group.machine.multicast && group.nodes > 1 && group.sums() &&
             group.per_node() > 2;
  }
  return false;
}

Model model_of(const Group& group, double bytes, NcclAlgorithm algorithm, NcclProtocol protocol) {
  switch (algorithm) {
    case NcclAlgorithm::tree:
      return tree(group, protocol, bytes);
    case NcclAlgorithm::nvls:
      return nvls(group);
    case NcclAlgorithm::nvls_tree:
      return nvls_tree(group);
    case NcclAlgorithm::ring:
      break;
  }
  return ring(group, protocol, bytes);
}

}  // namespace

std::optional<NcclAlgorithm> nccl_algorithm(std::string_view name) {
  const std::string wanted = lower_case(name);
  if (wanted == "tree") return NcclAlgorithm::tree;
  if (wanted == "ring") return NcclAlgorithm::ring;
  if (wanted == "nvls") return NcclAlgorithm::nvls;
  if (wanted == "nvlstree") return NcclAlgorithm::nvls_tree;
  return std::nullopt;
}

std::optional<NcclProtocol> nccl_protocol(std::string_view name) {
  const std::string wanted = lower_case(name);
  if (wanted == "ll") return NcclProtocol::ll;
  if (wanted == "ll128") return NcclProtocol::ll128;
  if (wanted == "simple") return NcclProtocol::simple;
  return std::nullopt;
}

std::optional<NcclMachine> nccl_machine(const ClusterSpec& cluster) {
  NcclMachine machine;
  machine.generation = compute_capability(cluster.device.name);
  const bool known = std::any_of(kGenerations.begin(), kGenerations.end(), [&](const auto& each) {
    return each.capability == machine.generation;
  });
  if (!known) return std::nullopt;
  if (cluster.intra_link.find("NVLink") == std::string::npos) return std::nullopt;
  machine.multicast =
      machine.generation >= 90 && cluster.intra_link.find("NVSwitch") != std::string::npos;
  machine.nvlink = cluster.intra_per_gpu;
  machine.cards = cluster.nics_per_node;
  machine.card = cluster.nic;
  return machine;
}

std::optional<Seconds> nccl_time(NcclCollective collective, Traffic bytes, int ranks, int nodes,
                                 const NcclMachine& machine, NcclAlgorithm algorithm,
                                 NcclProtocol protocol) {
  const Group group{collective, ranks, nodes, machine, generation_of(machine)};
  if (!exists(group, algorithm, protocol)) return std::nullopt;
  const Model model = model_of(group, bytes.value, algorithm, protocol);
  return Seconds(model.latency_us * 1e-6) + bytes / gb_per_s(model.gb_s);
}

NcclPick nccl_pick(NcclCollective collective, Traffic bytes, int ranks, int nodes,
                   const NcclMachine& machine, const NcclChoice& set) {
  const auto best_of = [&](std::optional<NcclAlgorithm> only, std::optional<NcclProtocol> way) {
    std::optional<NcclPick> best;
    for (const NcclAlgorithm algorithm : kAlgorithms) {
      for (const NcclProtocol protocol : kProtocols) {
        if (only.value_or(algorithm) != algorithm || way.value_or(protocol) != protocol) continue;
        const auto time = nccl_time(collective, bytes, ranks, nodes, machine, algorithm, protocol);
        if (!time || (best && best->time <= *time)) continue;
        best = {algorithm, protocol, *time};
      }
    }
    return best;
  };
  auto best = best_of(set.algorithm, set.protocol);
  if (!best) best = best_of(std::nullopt, set.protocol);
  return *best;  // rings have every protocol
}

}  // namespace tessera
