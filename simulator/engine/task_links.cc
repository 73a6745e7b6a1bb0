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

/// Those over which the plan priced it.
const GroupShape& priced_group(const RoleCosts& costs, const TaskLinks::Replicas& over) {
  const CandidateGroups& groups = costs.operations().groups();
  if (over.stride > 1) return groups.replicated;
  return over.end - over.begin < costs.role().layout.dp ? groups.shard : groups.replicas;
}

}  // namespace

void TaskLinks::put_collective(TaskGraph& graph, Task& task, const RoleCosts& costs, int stage,
                               const Replicas& over, Collective collective, Traffic bytes) {
  const auto [known, fresh] =
      known_.try_emplace({costs.role().role, stage, collective, over, -1}, -1);
  if (fresh) {
    LinkPattern pattern;
    LinkWeights weights;
    const auto groups = groups_over(costs, stage, over);
    GroupShape shape = shape_of(cluster_, groups.front());
    for (const std::vector<int>& members : groups) {
      add_collective(network_, collective, members, weights);
      add_within(network_, collective, members, weights);
      pattern.out.insert(pattern.out.end(), members.begin(), members.end());
      if (!network_.shares_within()) continue;
      const GroupShape other = shape_of(cluster_, members);
      shape.over_switch = std::max(shape.over_switch, other.over_switch);
      shape.over_socket = std::max(shape.over_socket, other.over_socket);
    }
    if (network_.shares_within() && shape.nodes == 1) {
      const WithinRates rates = rates_within(collective, shape, cluster_, calibration_);
      for (const bool in : {false, true}) add_ports(pattern.out, in, rates.alone, 1, weights);
      rates_.emplace(static_cast<int>(graph.patterns.size()), rates);
    }
    set_links(weights, pattern);
    pattern.in = pattern.out;
    pattern.group_ranks = shape.ranks;
    pattern.group_nodes = shape.nodes;
    known->second = add(graph, std::move(pattern));
  }
  const LinkPattern& pattern = graph.patterns[at(known->second)];
  const MemberBytes moved =
      member_bytes(collective, bytes, {pattern.group_ranks, pattern.group_nodes});
  put(task, known->second, moved,
      moved.card /
          inter_node_bandwidth(collective, priced_group(costs, over), cluster_, calibration_));
  const auto rates = rates_.find(known->second);
  if (rates != rates_.end()) put_shared(task, moved.port, moved.port / rates->second.together);
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
    pattern.group_ranks = 2;
    pattern.group_nodes = weights.empty() ? 1 : 2;
    if (network_.shares_within() && weights.empty()) {
      for (std::size_t i = 0; i < pattern.out.size(); ++i) {
        add_message_within(network_, pattern.out[i], pattern.in[i], weights);
      }
      const WithinRates rates = rates_within(
          Collective::send_receive, costs.pair_shape(replica, from, to), cluster_, calibration_);
      add_ports(pattern.out, false, rates.alone, 1, weights);
      add_ports(pattern.in, true, rates.alone, 1, weights);
      rates_.emplace(static_cast<int>(graph.patterns.size()), rates);
    }
    set_links(weights, pattern);
    known->second = add(graph, std::move(pattern));
  }
  const bool across = graph.patterns[at(known->second)].group_nodes > 1;
  const GroupShape& hop = costs.operations().groups().hop;
  put(task, known->second, across ? MemberBytes{bytes, {}} : MemberBytes{{}, bytes},
      bytes / inter_node_bandwidth(Collective::send_receive, hop, cluster_, calibration_));
  const auto rates = rates_.find(known->second);
  if (rates != rates_.end()) put_shared(task, bytes, bytes / rates->second.together);
}

