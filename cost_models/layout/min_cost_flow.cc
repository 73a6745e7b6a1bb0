#include "cost_models/layout/min_cost_flow.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/successive_shortest_path_nonnegative_weights.hpp>
#include <numeric>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Graph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, std::int64_t,
                    boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                    boost::property<boost::edge_weight_t, std::int64_t,
                                                    boost::property<boost::edge_reverse_t,
                                                                    Traits::edge_descriptor>>>>>;
using Edge = Traits::edge_descriptor;

Edge connect(Graph& graph, std::size_t from, std::size_t to, std::int64_t capacity,
             std::int64_t cost) {
  const Edge edge = boost::add_edge(from, to, graph).first;
  const Edge back = boost::add_edge(to, from, graph).first;
  boost::put(boost::edge_capacity, graph, edge, capacity);
  boost::put(boost::edge_capacity, graph, back, std::int64_t{0});
  boost::put(boost::edge_weight, graph, edge, cost);
  boost::put(boost::edge_weight, graph, back, -cost);
  boost::put(boost::edge_reverse, graph, edge, back);
  boost::put(boost::edge_reverse, graph, back, edge);
  return edge;
}

}  // namespace

std::vector<std::vector<int>> min_cost_assignment(
    const std::vector<int>& supply, const std::vector<int>& demand,
    const std::vector<std::vector<std::int64_t>>& cost, std::int64_t most) {
  const std::int64_t units = std::accumulate(supply.begin(), supply.end(), std::int64_t{0});
  TESSERA_CHECK(units == std::accumulate(demand.begin(), demand.end(), std::int64_t{0}));
  TESSERA_CHECK(cost.size() == supply.size());
  const std::size_t source = supply.size() + demand.size(), sink = source + 1;
  Graph graph(sink + 1);
  for (std::size_t i = 0; i < supply.size(); ++i) connect(graph, source, i, supply[i], 0);
  for (std::size_t j = 0; j < demand.size(); ++j) {
    connect(graph, supply.size() + j, sink, demand[j], 0);
  }
  std::int64_t penalty = 0;  // outweighs all other units together
  for (const auto& row : cost) {
    for (const std::int64_t value : row) penalty = std::max(penalty, value * units);
  }
  std::vector<std::vector<Edge>> edges(supply.size());
  for (std::size_t i = 0; i < supply.size(); ++i) {
    for (std::size_t j = 0; j < demand.size(); ++j) {
      const std::int64_t each = cost[i][j] + (cost[i][j] > most ? penalty : 0);
      edges[i].push_back(
          connect(graph, i, supply.size() + j, std::min(supply[i], demand[j]), each));
    }
  }
  boost::successive_shortest_path_nonnegative_weights(graph, source, sink);
  std::vector<std::vector<int>> flow(supply.size(), std::vector<int>(demand.size(), 0));
  for (std::size_t i = 0; i < supply.size(); ++i) {
    for (std::size_t j = 0; j < demand.size(); ++j) {
      flow[i][j] = static_cast<int>(boost::get(boost::edge_capacity, graph, edges[i][j]) -
                                    boost::get(boost::edge_residual_capacity, graph, edges[i][j]));
    }
  }
  return flow;
}

}  // namespace tessera
