#include "planner/pricing/role_operations.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cost_models/collective.h"
#include "planner/plan/call_limits.h"
#include "planner/plan/plan.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/pricing/role/memory.h"
#include "planner/pricing/role/offload.h"
#include "planner/pricing/role/passes.h"
#include "planner/pricing/role/role_pricer.h"
#include "planner/request/plan_request.h"

namespace tessera {
namespace {

// A second of a collective is a byte that a rank puts on the wire within its node then.
Assumptions with_slow_ports(Assumptions assumed) {
  Calibration& constants = assumed.request.calibration;
  constants.collectives.clear();
  for (const Collective collective :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
        Collective::all_to_all, Collective::send_receive}) {
    constants.collectives.push_back(
        {.collective = collective, .ranks = 2, .nodes = 1, .bandwidth = BytesPerSecond{1}});
  }
  constants.nccl = {};
  constants.overlapped_dispatch = false;
  constants.inter_latency_s.value = 0;
  assumed.request.traits.experts.overlap = ExpertOverlap::none;
  assumed.request.cluster.nic = BytesPerSecond{std::numeric_limits<double>::infinity()};
  return assumed;
}

Assumptions with_free_ports(Assumptions assumed) {
  constexpr BytesPerSecond kNoTime{std::numeric_limits<double>::infinity()};
  for (CollectiveConstants& curve : assumed.request.calibration.collectives) {
    if (curve.nodes <= 1) curve.bandwidth = kNoTime;
  }
  ClusterSpec& cluster = assumed.request.cluster;
  cluster.intra_per_gpu = cluster.pcie_switch.rate = cluster.socket.rate = kNoTime;
  return assumed;
}

}  // namespace

RoleOperations::RoleOperations(CostEvaluator& costs, const Plan& plan, const RolePlan& role,
                               const RankMap& map)
    : role_(role), candidate_(candidate_of(plan, role)) {
  RolePricer& pricer = costs.pricer(role.role, candidate_.view);
  layout_ = role_layout(pricer.assumed(), pricer.parts(), candidate_, groups_of(plan, role, map));
  const CandidateGroups& groups = layout_.groups;
  const bool pipelined = role.role == Role::rollout && candidate_.pp > 1;
  const int hop_nodes = pipelined ? groups.hop.nodes : 1;
  if (std::max({groups.tp.nodes, groups.cp.nodes, groups.ep.nodes, hop_nodes}) > 1) {
    Assumptions assumed = *layout_.assumed;
    assumed.request.cluster.nic = BytesPerSecond{std::numeric_limits<double>::infinity()};
    free_cards_ = std::make_shared<const Assumptions>(std::move(assumed));
  }
  if (pipelined || std::max({groups.tp.ranks, groups.cp.ranks, groups.ep.ranks}) > 1) {
    slow_ports_ = std::make_shared<const Assumptions>(with_slow_ports(*layout_.assumed));
    if (layout_.assumed->cluster().shares_within()) {
      free_ports_ = std::make_shared<const Assumptions>(with_free_ports(*layout_.assumed));
    }
  }
  for (const Phase phase : pricer.model().phases) {
    if (pricer.model().calls[phase] != CallKind::train) continue;
    mini_batch_parts_[phase] = pricer.mini_batch_parts(candidate_in(phase));
  }
}

/// Of a chunk's tensor, context and expert parallel groups.
Seconds RoleOperations::communication_in(const MicroBatchCost& cost, int chunk,
                                         bool backward) const {
  const auto& stages = role_.layout.stages;
  const bool last = chunk + 1 == static_cast<int>(stages.size());
  const LayerCounts layers =
      run_layers(layout_.model->spec, stages[static_cast<std::size_t>(chunk)], last);
  Seconds communication;
  for (std::size_t kind = 0; kind < layers.size(); ++kind) {
    if (layers[kind] == 0) continue;
    communication += static_cast<double>(layers[kind]) *
                     (backward ? cost.backward_comm[kind] : cost.forward_comm[kind]);
  }
  if (chunk == 0 && !backward) communication += cost.embedding_tp;
  if (last) {
    communication += backward ? cost.head_backward_tp : cost.head_tp;
  }
  return communication;
}

Candidate RoleOperations::candidate_in(Phase phase) const {
  Candidate candidate = candidate_;
  if (const auto limit = token_limit(role_.batching, phase); limit > 0) {
    candidate.tokens = limit;
    candidate.update_tokens = 0;
    candidate.sequences = sequence_limit(role_.batching, phase);
    candidate.update_sequences.reset();
  }
  return candidate;
}

