#include "planner/pricing/role_operations.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "cost_models/spec/node_groups.h"
#include "planner/pricing/evaluate_state.h"
#include "planner/engines/engine.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"
#include "planner/request/plan_request.h"

namespace tessera {
namespace {

LayerCounts layers_in(const ModelSpec& model, const LayerRange& range) {
  LayerCounts counts{};
  for (std::int64_t layer = range.first; layer < range.last; ++layer) {
    ++counts[static_cast<std::size_t>(kind_of_layer(model, layer))];
  }
  return counts;
}

}  // namespace

CandidateGroups groups_of(const Plan& plan, const RolePlan& role, const RankMap& map) {
  using Key = std::array<int, 5>;
  // Of all groups of ranks with equal keys, the one on most nodes.
  const auto widest = [&](const auto& key_of) {
    std::map<Key, std::pair<int, std::set<std::int64_t>>> groups;
    for (std::size_t i = 0; i < map.ranks.size(); ++i) {
      auto& [count, nodes] = groups[key_of(map.coords[i])];
      ++count;
      nodes.insert(map.ranks[i] / plan.cluster.gpus_per_node);
    }
    GroupShape shape{0, 0};
    for (const auto& [key, group] : groups) {
      shape.ranks = std::max(shape.ranks, group.first);
      shape.nodes = std::max(shape.nodes, static_cast<int>(group.second.size()));
    }
    return shape;
  };
  const ParallelLayout& layout = role.layout;
  const bool context_shards = traits_of(plan.engine, {}).context_shards;
  CandidateGroups groups;
  groups.tp = widest([](const RankCoord& at) {
    return Key{at.cp, at.pp, at.dp_replicate, at.dp_shard};
  });
  groups.cp = widest([](const RankCoord& at) {
    return Key{at.tp, at.pp, at.dp_replicate, at.dp_shard};
  });
  groups.shard = widest([&](const RankCoord& at) {
    return Key{at.tp, at.pp, at.dp_replicate, context_shards ? 0 : at.cp};
  });
  groups.replicated = widest([](const RankCoord& at) {
    return Key{at.tp, at.cp, at.pp, at.dp_shard};
  });
  groups.replicas = widest([](const RankCoord& at) { return Key{at.tp, at.pp}; });
  groups.ep = widest([&](const RankCoord& at) {
    const ExpertCoord expert = expert_coord(layout, at);
    return Key{at.pp, expert.etp, expert.edp};
  });
  groups.expert_replicas = widest([&](const RankCoord& at) {
    const ExpertCoord expert = expert_coord(layout, at);
    return Key{at.pp, expert.etp, expert.ep};
  });
  const GroupShape replica = widest([](const RankCoord& at) {
    return Key{at.dp_replicate, at.dp_shard};
  });
  groups.hop_nodes = layout.pp > 1 && replica.nodes > 1 ? 2 : 1;
  return groups;
}

GroupNodes nodes_of(const Plan& plan, const RolePlan& role, const PlanRequest& request) {
  // A strided rollout's groups lie inside the actor's, as the search takes them to.
  if (role.ranks.empty() || role.rank_order == RankOrder::strided) return {};
  const Candidate candidate = candidate_of(plan, role);
  const std::int64_t node = plan.cluster.gpus_per_node;
  const int first = role.ranks.front(), last = role.ranks.back();
  const bool dealt = role.rank_order == dealt_order(candidate, plan.engine) &&
                     last - first + 1 == candidate.gpus &&
                     (first % node == 0 || first / node == last / node);
  if (dealt) return {};
  Problems problems;
  const RankMap map =
      make_rank_map(role.rank_order, role.layout, role.ranks, nullptr, "", problems);
  if (!problems.empty()) return {};
  return nodes_of(groups_of(plan, role, map), groups_of(candidate, request));
}

void RoleOperations::deal_as(const Plan& plan, const CostEvaluator& costs) {
  for (const RolePlan& role : plan.roles) {
    const GroupNodes nodes = nodes_of(plan, role, costs.request());
    if (nodes == GroupNodes{}) continue;
    const Candidate layout = candidate_of(plan, role);
    costs.state(layout.view).dealt[role.role] = {layout, nodes};
  }
}

RoleOperations::RoleOperations(const CostEvaluator& costs, const Plan& plan, const RolePlan& role,
                               const RankMap& map)
    : costs_(costs),
      plan_(plan),
      role_(role),
      candidate_(candidate_of(plan, role)),
      groups_(groups_of(plan, role, map)) {}

Candidate RoleOperations::candidate_in(Phase phase) const {
  Candidate candidate = candidate_;
  if (const auto limit = token_limit(role_.batching, phase); limit > 0) {
    candidate.tokens = limit;
    candidate.update_tokens = 0;
  }
  return candidate;
}

std::vector<ChunkPass> RoleOperations::passes(const TokenBatch& batch, double scored,
                                              int micro_batches, bool backward) const {
  CostEvaluator::State& state = costs_.state(candidate_.view);
  RoleModel& model = state.models.at(role_.role);
  const MicroBatchCost cost = state.price_micro_batch(model, candidate_, groups_, batch,
                                                      {scored, batch.sequences, 0}, backward);
  const double slow = state.slowdown(
      candidate_, static_cast<double>(micro_batches) / (micro_batches + candidate_.pp - 1));
  const std::size_t chunks = role_.layout.stages.size();
  std::vector<ChunkPass> result(chunks);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    ChunkPass& pass = result[chunk];
    const LayerCounts layers = layers_in(model.spec, role_.layout.stages[chunk]);
    const bool first = chunk == 0, last = chunk + 1 == chunks;
    Work work;
    double communication = 0;
    for (std::size_t kind = 0; kind < layers.size(); ++kind) {
      if (layers[kind] == 0) continue;
      const auto count = static_cast<double>(layers[kind]);
      work += count * (backward ? cost.backward[kind] : cost.forward[kind]);
      communication += count * (backward ? cost.backward_comm[kind] : cost.forward_comm[kind]);
      const ShardSeconds moved =
          state.layer_shards(model, candidate_, groups_, static_cast<LayerKind>(kind));
      pass.layers += layers[kind];
      if (state.shards_overlap()) {
        communication +=
            count * (backward ? cost.backward_shards[kind] : cost.forward_shards[kind]);
      }
      pass.gather_s += count * moved.gather.seconds;
      if (backward) pass.scatter_s += count * moved.scatter.seconds;
    }
    if (first && !backward) {
      work += cost.embedding;
      communication += cost.embedding_tp;
    }
    if (last) {
      work += backward ? cost.head_backward : cost.head_forward;
      communication += backward ? cost.head_backward_tp : cost.head_tp;
    }
    pass.time = {work.total(state.calibration()) * slow + communication, communication};
  }
  return result;
}

