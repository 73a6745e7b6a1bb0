#include "simulator/engine/role_costs.h"

#include <algorithm>

#include "planner/plan/call_limits.h"
#include "planner/plan/plan.h"
#include "planner/pricing/plan_pricing.h"

namespace tessera {
namespace {

int replica_of(const RankCoord& coord, const ParallelLayout& layout) {
  return coord.dp_replicate * layout.dp_shard + coord.dp_shard;
}

std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace

RoleCosts::RoleCosts(const Plan& plan, const RolePlan& role, CostEvaluator& evaluator)
    : plan_(plan),
      role_(role),
      map_(rank_map_of(plan, role.role)),
      operations_(evaluator, plan, role, map_) {
  const ParallelLayout& layout = role.layout;
  stage_ranks_.assign(
      at(layout.dp),
      std::vector<std::vector<int>>(at(layout.pp), std::vector<int>(at(layout.tp * layout.cp))));
  for (std::size_t i = 0; i < map_.ranks.size(); ++i) {
    const RankCoord& coord = map_.coords[i];
    stage_ranks_[at(replica_of(coord, layout))][at(coord.pp)][at(coord.cp * layout.tp + coord.tp)] =
        map_.ranks[i];
  }
  if (layout.ep > 1) expert_groups_ = groups_along(map_, Axis::ep);
  for (std::size_t group = 0; group < expert_groups_.size(); ++group) {
    for (const int rank : expert_groups_[group]) expert_group_of_[rank] = group;
  }
  for (int stage = 0; stage < layout.pp; ++stage) {
    elements_.push_back(operations_.elements(stage).total() / operations_.shard_ranks());
  }
}

const std::vector<int>& RoleCosts::stage_ranks(int replica, int stage) const {
  return stage_ranks_[at(replica)][at(stage)];
}

const std::vector<int>& RoleCosts::expert_group(int rank) const {
  static const std::vector<int> none;
  const auto found = expert_group_of_.find(rank);
  return found == expert_group_of_.end() ? none : expert_groups_[found->second];
}

std::vector<int> RoleCosts::replica_ranks(int replica) const {
  std::vector<int> ranks;
  for (const std::vector<int>& stage : stage_ranks_[at(replica)]) {
    ranks.insert(ranks.end(), stage.begin(), stage.end());
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::int64_t RoleCosts::token_limit(Phase phase) const {
  return phase == Phase::gen ? 0 : tessera::token_limit(role_.batching, phase);
}

std::int64_t RoleCosts::sequence_limit(Phase phase) const {
  return tessera::sequence_limit(role_.batching, phase);
}

std::vector<ChunkPass> RoleCosts::forward(const MicroBatch& batch, int micro_batches) const {
  return operations_.forward(batch.batch, batch.responses, micro_batches);
}

std::vector<ChunkPass> RoleCosts::backward(const MicroBatch& batch, int micro_batches) const {
  return operations_.backward(batch.batch, batch.responses, micro_batches);
}

std::int64_t RoleCosts::hop_bytes(const MicroBatch& batch) const {
  return static_cast<std::int64_t>(operations_.hop_bytes(batch.batch.tokens).value);
}

GroupShape RoleCosts::pair_shape(int replica, int from, int to) const {
  const ClusterSpec& cluster = plan_.cluster;
  const auto node_of = [&](int rank) { return rank / cluster.gpus_per_node; };
  const std::int64_t node = node_of(stage_ranks(replica, from).front());
  GroupShape shape{2, node == node_of(stage_ranks(replica, to).front()) ? 1 : 2};
  if (shape.nodes > 1) shape.leaves = operations_.groups().hop.leaves;
  if (shape.nodes > 1) return shape;
  const auto count = [&](const SharedLink& link, int& over) {
    if (link.gpus == 0) return;
    std::map<std::int64_t, int> leaving;
    for (const auto& stages : stage_ranks_) {
      for (std::size_t i = 0; i < stages[at(from)].size(); ++i) {
        const int one = stages[at(from)][i], other = stages[at(to)][i];
        if (node_of(one) != node || node_of(other) != node) continue;
        const std::int64_t behind = one % cluster.gpus_per_node / link.gpus;
        if (behind == other % cluster.gpus_per_node / link.gpus) continue;
        over = std::max(over, ++leaving[behind]);
      }
    }
  };
  count(cluster.pcie_switch, shape.over_switch);
  count(cluster.socket, shape.over_socket);
  return shape;
}

double RoleCosts::hop_seconds(const MicroBatch& batch, int replica, int from, int to) const {
  return operations_.hop_seconds(batch.batch.tokens, pair_shape(replica, from, to));
}

std::int64_t RoleCosts::gradient_bytes(int stage) const {
  return elements_[at(stage)] * size_of(role_.dtypes.grad);
}

std::int64_t RoleCosts::parameter_bytes(int stage) const {
  return elements_[at(stage)] * size_of(role_.dtypes.param);
}

double RoleCosts::reduce_seconds(int stage, double last_backward_s) const {
  return operations_.reduce_seconds(stage, Seconds{last_backward_s});
}

double RoleCosts::gather_seconds(int stage, double last_backward_s) const {
  return operations_.gather_seconds(stage, Seconds{last_backward_s});
}

double RoleCosts::optimizer_seconds(int stage) const { return operations_.update_seconds(stage); }

double RoleCosts::call_seconds() const { return operations_.call_seconds(); }

double RoleCosts::software_seconds(CallKind kind) const {
  return operations_.software_seconds(kind).value;
}

ReplicaCosts RoleCosts::rollout() const {
  return {
      [this](double prompts, double sequences) { return operations_.prefill(prompts, sequences); },
      [this](double sequences, double context) { return operations_.decode(sequences, context); }};
}

MemoryUse RoleCosts::resident(int stage) const {
  return memory(Phase::save_checkpoint, stage, 0);  // no role computes then
}

MemoryUse RoleCosts::memory(Phase phase, int stage, double in_flight) const {
  return operations_.memory(phase, stage, in_flight);
}

PlanCosts::PlanCosts(const Plan& plan, const Calibration& calibration)
    : evaluator_(evaluator_of(plan, calibration)) {
  for (const RolePlan& role : plan.roles) {
    roles_.emplace(role.role, std::make_unique<RoleCosts>(plan, role, evaluator_));
  }
}

const Call* call_of(const Workload& workload, Phase phase) {
  for (const Call& call : workload.dataflow) {
    if (call.phase == phase) return &call;
  }
  return nullptr;
}

}  // namespace tessera
