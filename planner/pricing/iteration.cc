#include "planner/pricing/iteration.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <iterator>

namespace tessera {
namespace {

using Graph = boost::adjacency_list<boost::setS, boost::vecS, boost::bidirectionalS>;

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

EnumArray<Phase, int> blocks_of(const std::vector<ScheduledCall>& schedule,
                                const Placement& placement) {
  EnumArray<Phase, int> block_of{};
  for (std::size_t block = 0; block < placement.size(); ++block) {
    if (std::count(placement[block].begin(), placement[block].end(), Role::actor) > 0) {
      block_of.fill(static_cast<int>(block));
    }
  }
  for (const ScheduledCall& call : schedule) {
    for (std::size_t block = 0; block < placement.size(); ++block) {
      const auto& roles = placement[block];
      if (std::find(roles.begin(), roles.end(), call.role) != roles.end()) {
        block_of[call.phase] = static_cast<int>(block);
      }
    }
  }
  return block_of;
}

namespace {

// The calls of a schedule, and what each waits for.
struct CallGraph {
  Graph edges;
  std::vector<int> previous;  // the call before on the same block, -1 = none
  std::vector<int> block;
};

CallGraph call_graph(const std::vector<ScheduledCall>& schedule,
                     const EnumArray<Phase, int>& block_of) {
  CallGraph calls{Graph(schedule.size()), std::vector<int>(schedule.size(), -1), {}};
  EnumArray<Phase, int> call_of{};
  call_of.fill(-1);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    call_of[schedule[i].phase] = static_cast<int>(i);
    calls.block.push_back(block_of[schedule[i].phase]);
    for (std::size_t j = i; j-- > 0;) {
      if (calls.block[j] != calls.block[i]) continue;
      calls.previous[i] = static_cast<int>(j);
      boost::add_edge(j, i, calls.edges);
      break;
    }
  }
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    for (const Phase phase : schedule[i].after) {
      if (const int j = call_of[phase]; j >= 0) {
        boost::add_edge(static_cast<std::size_t>(j), i, calls.edges);
      }
    }
  }
  reduce_transitively(calls.edges);
  return calls;
}

// True where another block waits for the call, or the call for another block.
bool crosses_out(const CallGraph& calls, std::size_t call) {
  const auto [begin, end] = boost::out_edges(call, calls.edges);
  return std::any_of(begin, end, [&](const auto& edge) {
    return calls.block[boost::target(edge, calls.edges)] != calls.block[call];
  });
}
bool crosses_in(const CallGraph& calls, std::size_t call) {
  const auto [begin, end] = boost::in_edges(call, calls.edges);
  return std::any_of(begin, end, [&](const auto& edge) {
    return calls.block[boost::source(edge, calls.edges)] != calls.block[call];
  });
}

// Neighbours of a block between which nothing goes to another or comes from it are one chunk.
// `chunk_of`: by call.
std::vector<Chunk> merge_into_chunks(const std::vector<ScheduledCall>& schedule,
                                     const CallGraph& calls, std::vector<std::size_t>& chunk_of) {
  std::vector<Chunk> chunks;
  chunk_of.assign(schedule.size(), 0);
  for (const std::size_t call : order_of(calls.edges)) {
    const auto before = static_cast<std::size_t>(calls.previous[call]);
    const bool merges =
        calls.previous[call] >= 0 && !crosses_in(calls, call) && !crosses_out(calls, before);
    chunk_of[call] = merges ? chunk_of[before] : chunks.size();
    if (!merges) chunks.push_back({calls.block[call], {}, {}});
    chunks[chunk_of[call]].phases.push_back(schedule[call].phase);
  }
  return chunks;
}

// The chunks in an order that respects the edges between them; `chunk_of` follows.
std::vector<Chunk> sort_chunks(std::vector<Chunk> chunks, const CallGraph& calls,
                               std::vector<std::size_t>& chunk_of) {
  Graph graph(chunks.size());
  const auto [begin, end] = boost::edges(calls.edges);
  for (auto edge = begin; edge != end; ++edge) {
    const std::size_t from = chunk_of[boost::source(*edge, calls.edges)];
    const std::size_t to = chunk_of[boost::target(*edge, calls.edges)];
    if (from != to) boost::add_edge(from, to, graph);
  }
  const std::vector<std::size_t> order = order_of(graph);
  std::vector<std::size_t> position(chunks.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  std::vector<Chunk> sorted(chunks.size());
  for (std::size_t old = 0; old < chunks.size(); ++old) {
    Chunk& chunk = sorted[position[old]];
    chunk = std::move(chunks[old]);
    const auto [in, in_end] = boost::in_edges(old, graph);
    for (auto edge = in; edge != in_end; ++edge) {
      chunk.before.push_back(static_cast<int>(position[boost::source(*edge, graph)]));
    }
    std::sort(chunk.before.begin(), chunk.before.end());
  }
  for (std::size_t& chunk : chunk_of) chunk = position[chunk];
  return sorted;
}

}  // namespace

Iteration::Iteration(const std::vector<ScheduledCall>& schedule,
                     const EnumArray<Phase, int>& block_of) {
  const CallGraph calls = call_graph(schedule, block_of);
  std::vector<std::size_t> chunk_of;
  chunks_ = sort_chunks(merge_into_chunks(schedule, calls, chunk_of), calls, chunk_of);
  for (std::size_t call = 0; call < schedule.size(); ++call) {
    chunk_of_[schedule[call].phase] = ChunkIndex{chunk_of[call]};
  }
}

ChunkSeconds Iteration::by_chunk(int block, const PhaseSeconds& seconds) const {
  ChunkSeconds sums;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    if (chunks_[c].block != block) continue;
    for (const Phase phase : chunks_[c].phases) sums[ChunkIndex{c}] += seconds[phase];
  }
  return sums;
}

Seconds Iteration::step_seconds(const ChunkSeconds& seconds) const {
  ChunkSeconds end;
  Seconds step;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    Seconds start;
    for (const int before : chunks_[c].before) {
      start = std::max(start, end.values[static_cast<std::size_t>(before)]);
    }
    end.values[c] = start + seconds.values[c];
    step = std::max(step, end.values[c]);
  }
  return step;
}

Seconds Iteration::step_seconds(const PhaseSeconds& seconds) const {
  ChunkSeconds by_chunk;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    for (const Phase phase : chunks_[c].phases) by_chunk[ChunkIndex{c}] += seconds[phase];
  }
  return step_seconds(by_chunk);
}

PhaseSeconds Iteration::phase_starts(const PhaseSeconds& seconds) const {
  PhaseSeconds starts;
  std::vector<Seconds> end(chunks_.size());
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    for (const int before : chunks_[c].before) {
      end[c] = std::max(end[c], end[static_cast<std::size_t>(before)]);
    }
    for (const Phase phase : chunks_[c].phases) {
      starts[phase] = end[c];
      end[c] += seconds[phase];
    }
  }
  return starts;
}

}  // namespace tessera