std::vector<ChunkPass> RoleOperations::passes(const TokenBatch& batch, double scored,
                                              int micro_batches, bool backward) const {
  const Assumptions& assumed = *layout_.assumed;
  MicroBatchCost cost =
      price_micro_batch(layout_, candidate_, batch, {scored, batch.sequences, 0}, backward);
  const double reduced = layout_.model->no_sync ? 1.0 / micro_batches : 1;
  if (backward && reduced < 1) reduce_last_alone(cost, layout_, candidate_, micro_batches);
  const double slow =
      slowdown(assumed, candidate_,
               static_cast<double>(micro_batches) / (micro_batches + candidate_.pp - 1));
  const std::size_t chunks = role_.layout.stages.size();
  std::vector<ChunkPass> result(chunks);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    ChunkPass& pass = result[chunk];
    const bool first = chunk == 0, last = chunk + 1 == chunks;
    const LayerCounts layers = run_layers(layout_.model->spec, role_.layout.stages[chunk], last);
    Work work;
    Seconds communication = communication_in(cost, static_cast<int>(chunk), backward), host;
    for (std::size_t kind = 0; kind < layers.size(); ++kind) {
      if (layers[kind] == 0) continue;
      const auto count = static_cast<double>(layers[kind]);
      work += count * (backward ? cost.backward[kind] : cost.forward[kind]);
      const ShardSeconds moved = layer_shards(layout_, candidate_, static_cast<LayerKind>(kind));
      pass.layers += layers[kind];
      if (shards_overlap()) {
        const Seconds fetched = backward ? Seconds{} : count * cost.forward_fetched[kind];
        host += fetched;
        communication +=
            count * (backward ? cost.backward_shards[kind] : cost.forward_shards[kind]) - fetched;
      }
      pass.gather += count * moved.gather.seconds;
      if (backward) pass.scatter += reduced * count * moved.scatter.seconds;
    }
    const auto add_end = [&](const ShownShards& end) {
      communication += end.all - end.fetched;
      host += end.fetched;
    };
    if (first && !backward) {
      work += cost.embedding + cost.tower_forward;
      host += cost.software;
      add_end(cost.ends.embedding);
    }
    if (first && backward) work += cost.tower_backward;
    if (last && !backward) add_end(cost.ends.head);
    if (last) work += backward ? cost.head_backward : cost.head_forward;
    if (last && backward) host += cost.software_backward;
    pass.time = {work.total(assumed.calibration()) * slow + communication + host, communication,
                 host};
  }
  add_sent(cost, batch, scored, backward, result);
  if (slow_ports_) add_within(cost, batch, scored, backward, result);
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

Traffic RoleOperations::hop_bytes(double tokens) const {
  return tessera::hop_bytes(layout_, candidate_, tokens);
}

Seconds RoleOperations::hop_seconds(double tokens, GroupShape pair) const {
  return collective_seconds(Collective::send_receive, hop_bytes(tokens), pair,
                            layout_.assumed->cluster(), layout_.assumed->calibration());
}

Seconds RoleOperations::reduce_seconds(int stage, Seconds beside) const {
  return exposed_of(*layout_.assumed, optimizer_of(stage), candidate_, beside).reduce;
}

Seconds RoleOperations::gather_seconds(int stage, Seconds beside) const {
  return exposed_of(*layout_.assumed, optimizer_of(stage), candidate_, beside).gather;
}

Seconds RoleOperations::update_seconds(int stage) const {
  const Assumptions& assumed = *layout_.assumed;
  return optimizer_of(stage).update.total(assumed.calibration()) * slowdown(assumed, candidate_, 1);
}

Seconds RoleOperations::offload_seconds(bool training, double steps) const {
  if (role_.role == Role::rollout) return {};
  return tessera::offload_seconds(layout_, candidate_, training, steps) / std::max(1.0, steps);
}

OperationTime RoleOperations::prefill(double prompts, double sequences) const {
  const auto [compute, communication] = tessera::prefill(layout_, prompts, sequences);
  return {compute * slowdown(*layout_.assumed, candidate_, 1) + communication, communication};
}

OperationTime RoleOperations::decode(double sequences, double context) const {
  const Seconds communication = decode_communication(layout_, candidate_, sequences);
  const Seconds step = decode_compute(layout_, candidate_, sequences, context) *
                           slowdown(*layout_.assumed, candidate_, 1) +
                       communication;
  return {served(*layout_.assumed, candidate_, sequences, step), communication};
}

double RoleOperations::cache_tokens() const {
  const double tokens = paged_tokens(*layout_.assumed, candidate_);
  const Workload& workload = layout_.assumed->workload();
  // Of a prompt that is as long as the mean, as all are that decoding counts.
  const auto longest = static_cast<double>(workload.prompt_tokens + workload.response_tokens.max);
  return tokens >= static_cast<double>(candidate_.max_sequences) * longest ? 0 : tokens;
}

Seconds RoleOperations::call_seconds() const {
  const Assumptions& assumed = *layout_.assumed;
  return Seconds{assumed.calibration().call_s.value} * slowdown(assumed, candidate_, 1);
}

Seconds RoleOperations::software_seconds(CallKind kind) const {
  return tessera::software_seconds(*layout_.assumed, kind);
}

MemoryUse RoleOperations::memory(Phase phase, int stage, double in_flight) const {
  return stage_memory(layout_, candidate_in(phase), stage_of(stage), stage, phase,
                      {.count = mini_batch_parts_[phase], .in_flight = in_flight});
}

Elements RoleOperations::elements(int stage) const { return stage_of(stage).elements; }

Seconds RoleOperations::before_pass(int stage) const {
  return exposed_ends(layout_, candidate_, stage).before;
}

Seconds RoleOperations::after_pass(int stage) const {
  return exposed_ends(layout_, candidate_, stage).after;
}

int RoleOperations::sharing(bool training) const {
  return sharing_replicas(candidate_, layout_.assumed->traits(), training);
}

int RoleOperations::shard_ranks() const {
  return tessera::shard_ranks(candidate_, layout_.assumed->traits());
}

bool RoleOperations::shards_overlap() const { return tessera::shards_overlap(*layout_.assumed); }

// As the plan cuts it.
StageClass RoleOperations::stage_of(int index) const {
  return {.layers = run_layers(layout_.model->spec, role_.layout, index),
          .first = index == 0,
          .last = index == role_.layout.pp - 1,
          .index = index,
          .count = 1,
          .indices = {index},
          .elements = stage_parts(*layout_.parts, role_.layout, index)};
}

OptimizerCost RoleOperations::optimizer_of(int stage) const {
  return optimizer_cost(layout_, candidate_, trained_elements(layout_, stage_of(stage)));
}

}  // namespace tessera
