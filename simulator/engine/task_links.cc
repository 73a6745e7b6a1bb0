#include "simulator/engine/task_links.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "planner/plan/plan.h"
#include "simulator/engine/pipeline_tasks.h"
#include "simulator/network/collective_links.h"

namespace tessera {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

void set_links(const LinkWeights& weights, LinkPattern& pattern) {
  for (const auto& [link, weight] : weights) {
    pattern.links.push_back(link);
    pattern.weights.push_back(weight);
  }
}

int add(TaskGraph& graph, LinkPattern pattern) {
  graph.patterns.push_back(std::move(pattern));
  return static_cast<int>(graph.patterns.size()) - 1;
}

/// The groups of a collective over replicas: context parallel ranks belong to one, but where
/// replicas are picked by a stride.
std::vector<std::vector<int>> groups_over(const RoleCosts& costs, int stage,
                                          const TaskLinks::Replicas& over) {
  const ParallelLayout& layout = costs.role().layout;
  std::vector<std::vector<int>> groups;
  for (int first = over.begin; first < std::min(over.begin + over.stride, over.end); ++first) {
    for (int slot = 0; slot < layout.tp * (over.stride > 1 ? layout.cp : 1); ++slot) {
      std::vector<int>& members = groups.emplace_back();
      for (int replica = first; replica < over.end; replica += over.stride) {
        const std::vector<int>& ranks = costs.stage_ranks(replica, stage);
        const std::size_t step = over.stride > 1 ? ranks.size() : at(layout.tp);
        for (std::size_t i = at(slot); i < ranks.size(); i += step) members.push_back(ranks[i]);
      }
    }
  }
  return groups;
}

}  // namespace

void TaskLinks::put_collective(TaskGraph& graph, Task& task, const RoleCosts& costs, int stage,
                               const Replicas& over, Collective collective, Traffic bytes) {
  const auto [known, fresh] =
      known_.try_emplace({costs.role().role, stage, collective, over, -1}, -1);
  if (fresh) {
    LinkPattern pattern;
    LinkWeights weights;
    std::set<std::int64_t> nodes;
    const auto groups = groups_over(costs, stage, over);
    for (const std::vector<int>& members : groups) {
      add_collective(network_, collective, members, weights);
      pattern.out.insert(pattern.out.end(), members.begin(), members.end());
    }
    for (const int rank : groups.front()) nodes.insert(rank / network_.gpus_per_node);
    set_links(weights, pattern);
    pattern.in = pattern.out;
    pattern.group_ranks = static_cast<int>(groups.front().size());
    pattern.group_nodes = static_cast<int>(nodes.size());
    known->second = add(graph, std::move(pattern));
  }
  const LinkPattern& pattern = graph.patterns[at(known->second)];
  put(task, known->second,
      member_bytes(collective, bytes, {pattern.group_ranks, pattern.group_nodes}));
}

void TaskLinks::put_message(TaskGraph& graph, Task& task, const RoleCosts& costs, int replica,
                            int from, int to, Traffic bytes) {
  const auto [known, fresh] = known_.try_emplace(
      {costs.role().role, from, Collective::send_receive, Replicas{replica, replica + 1, 1}, to},
      -1);
  if (fresh) {
    LinkPattern pattern;
    LinkWeights weights;
    pattern.out = costs.stage_ranks(replica, from);
    pattern.in = costs.stage_ranks(replica, to);
    for (std::size_t i = 0; i < pattern.out.size(); ++i) {
      add_message(network_, pattern.out[i], pattern.in[i], weights);
    }
    set_links(weights, pattern);
    pattern.group_ranks = 2;
    pattern.group_nodes = weights.empty() ? 1 : 2;
    known->second = add(graph, std::move(pattern));
  }
  const bool across = !graph.patterns[at(known->second)].links.empty();
  put(task, known->second, across ? MemberBytes{bytes, {}} : MemberBytes{{}, bytes});
}

const TaskLinks::LayerLinks& TaskLinks::layer_links(const RoleCosts& costs, int replica,
                                                    int stage) {
  const auto [known, fresh] =
      layer_links_.try_emplace({costs.role().role, replica, stage}, LayerLinks{});
  if (!fresh) return known->second;
  auto& [tensor, context, experts] = known->second;
  const ParallelLayout& layout = costs.role().layout;
  const std::vector<int>& ranks = costs.stage_ranks(replica, stage);  // tp fastest
  for (int cp = 0; cp < layout.cp; ++cp) {
    add_collective(network_, Collective::all_reduce,
                   std::span(ranks).subspan(at(cp * layout.tp), at(layout.tp)), tensor);
  }
  for (int tp = 0; tp < layout.tp; ++tp) {
    std::vector<int> members;
    for (int cp = 0; cp < layout.cp; ++cp) members.push_back(ranks[at(cp * layout.tp + tp)]);
    if (layout.ulysses) add_collective(network_, Collective::all_to_all, members, context);
    for (std::size_t i = 0; i < members.size() && !layout.ulysses; ++i) {
      add_message(network_, members[i], members[(i + 1) % members.size()], context);
    }
  }
  for (const int rank : ranks) add_sends(network_, rank, costs.expert_group(rank), experts);
  return known->second;
}