std::vector<ChunkPass> RoleOperations::forward(const TokenBatch& batch, double scored,
                                               int micro_batches) const {
  return passes(batch, scored, micro_batches, false);
}

std::vector<ChunkPass> RoleOperations::backward(const TokenBatch& batch, double scored,
                                                int micro_batches) const {
  return passes(batch, scored, micro_batches, true);
}

double RoleOperations::hop_bytes(double tokens) const {
  CostEvaluator::State& state = costs_.state(candidate_.view);
  return state.hop_bytes(state.models.at(role_.role), candidate_, tokens);
}

double RoleOperations::hop_seconds(double tokens, GroupShape pair) const {
  const CostEvaluator::State& state = costs_.state(candidate_.view);
  return collective_seconds(Collective::send_receive, hop_bytes(tokens), pair, state.cluster(),
                            state.calibration());
}

double RoleOperations::reduce_seconds(int stage, double beside_s) const {
  CostEvaluator::State& state = costs_.state(candidate_.view);
  const OptimizerCost cost = state.optimizer_of(role_, candidate_, groups_, stage);
  return state.exposed_of(cost, candidate_, beside_s).reduce_s;
}

double RoleOperations::gather_seconds(int stage, double beside_s) const {
  CostEvaluator::State& state = costs_.state(candidate_.view);
  const OptimizerCost cost = state.optimizer_of(role_, candidate_, groups_, stage);
  return state.exposed_of(cost, candidate_, beside_s).gather_s;
}

