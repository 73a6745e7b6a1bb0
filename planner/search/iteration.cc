#include "planner/search/iteration.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <iterator>

namespace tessera {
namespace {

using Graph = boost::adjacency_list<boost::setS, boost::vecS, boost::bidirectionalS>;

std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }

// Calls in topological order.
std::vector<std::size_t> order_of(const Graph& graph) {
  std::vector<std::size_t> order;
  boost::topological_sort(graph, std::back_inserter(order));  // the last one first
  std::reverse(order.begin(), order.end());
  return order;
}

// Without the edges that a longer path implies: no path through the graph becomes another.
void reduce_transitively(Graph& graph) {
  const std::size_t count = boost::num_vertices(graph);
  const std::vector<std::size_t> order = order_of(graph);
  std::vector<std::vector<bool>> reaches(count, std::vector<bool>(count));  // over one edge or more
  for (std::size_t i = count; i-- > 0;) {
    const std::size_t from = order[i];
    const auto [begin, end] = boost::adjacent_vertices(from, graph);
    std::vector<std::size_t> implied;
    for (const std::size_t to : std::vector<std::size_t>(begin, end)) {
      reaches[from][to] = true;
      for (std::size_t far = 0; far < count; ++far) {
        if (!reaches[to][far]) continue;
        reaches[from][far] = true;
        if (boost::edge(from, far, graph).second) implied.push_back(far);
      }
    }
    for (const std::size_t far : implied) boost::remove_edge(from, far, graph);
  }
}

}  // namespace

bool rollout_apart(const Placement& placement) {
  return std::any_of(placement.begin(), placement.end(), [](const std::vector<Role>& block) {
    return block.size() == 1 && block.front() == Role::rollout;
  });
}

std::vector<ScheduledCall> schedule_of(std::vector<ScheduledCall> schedule,
                                       const Placement& placement, int policy_lag) {
  if (!rollout_apart(placement)) return schedule;
  for (ScheduledCall& call : schedule) {
    if (call.phase == Phase::reshard) call.role = Role::rollout;
    if (policy_lag == 0 || call.phase == Phase::reshard || call.phase == Phase::gen) continue;
    std::erase(call.after, Phase::gen);
    if (call.after.empty()) call.after.push_back(Phase::reshard);
  }
  return schedule;
}

std::array<int, kPhaseCount> blocks_of(const std::vector<ScheduledCall>& schedule,
                                       const Placement& placement) {
  std::array<int, kPhaseCount> block_of{};
  for (std::size_t block = 0; block < placement.size(); ++block) {
    if (std::count(placement[block].begin(), placement[block].end(), Role::actor) > 0) {
      block_of.fill(static_cast<int>(block));
    }
  }
  for (const ScheduledCall& call : schedule) {
    for (std::size_t block = 0; block < placement.size(); ++block) {
      const auto& roles = placement[block];
      if (std::find(roles.begin(), roles.end(), call.role) != roles.end()) {
        block_of[at(call.phase)] = static_cast<int>(block);
      }
    }
  }
  return block_of;
}

Iteration::Iteration(const std::vector<ScheduledCall>& schedule,
                     const std::array<int, kPhaseCount>& block_of) {
  Graph calls(schedule.size());
  std::array<int, kPhaseCount> call_of{};
  call_of.fill(-1);
  std::vector<int> previous(schedule.size(),
                            -1);  // the call before on the same block
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    call_of[at(schedule[i].phase)] = static_cast<int>(i);
    for (std::size_t j = i; j-- > 0;) {
      if (block_of[at(schedule[j].phase)] != block_of[at(schedule[i].phase)]) continue;
      previous[i] = static_cast<int>(j);
      boost::add_edge(j, i, calls);
      break;
    }
  }
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    for (const Phase phase : schedule[i].after) {
      if (const int j = call_of[at(phase)]; j >= 0) {
        boost::add_edge(static_cast<std::size_t>(j), i, calls);
      }
    }
  }
  reduce_transitively(calls);
  const std::vector<std::size_t> order = order_of(calls);
  const auto block = [&](std::size_t call) { return block_of[at(schedule[call].phase)]; };
  const auto crosses_out = [&](std::size_t call) {
    const auto [begin, end] = boost::out_edges(call, calls);
    return std::any_of(begin, end, [&](const auto& edge) {
      return block(boost::target(edge, calls)) != block(call);
    });
  };
  const auto crosses_in = [&](std::size_t call) {
    const auto [begin, end] = boost::in_edges(call, calls);
    return std::any_of(begin, end, [&](const auto& edge) {
      return block(boost::source(edge, calls)) != block(call);
    });
  };
  chunk_of_.fill(-1);
  for (const std::size_t call : order) {
    const int before = previous[call];
    const bool merges =
        before >= 0 && !crosses_in(call) && !crosses_out(static_cast<std::size_t>(before));
    if (merges) {
      const int chunk = chunk_of_[at(schedule[static_cast<std::size_t>(before)].phase)];
      chunks_[static_cast<std::size_t>(chunk)].phases.push_back(schedule[call].phase);
      chunk_of_[at(schedule[call].phase)] = chunk;
      continue;
    }
    chunk_of_[at(schedule[call].phase)] = static_cast<int>(chunks_.size());
    chunks_.push_back({block(call), {schedule[call].phase}, {}});
  }
  // Edges between chunks, in an order of chunks that respects them.
  Graph graph(chunks_.size());
  const auto [begin, end] = boost::edges(calls);
  for (auto edge = begin; edge != end; ++edge) {
    const int from = chunk_of_[at(schedule[boost::source(*edge, calls)].phase)];
    const int to = chunk_of_[at(schedule[boost::target(*edge, calls)].phase)];
    if (from != to)
      boost::add_edge(static_cast<std::size_t>(from), static_cast<std::size_t>(to), graph);
  }
  const std::vector<std::size_t> chunk_order = order_of(graph);
  std::vector<int> position(chunks_.size());
  for (std::size_t i = 0; i < chunk_order.size(); ++i) {
    position[chunk_order[i]] = static_cast<int>(i);
  }
  std::vector<Chunk> sorted(chunks_.size());
  for (std::size_t old = 0; old < chunks_.size(); ++old) {
    Chunk& chunk = sorted[static_cast<std::size_t>(position[old])];
    chunk = chunks_[old];
    const auto [in, in_end] = boost::in_edges(old, graph);
    for (auto edge = in; edge != in_end; ++edge) {
      chunk.before.push_back(position[boost::source(*edge, graph)]);
    }
    std::sort(chunk.before.begin(), chunk.before.end());
  }
  chunks_ = std::move(sorted);
  for (int& chunk : chunk_of_) {
    if (chunk >= 0) chunk = position[static_cast<std::size_t>(chunk)];
  }
}

double Iteration::step_seconds(const double* seconds) const {
  constexpr std::size_t kMost = kPhaseCount;
  std::array<double, kMost> end{};
  double step = 0;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    double start = 0;
    for (const int before : chunks_[c].before) {
      start = std::max(start, end[static_cast<std::size_t>(before)]);
    }
    end[c] = start + seconds[c];
    step = std::max(step, end[c]);
  }
  return step;
}

double Iteration::step_seconds(const PhaseSeconds& seconds) const {
  std::array<double, kPhaseCount> by_chunk{};
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    for (const Phase phase : chunks_[c].phases) by_chunk[c] += seconds[at(phase)];
  }
  return step_seconds(by_chunk.data());
}

}  // namespace tessera
