#include "simulator/schedules/cycle_ratio.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/howard_cycle_ratio.hpp>

#include "cost_models/documents/check.h"

namespace tessera {

SlowestCycle slowest_cycle(int events, const std::vector<EventWait>& waits) {
  using Weights =
      boost::property<boost::edge_weight_t, double,
                      boost::property<boost::edge_weight2_t, double,
                                      boost::property<boost::edge_index_t, std::size_t>>>;
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                                      boost::no_property, Weights>;
  Graph graph(static_cast<std::size_t>(events));
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const EventWait& wait = waits[i];
    TESSERA_CHECK(wait.steps >= 0 && wait.event < events && wait.on < events);
    boost::add_edge(
        static_cast<std::size_t>(wait.on), static_cast<std::size_t>(wait.event),
        Weights(static_cast<double>(wait.duration_ns), {static_cast<double>(wait.steps), i}),
        graph);
  }
  std::vector<boost::graph_traits<Graph>::edge_descriptor> cycle;
  boost::maximum_cycle_ratio(graph, boost::get(boost::vertex_index, graph),
                             boost::get(boost::edge_weight, graph),
                             boost::get(boost::edge_weight2, graph), &cycle);
  // Boost compares ratios as doubles; what the cycle takes is known in whole nanoseconds.
  SlowestCycle slowest;
  for (const auto& edge : cycle) {
    const EventWait& wait = waits[boost::get(boost::edge_index, graph, edge)];
    slowest.duration_ns += wait.duration_ns;
    slowest.steps += wait.steps;
    slowest.events.push_back(wait.event);
  }
  TESSERA_CHECK(cycle.empty() || slowest.steps > 0);
  std::rotate(slowest.events.begin(),
              std::min_element(slowest.events.begin(), slowest.events.end()), slowest.events.end());
  return slowest;
}

}  // namespace tessera