double RoleOperations::update_seconds(int stage) const {
  CostEvaluator::State& state = costs_.state(candidate_.view);
  return state.optimizer_of(role_, candidate_, groups_, stage).update.total(state.calibration()) *
         state.slowdown(candidate_, 1);
}

double RoleOperations::offload_seconds(bool training, double steps) const {
  CostEvaluator::State& state = costs_.state(candidate_.view);
  if (role_.role == Role::rollout) return 0;
  return state.offload_seconds(state.models.at(role_.role), candidate_, training, steps) /
         std::max(1.0, steps);
}

OperationTime RoleOperations::prefill(double prompts, double sequences) const {
  CostEvaluator::State& state = costs_.state(candidate_.view);
  RoleModel& model = state.models.at(role_.role);
  const auto [compute, communication] =
      state.prefill(model, candidate_, groups_, prompts, sequences);
  return {compute * state.slowdown(candidate_, 1) + communication, communication};
}

OperationTime RoleOperations::decode(double sequences, double context) const {
  CostEvaluator::State& state = costs_.state(candidate_.view);
  RoleModel& model = state.models.at(role_.role);
  const double communication = state.decode_communication(model, candidate_, groups_, sequences);
  return {
      state.decode_compute(model, candidate_, sequences, context) * state.slowdown(candidate_, 1) +
          communication,
      communication};
}

double RoleOperations::call_seconds() const {
  const CostEvaluator::State& state = costs_.state(candidate_.view);
  return state.calibration().call_s.value * state.slowdown(candidate_, 1);
}

MemoryUse RoleOperations::memory(Phase phase, int stage, double in_flight) const {
  CostEvaluator::State& state = costs_.state(candidate_.view);
  RoleModel& model = state.models.at(role_.role);
  return state.stage_memory(model, candidate_in(phase), state.stage_of(role_, candidate_, stage),
                            stage, phase, in_flight);
}

Elements RoleOperations::elements(int stage) const {
  return costs_.state(candidate_.view).stage_of(role_, candidate_, stage).elements;
}

double RoleOperations::before_pass(int stage) const {
  CostEvaluator::State& state = costs_.state(candidate_.view);
  return state.exposed_ends(state.models.at(role_.role), candidate_, groups_, stage).before;
}

double RoleOperations::after_pass(int stage) const {
  CostEvaluator::State& state = costs_.state(candidate_.view);
  return state.exposed_ends(state.models.at(role_.role), candidate_, groups_, stage).after;
}

int RoleOperations::sharing(bool training) const {
  const CostEvaluator::State& state = costs_.state(candidate_.view);
  if (shard_ranks() > 1) return candidate_.dp_shard;
  return training && state.reduces_layers(candidate_) ? candidate_.dp : 0;
}

int RoleOperations::shard_ranks() const {
  return tessera::shard_ranks(candidate_, costs_.state(candidate_.view).request.traits);
}

bool RoleOperations::shards_overlap() const {
  return costs_.state(candidate_.view).shards_overlap();
}

StageClass CostEvaluator::State::stage_of(const RolePlan& role, const Candidate& candidate,
                                          int index) {
  RoleModel& model = models.at(role.role);
  return {.layers = stage_layers(model.spec, role.layout, index),
          .first = index == 0,
          .last = index == role.layout.pp - 1,
          .index = index,
          .count = 1,
          .elements = stage_parts(shards(model, candidate.tp, candidate.ep, candidate.etp),
                                  role.layout, index)};
}

OptimizerCost CostEvaluator::State::optimizer_of(const RolePlan& role, const Candidate& candidate,
                                                 const CandidateGroups& groups, int stage) {
  RoleModel& model = models.at(role.role);
  return optimizer_cost(model, candidate, groups,
                        trained_elements(model, candidate, stage_of(role, candidate, stage)));
}

}  // namespace tessera