TaskLinks::Known& TaskLinks::of_layers(const RoleCosts& costs, int replica, int stage) {
  const auto [known, fresh] = layers_.try_emplace({costs.role().role, replica, stage});
  if (!fresh) return known->second;
  auto& [across, shared, patterns] = known->second;
  const ParallelLayout& layout = costs.role().layout;
  const std::vector<int>& ranks = costs.stage_ranks(replica, stage);  // tp fastest
  const auto collective = [&](Collective what, std::span<const int> members, int kind) {
    add_collective(network_, what, members, across[at(kind)]);
    add_within(network_, what, members, shared[at(kind)]);
  };
  for (int cp = 0; cp < layout.cp; ++cp) {
    collective(Collective::all_reduce, std::span(ranks).subspan(at(cp * layout.tp), at(layout.tp)),
               0);
  }
  for (int tp = 0; tp < layout.tp; ++tp) {
    std::vector<int> members;
    for (int cp = 0; cp < layout.cp; ++cp) members.push_back(ranks[at(cp * layout.tp + tp)]);
    if (layout.ulysses) collective(Collective::all_to_all, members, 1);
    for (std::size_t i = 0; i < members.size() && !layout.ulysses; ++i) {
      const int next = members[(i + 1) % members.size()];
      add_message(network_, members[i], next, across[1]);
      add_message_within(network_, members[i], next, shared[1]);
    }
  }
  for (const int rank : ranks) {
    add_sends(network_, rank, costs.expert_group(rank), across[2]);
    add_sends_within(network_, rank, costs.expert_group(rank), shared[2]);
  }
  return known->second;
}

TaskLinks::Known& TaskLinks::of_generation(const RoleCosts& costs, int replica) {
  const auto [known, fresh] = generation_.try_emplace({costs.role().role, replica});
  if (!fresh) return known->second;
  auto& [across, shared, patterns] = known->second;
  const auto add = [](const KindLinks& more, KindLinks& to) {
    for (std::size_t kind = 0; kind < more.size(); ++kind) {
      for (const auto& [link, weight] : more[kind]) to[kind][link] += weight;
    }
  };
  for (int stage = 0; stage < costs.role().layout.pp; ++stage) {
    const Known& layers = of_layers(costs, replica, stage);
    add(layers.across, across);
    add(layers.shared, shared);
    if (stage == 0) continue;
    const std::vector<int>& from = costs.stage_ranks(replica, stage - 1);
    const std::vector<int>& to = costs.stage_ranks(replica, stage);
    for (std::size_t i = 0; i < from.size(); ++i) {
      add_message(network_, from[i], to[i], across[3]);
      add_message_within(network_, from[i], to[i], shared[3]);
    }
  }
  return known->second;
}

void TaskLinks::put_layers(TaskGraph& graph, Task& task, const RoleCosts& costs, int replica,
                           int stage, const ChunkPass& pass) {
  put_kinds(graph, task, costs, of_layers(costs, replica, stage),
            {pass.across, pass.shared, pass.within}, costs.stage_ranks(replica, stage));
}

void TaskLinks::put_generation(TaskGraph& graph, Task& task, const RoleCosts& costs, int replica,
                               const RolloutSegment& segment) {
  const RoleOperations& operations = costs.operations();
  const auto sequences = static_cast<double>(segment.sequences);
  const auto steps = static_cast<double>(segment.steps);
  const bool prefill = segment.kind == SegmentKind::prefill;
  const auto sent = [&](RoleOperations::Sent over) {
    if (prefill) return operations.prefill_sent(over, steps, sequences);
    const SentByGroups each = operations.decode_sent(over, sequences);
    return SentByGroups{.tensor = steps * each.tensor,
                        .context = {},
                        .experts = steps * each.experts,
                        .stages = steps * each.stages};
  };
  put_kinds(graph, task, costs, of_generation(costs, replica),
            {sent(RoleOperations::Sent::across), sent(RoleOperations::Sent::shared),
             prefill ? operations.prefill_within(steps, sequences)
                     : steps * operations.decode_within(sequences)},
            costs.replica_ranks(replica));
}

