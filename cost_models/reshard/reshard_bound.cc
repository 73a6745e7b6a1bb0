#include "cost_models/reshard/reshard_bound.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "cost_models/collective.h"
#include "cost_models/documents/check.h"

namespace tessera {
namespace {

constexpr std::size_t kDestinationsAlone = 32;  // with most bytes; any of them is a valid bound

enum class PortKind { fabric, card, shared_card, uplink };

/// A vertex that passes `rate` bytes per second: a GPU's, a card's (node and index) or a node's.
struct Port {
  PortKind kind = PortKind::fabric;
  int node = 0, index = 0;
  auto operator<=>(const Port&) const = default;
};

/// A cluster's ports: what a GPU's bytes pass on their way out of it or into it.
class Ports {
 public:
  Ports(const ClusterSpec& cluster, const Calibration& calibration)
      : cluster_(cluster),
        per_node_(static_cast<int>(cluster.gpus_per_node)),
        cards_(static_cast<int>(std::max<std::int64_t>(1, cluster.nics_per_node))),
        fabric_(copy_bandwidth(cluster, calibration)),
        card_(cluster.nic * calibration.inter_efficiency.value) {}

  int node(int rank) const { return rank / per_node_; }
  Port fabric(int rank) const { return {PortKind::fabric, node(rank), rank}; }
  /// From the GPU outwards.
  std::vector<Port> network(int rank) const {
    std::vector<Port> path{{PortKind::card, node(rank), rank}};
    if (cards_ < per_node_) {
      path.push_back({PortKind::shared_card, node(rank), rank % per_node_ * cards_ / per_node_});
    }
    const bool uplinks = cluster_.oversubscription > 1 && cluster_.nodes_per_leaf == 1;
    if (uplinks) path.push_back({PortKind::uplink, node(rank), 0});
    return path;
  }

  BytesPerSecond rate(const Port& port) const {
    switch (port.kind) {
      case PortKind::fabric:
        return fabric_;
      case PortKind::card:
        return card_ * std::max(1.0, static_cast<double>(cards_) / per_node_);
      case PortKind::shared_card:
        return card_;
      case PortKind::uplink:
        return card_ * cards_ / cluster_.oversubscription;
    }
    return {};
  }

  std::string name(const Port& port) const {
    switch (port.kind) {
      case PortKind::fabric:
        return cluster_.intra_link + " of GPU " + std::to_string(port.index);
      case PortKind::card:
        return "network card of GPU " + std::to_string(port.index);
      case PortKind::shared_card:
        return "network card " + std::to_string(port.index) + " of node " +
               std::to_string(port.node);
      case PortKind::uplink:
        return "uplink of node " + std::to_string(port.node);
    }
    return "";
  }

 private:
  const ClusterSpec& cluster_;
  int per_node_, cards_;
  BytesPerSecond fabric_, card_;
};

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Graph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, std::int64_t,
        boost::property<boost::edge_residual_capacity_t, std::int64_t,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
using Edge = Traits::edge_descriptor;

/// Demands flow from the source through ports to the sink. The least time in which all of them pass
/// is found by Newton's iteration over minimum cuts: each cut gives a time, the next flow within it
/// a narrower cut (Radzik, Parametric flows, 1993).
class TimedFlow {
 public:
  explicit TimedFlow(const Ports& ports) : ports_(ports), graph_(2) {}

  /// A vertex that receives `bytes` from the source.
  std::size_t demand(Bytes bytes) {
    const std::size_t vertex = boost::add_vertex(graph_);
    fixed_.emplace_back(connect(kSource, vertex), bytes);
    total_ += bytes.value;
    return vertex;
  }
  /// A port's entry; `sent` tells the ways apart: what GPUs send, what they receive. What leaves it
  /// goes on to `next`, or to the sink.
  std::size_t port(const Port& port, bool sent, std::optional<std::size_t> next) {
    const auto [found, fresh] = entries_.try_emplace({port, sent}, 0);
    if (!fresh) return found->second;
    found->second = boost::add_vertex(graph_);
    rated_.push_back({connect(found->second, next.value_or(kSink)), port});
    return found->second;
  }
  void link(std::size_t from, std::size_t to) {
    if (linked_.emplace(from, to).second) fixed_.emplace_back(connect(from, to), kUnlimited);
  }