void TaskLinks::put_layers(TaskGraph& graph, Task& task, const RoleCosts& costs, int replica,
                           int stage, const ChunkPass& pass) {
  const AcrossNodes& bytes = pass.across;
  const Traffic all = bytes.tensor + bytes.context + bytes.experts;
  if (all <= 0 && pass.within <= 0) return;
  const LayerLinks& links = layer_links(costs, replica, stage);
  // Where nothing crosses nodes the links of any one kind: no byte comes to them.
  std::array parts{1.0, 0.0, 0.0};
  if (all > 0) parts = {bytes.tensor / all, bytes.context / all, bytes.experts / all};
  const auto only = std::find(parts.begin(), parts.end(), 1.0) - parts.begin();
  const auto make = [&] {
    LinkPattern pattern;
    LinkWeights weights;
    for (std::size_t kind = 0; kind < parts.size(); ++kind) {
      if (parts[kind] <= 0) continue;
      for (const auto& [link, weight] : links[kind]) weights[link] += parts[kind] * weight;
    }
    set_links(weights, pattern);
    pattern.in = pattern.out = costs.stage_ranks(replica, stage);
    return add(graph, std::move(pattern));
  };
  int pattern = -1;
  if (only < static_cast<std::ptrdiff_t>(parts.size())) {  // as in all passes of the stage
    const auto [known, fresh] = layer_patterns_.try_emplace(
        {costs.role().role, replica, stage, static_cast<int>(only)}, -1);
    if (fresh) known->second = make();
    pattern = known->second;
  } else {
    pattern = make();
  }
  const bool crosses = !graph.patterns[at(pattern)].links.empty();
  if (!crosses && pass.within <= 0) return;
  put(task, pattern, {crosses ? all : Traffic{}, pass.within});
}

const TaskLinks::GenerationLinks& TaskLinks::generation_links(const RoleCosts& costs, int replica) {
  const auto [known, fresh] =
      generation_links_.try_emplace({costs.role().role, replica}, GenerationLinks{});
  if (!fresh) return known->second;
  GenerationLinks& links = known->second;
  const auto add = [](const LinkWeights& more, LinkWeights& to) {
    for (const auto& [link, weight] : more) to[link] += weight;
  };
  for (int stage = 0; stage < costs.role().layout.pp; ++stage) {
    const LayerLinks& layers = layer_links(costs, replica, stage);
    add(layers[0], links.tensor);
    add(layers[2], links.experts);
    if (stage == 0) continue;
    const std::vector<int>& from = costs.stage_ranks(replica, stage - 1);
    const std::vector<int>& to = costs.stage_ranks(replica, stage);
    for (std::size_t i = 0; i < from.size(); ++i) {
      add_message(network_, from[i], to[i], links.stages);
    }
  }
  return links;
}

void TaskLinks::put_generation(TaskGraph& graph, Task& task, const RoleCosts& costs, int replica,
                               const AcrossNodes& across, Traffic within) {
  const Traffic all = across.tensor + across.experts + across.stages;
  if (all <= 0 && within <= 0) return;
  std::array parts{1.0, 0.0, 0.0};
  if (all > 0) parts = {across.tensor / all, across.experts / all, across.stages / all};
  const auto only = std::find(parts.begin(), parts.end(), 1.0) - parts.begin();
  const auto make = [&] {
    LinkPattern pattern;
    pattern.in = pattern.out = costs.replica_ranks(replica);
    if (all > 0) {
      const GenerationLinks& links = generation_links(costs, replica);
      const std::array kinds{&links.tensor, &links.experts, &links.stages};
      LinkWeights weights;
      for (std::size_t kind = 0; kind < parts.size(); ++kind) {
        if (parts[kind] <= 0) continue;
        for (const auto& [link, weight] : *kinds[kind]) weights[link] += parts[kind] * weight;
      }
      set_links(weights, pattern);
    }
    return add(graph, std::move(pattern));
  };
  int pattern = -1;
  if (only < static_cast<std::ptrdiff_t>(parts.size())) {  // of one kind, as most are
    const int kind = all > 0 ? static_cast<int>(only) : -1;
    const auto [known, fresh] =
        generation_patterns_.try_emplace({costs.role().role, replica, kind}, -1);
    if (fresh) known->second = make();
    pattern = known->second;
  } else {
    pattern = make();
  }
  const bool crosses = !graph.patterns[at(pattern)].links.empty();
  put(task, pattern, {crosses ? all : Traffic{}, within});
}

void TaskLinks::put_arrival(TaskGraph& graph, Task& task, const Arrival& arrival) const {
  LinkPattern pattern;
  LinkWeights weights;
  std::set<std::int64_t> nodes{arrival.rank / network_.gpus_per_node};
  double across = 0, within = 0;
  for (const auto& [source, bytes] : arrival.from) {
    nodes.insert(source / network_.gpus_per_node);
    const bool same = source / network_.gpus_per_node == arrival.rank / network_.gpus_per_node;
    (same ? within : across) += static_cast<double>(bytes);
    for (const int link : network_.path(source, arrival.rank)) {
      weights[link] += static_cast<double>(bytes);
    }
  }
  for (auto& [link, weight] : weights) weight /= network_.is_port(link) ? within : across;
  set_links(weights, pattern);
  pattern.group_ranks = static_cast<int>(arrival.from.size()) + 1;
  pattern.group_nodes = static_cast<int>(nodes.size());
  task.pattern = add(graph, std::move(pattern));
  task.card_bytes = across;
  task.port_bytes = within;
}

void TaskLinks::put(Task& task, int pattern, const MemberBytes& moved) const {
  task.pattern = pattern;
  task.card_bytes = moved.card.value;
  task.port_bytes = moved.port.value;
  if (moved.card <= 0) return;
  // What a backward pass hides of a reduction has no time here, and no flow.
  task.flow_ns = std::min(task.duration_ns, nanoseconds((moved.card / share_).value));
  if (task.flow_ns == 0) task.card_bytes = 0;
  task.card_bytes =
      std::min(task.card_bytes, share_.value * static_cast<double>(task.flow_ns) * 1e-9);
}

}  // namespace tessera