void TaskLinks::put_kinds(TaskGraph& graph, Task& task, const RoleCosts& costs, Known& known,
                          const Sent& sent, std::vector<int> ranks) const {
  constexpr std::array kKinds{&SentByGroups::tensor, &SentByGroups::context, &SentByGroups::experts,
                              &SentByGroups::stages};
  const auto total = [&](const SentByGroups& bytes) {
    Traffic all;
    for (const auto kind : kKinds) all += bytes.*kind;
    return all;
  };
  const bool between = total(sent.across) > 0;
  const SentByGroups& bytes = between ? sent.across : sent.shared;
  const Traffic all = total(bytes);
  if (all <= 0 && sent.within <= 0) return;
  std::array<double, kKinds.size() + 1> parts{0, 0, 0, 0, 1};  // the last: nothing has a flow
  std::array<WithinRates, kKinds.size()> rates;
  Seconds taken;
  for (std::size_t kind = 0; all > 0 && kind < kKinds.size(); ++kind) {
    parts.back() = 0;
    parts[kind] = bytes.*kKinds[kind] / all;
    if (parts[kind] <= 0) continue;
    if (!between) rates[kind] = costs.operations().within_rates(kKinds[kind]);
    taken += bytes.*kKinds[kind] /
             (between ? costs.operations().rate_across(kKinds[kind]) : rates[kind].together);
  }
  const auto make = [&] {
    LinkPattern pattern;
    LinkWeights weights;
    const KindLinks& links = between ? known.across : known.shared;
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      if (parts[kind] <= 0) continue;
      for (const auto& [link, weight] : links[kind]) weights[link] += parts[kind] * weight;
      for (const bool in : {false, true}) {
        if (!between) add_ports(ranks, in, rates[kind].alone, parts[kind], weights);
      }
    }
    set_links(weights, pattern);
    pattern.in = pattern.out = std::move(ranks);
    return add(graph, std::move(pattern));
  };
  const auto only =
      static_cast<std::size_t>(std::find(parts.begin(), parts.end(), 1.0) - parts.begin());
  int pattern = only < parts.size() ? known.patterns[only] : -1;  // of one kind, as most are
  if (pattern < 0) pattern = make();
  if (only < parts.size()) known.patterns[only] = pattern;
  const bool crosses = !graph.patterns[at(pattern)].links.empty();
  if (!crosses && sent.within <= 0) return;
  put(task, pattern, {between && crosses ? all : Traffic{}, sent.within}, taken);
  if (!between && all > 0) put_shared(task, all, taken);
}

void TaskLinks::add_ports(std::span<const int> ranks, bool in, BytesPerSecond alone, double part,
                          LinkWeights& weights) const {
  for (const int rank : ranks) {
    weights[network_.port(rank, in)] += part * kReachedRate * network_.port_rate / alone.value;
  }
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
  for (auto& [link, weight] : weights) weight /= network_.is_within(link) ? within : across;
  set_links(weights, pattern);
  pattern.group_ranks = static_cast<int>(arrival.from.size()) + 1;
  pattern.group_nodes = static_cast<int>(nodes.size());
  task.pattern = add(graph, std::move(pattern));
  task.card_bytes = across;
  task.port_bytes = within;
}

void TaskLinks::put(Task& task, int pattern, const MemberBytes& moved, Seconds taken) const {
  task.pattern = pattern;
  task.card_bytes = moved.card.value;
  task.port_bytes = moved.port.value;
  if (moved.card <= 0) return;
  // What a backward pass hides of a reduction has no time here, and no flow.
  task.flow_ns = std::min(task.duration_ns, nanoseconds(taken.value));
  if (task.flow_ns == 0) task.card_bytes = 0;
  const BytesPerSecond rate = moved.card / taken;
  task.card_bytes =
      std::min(task.card_bytes, rate.value * static_cast<double>(task.flow_ns) * 1e-9);
}

void TaskLinks::put_shared(Task& task, Traffic bytes, Seconds taken) const {
  task.flow_ns = std::min(task.duration_ns, nanoseconds(taken.value));
  if (task.flow_ns == 0) return;
  task.shared_bytes =
      bytes.value * std::min(1.0, static_cast<double>(task.flow_ns) * 1e-9 / taken.value);
}

}  // namespace tessera