  ReshardCut narrowest() {
    ReshardCut cut;
    if (total_ == 0) return cut;
    for (int round = 0; round < 100; ++round) {
      for (const auto& [edge, bytes] : fixed_) {
        boost::put(boost::edge_capacity, graph_, edge, std::min(bytes, total_));
      }
      for (const auto& [edge, port] : rated_) {
        boost::put(boost::edge_capacity, graph_, edge,
                   static_cast<std::int64_t>(std::ceil((cut.seconds * ports_.rate(port)).value)));
      }
      if (boost::push_relabel_max_flow(graph_, kSource, kSink) >= total_) return cut;
      const ReshardCut next = cut_here();
      if (next.seconds <= cut.seconds) return cut;  // equal but for rounding
      cut = next;
    }
    return cut;
  }

 private:
  static constexpr std::size_t kSource = 0, kSink = 1;
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

  Edge connect(std::size_t from, std::size_t to) {
    const Edge edge = boost::add_edge(from, to, graph_).first;
    const Edge back = boost::add_edge(to, from, graph_).first;
    boost::put(boost::edge_capacity, graph_, back, std::int64_t{0});
    boost::put(boost::edge_reverse, graph_, edge, back);
    boost::put(boost::edge_reverse, graph_, back, edge);
    return edge;
  }

  /// The minimum cut of the last flow, and the time that its ports need.
  ReshardCut cut_here() const {
    std::vector<bool> reached(boost::num_vertices(graph_), false);
    std::vector<std::size_t> open{kSource};
    reached[kSource] = true;
    while (!open.empty()) {
      const std::size_t vertex = open.back();
      open.pop_back();
      for (const Edge& edge : boost::make_iterator_range(boost::out_edges(vertex, graph_))) {
        const std::size_t next = boost::target(edge, graph_);
        if (reached[next] || boost::get(boost::edge_residual_capacity, graph_, edge) == 0) continue;
        reached[next] = true;
        open.push_back(next);
      }
    }
    const auto crosses = [&](const Edge& edge) {
      return reached[boost::source(edge, graph_)] && !reached[boost::target(edge, graph_)];
    };
    ReshardCut cut;
    std::int64_t bytes = total_;
    for (const auto& [edge, limit] : fixed_) {
      if (crosses(edge)) bytes -= limit;
    }
    std::vector<Port> ports;
    for (const auto& [edge, port] : rated_) {
      if (!crosses(edge)) continue;
      cut.rate += ports_.rate(port);
      ports.push_back(port);
    }
    TESSERA_CHECK(!ports.empty());  // every demand has a holder
    std::sort(ports.begin(), ports.end());
    cut.bytes = Bytes{bytes};
    cut.seconds = cut.bytes / cut.rate;
    cut.where = ports_.name(ports.front());
    if (ports.size() > 1) cut.where += " and " + std::to_string(ports.size() - 1) + " more";
    return cut;
  }

  const Ports& ports_;
  Graph graph_;
  std::vector<std::pair<Edge, std::int64_t>> fixed_;
  std::vector<std::pair<Edge, Port>> rated_;
  std::map<std::pair<Port, bool>, std::size_t> entries_;
  std::set<std::pair<std::size_t, std::size_t>> linked_;
  std::int64_t total_ = 0;
};

/// Entry of the way that a GPU sends by, or receives by: its first port; the last leads to `next`.
std::size_t way(TimedFlow& flow, std::vector<Port> path, bool sent,
                std::optional<std::size_t> next = std::nullopt) {
  if (!sent) std::reverse(path.begin(), path.end());  // towards the GPU
  for (auto port = path.rbegin(); port != path.rend(); ++port) next = flow.port(*port, sent, next);
  return *next;
}

/// Whether a demand has holders on its destination's node, and elsewhere.
struct Reach {
  bool near = false, far = false;
  auto operator<=>(const Reach&) const = default;
};

Reach reach_of(const ReshardDemand& demand, const Ports& ports) {
  Reach reach;
  for (const int holder : demand.holders) {
    (ports.node(holder) == ports.node(demand.destination) ? reach.near : reach.far) = true;
  }
  return reach;
}

/// Bytes that arrive meet the ports of their destination from the GPU outwards, where ways join.
ReshardCut arriving(std::span<const ReshardDemand> demands, const Ports& ports) {
  std::map<std::pair<int, Reach>, Bytes> bytes;
  for (const ReshardDemand& demand : demands) {
    bytes[{demand.destination, reach_of(demand, ports)}] += demand.bytes;
  }
  TimedFlow flow(ports);
  for (const auto& [key, sum] : bytes) {
    const auto& [rank, reach] = key;
    const std::size_t demand = flow.demand(sum);
    // As for senders: the last port of the way out is the first that ways share.
    if (reach.near) flow.link(demand, way(flow, {ports.fabric(rank)}, true));
    if (reach.far) flow.link(demand, way(flow, ports.network(rank), true));
  }
  return flow.narrowest();
}

ReshardCut leaving(std::span<const ReshardDemand> demands, const Ports& ports) {
  std::map<std::pair<std::vector<int>, int>, Bytes> bytes;  // by holders and node
  for (const ReshardDemand& demand : demands) {
    const int node = reach_of(demand, ports).near ? ports.node(demand.destination) : -1;
    bytes[{demand.holders, node}] += demand.bytes;
  }
  TimedFlow flow(ports);
  for (const auto& [key, sum] : bytes) {
    const auto& [holders, node] = key;
    const std::size_t demand = flow.demand(sum);
    for (const int holder : holders) {
      const bool near = ports.node(holder) == node;
      flow.link(demand,
                way(flow, near ? std::vector{ports.fabric(holder)} : ports.network(holder), true));
    }
  }
  return flow.narrowest();
}

ReshardCut alone(std::span<const ReshardDemand> demands, const Ports& ports) {
  TimedFlow flow(ports);
  for (const ReshardDemand& one : demands) {
    const std::size_t demand = flow.demand(one.bytes);
    for (const int holder : one.holders) {
      const bool near = ports.node(holder) == ports.node(one.destination);
      const auto path = [&](int rank) {
        return near ? std::vector{ports.fabric(rank)} : ports.network(rank);
      };
      const std::size_t into = way(flow, path(one.destination), false);
      flow.link(demand, way(flow, path(holder), true, into));
    }
  }
  return flow.narrowest();
}

/// The slowest destination alone, of those that receive most in all or from other nodes.
ReshardCut slowest_alone(std::span<const ReshardDemand> demands, const Ports& ports) {
  struct Part {
    std::size_t first = 0, count = 0;
    Bytes all = {}, far = {};
  };
  std::vector<Part> parts;  // demands are sorted by destination
  for (std::size_t i = 0; i < demands.size(); ++i) {
    if (i == 0 || demands[i].destination != demands[i - 1].destination)
      parts.push_back({.first = i});
    Part& part = parts.back();
    ++part.count;
    part.all += demands[i].bytes;
    if (!reach_of(demands[i], ports).near) part.far += demands[i].bytes;
  }
  ReshardCut slowest;
  std::set<std::size_t> tried;
  for (const auto most : {&Part::all, &Part::far}) {
    std::stable_sort(parts.begin(), parts.end(),
                     [most](const Part& a, const Part& b) { return a.*most > b.*most; });
    for (std::size_t i = 0; i < std::min(kDestinationsAlone, parts.size()); ++i) {
      if (!tried.insert(parts[i].first).second) continue;
      const ReshardCut cut = alone(demands.subspan(parts[i].first, parts[i].count), ports);
      if (cut.seconds > slowest.seconds) slowest = cut;
    }
  }
  return slowest;
}

}  // namespace

const ReshardCut& ReshardBound::narrowest() const {
  const ReshardCut& all = arriving.seconds >= leaving.seconds ? arriving : leaving;
  return all.seconds >= destination.seconds ? all : destination;
}

ReshardBound reshard_bound(std::span<const ReshardDemand> demands, const ClusterSpec& cluster,
                           const Calibration& calibration) {
  const Ports ports(cluster, calibration);
  ReshardBound bound{.arriving = arriving(demands, ports),
                     .leaving = leaving(demands, ports),
                     .destination = slowest_alone(demands, ports)};
  bound.arriving.where = bound.arriving.where.empty() ? "" : "into " + bound.arriving.where;
  bound.leaving.where = bound.leaving.where.empty() ? "" : "out of " + bound.leaving.where;
  bound.seconds = bound.narrowest().seconds;
  return bound;
}

}  // namespace tessera
