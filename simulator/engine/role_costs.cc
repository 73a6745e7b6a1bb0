#include "simulator/engine/role_costs.h"

#include <algorithm>
#include <set>

#include "cost_models/compute.h"

namespace tessera {
namespace {

GroupShape shape_of(const std::vector<int>& ranks, const ClusterSpec& cluster) {
  std::set<std::int64_t> nodes;
  for (const int rank : ranks) nodes.insert(rank / cluster.gpus_per_node);
  return {static_cast<int>(ranks.size()), static_cast<int>(nodes.size())};
}

bool trains(const Workload& workload, Role role) {
  return std::any_of(workload.dataflow.begin(), workload.dataflow.end(), [&](const Call& call) {
    return call.role == role && call.kind == CallKind::train;
  });
}

int replica_of(const RankCoord& coord, const ParallelLayout& layout) {
  return coord.dp_replicate * layout.dp_shard + coord.dp_shard;
}

}  // namespace

RoleCosts::RoleCosts(const Plan& plan, const RolePlan& role, const Calibration& calibration)
    : plan_(plan),
      role_(role),
      calibration_(calibration),
      map_(rank_map_of(plan, role.role)),
      rank_{plan.model_of(role.role), role.layout.tp, role.dtypes.param},
      trained_(trains(plan.workload, role.role)) {
  const ParallelLayout& layout = role.layout;
  const auto size = [](int count) { return static_cast<std::size_t>(count); };
  stage_ranks_.assign(size(layout.dp()), std::vector<std::vector<int>>(
                                             size(layout.pp), std::vector<int>(size(layout.tp))));
  for (std::size_t i = 0; i < map_.ranks.size(); ++i) {
    const RankCoord& coord = map_.coords[i];
    stage_ranks_[size(replica_of(coord, layout))][size(coord.pp)][size(coord.tp)] = map_.ranks[i];
  }
  tp_group_ = shape_of(stage_ranks(0, 0), plan.cluster);
  const ParameterTable table = parameter_table(rank_.model);
  const ShardElements shards = shard_elements(table, layout.tp);
  for (int stage = 0; stage < layout.pp; ++stage) {
    elements_.push_back(stage_elements(shards, layout, stage));
  }
  tensors_per_stage_ = static_cast<double>(table.rows.size()) / layout.pp;
}

const std::vector<int>& RoleCosts::stage_ranks(int replica, int stage) const {
  return stage_ranks_[static_cast<std::size_t>(replica)][static_cast<std::size_t>(stage)];
}

std::int64_t RoleCosts::token_limit(Phase phase) const {
  const Batching& batching = role_.batching;
  switch (phase) {
    case Phase::old_log_prob:
    case Phase::ref:
      return batching.log_prob_tokens;
    case Phase::values:
      return batching.values_tokens;
    case Phase::reward:
      return batching.reward_tokens;
    case Phase::update_actor:
    case Phase::update_critic:
      return batching.update_tokens;
    default:
      return 0;
  }
}

double RoleCosts::slowdown(double part) const {
  const auto per_node = static_cast<double>(plan_.cluster.gpus_per_node);
  const double busy = std::min(static_cast<double>(role_.ranks.size()), per_node) * part;
  return 1 / core_share(calibration_, busy, per_node - busy);
}

double RoleCosts::pipeline_slowdown(int micro_batches) const {
  return slowdown(static_cast<double>(micro_batches) / (micro_batches + role_.layout.pp - 1));
}

double RoleCosts::layers(int stage) const {
  return static_cast<double>(stage_layers(role_.layout, stage));
}

OperationTime RoleCosts::timed(const Work& work, double communication_s, double slow) const {
  return {work.total(calibration_) * slow + communication_s, communication_s};
}

std::vector<OperationTime> RoleCosts::forward(const MicroBatch& micro_batch,
                                              int micro_batches) const {
  const TokenBatch& batch = micro_batch.batch;
  const TokenBatch scored{micro_batch.responses, batch.sequences, 0};
  const double slow = pipeline_slowdown(micro_batches);
  const Work layer = layer_forward(rank_, batch, calibration_);
  const double layer_tp =
      layer_tp_seconds(rank_, batch.tokens, tp_group_, plan_.cluster, calibration_);
  std::vector<OperationTime> stages;
  for (int stage = 0; stage < role_.layout.pp; ++stage) {
    Work work = layers(stage) * layer;
    double communication = layers(stage) * layer_tp;
    if (stage == 0) {
      work += embedding_forward(rank_, batch, calibration_);
      communication +=
          embedding_tp_seconds(rank_, batch.tokens, tp_group_, plan_.cluster, calibration_);
    }
    if (is_last(stage)) {
      work += head_forward(rank_, scored, calibration_);
      communication +=
          head_tp_seconds(rank_, scored.tokens, tp_group_, plan_.cluster, calibration_);
    }
    stages.push_back(timed(work, communication, slow));
  }
  return stages;
}

std::vector<OperationTime> RoleCosts::backward(const MicroBatch& micro_batch,
                                               int micro_batches) const {
  const TokenBatch& batch = micro_batch.batch;
  const TokenBatch scored{micro_batch.responses, batch.sequences, 0};
  const double slow = pipeline_slowdown(micro_batches);
  const Work layer = layer_backward(rank_, batch, role_.recompute, calibration_);
  const double layer_tp =
      layer_tp_seconds(rank_, batch.tokens, tp_group_, plan_.cluster, calibration_);
  std::vector<OperationTime> stages;
  for (int stage = 0; stage < role_.layout.pp; ++stage) {
    Work work = layers(stage) * layer;
    double communication = layers(stage) * layer_tp;
    if (is_last(stage)) {
      work += head_backward(rank_, scored, calibration_);
      communication +=
          head_backward_tp_seconds(rank_, scored.tokens, tp_group_, plan_.cluster, calibration_);
    }
    stages.push_back(timed(work, communication, slow));
  }
  return stages;
}

std::int64_t RoleCosts::hop_bytes(const MicroBatch& batch) const {
  return static_cast<std::int64_t>(batch.batch.tokens) * rank_.model.hidden *
         size_of(role_.dtypes.param);
}

double RoleCosts::hop_seconds(const MicroBatch& batch, int replica, int stage) const {
  const std::vector<int> pair = {stage_ranks(replica, stage).front(),
                                 stage_ranks(replica, stage + 1).front()};
  return collective_seconds(Collective::send_receive, static_cast<double>(hop_bytes(batch)),
                            shape_of(pair, plan_.cluster), plan_.cluster, calibration_);
}

GroupShape RoleCosts::dp_group(int stage) const {
  std::vector<int> ranks;
  for (int replica = 0; replica < role_.layout.dp(); ++replica) {
    ranks.push_back(stage_ranks(replica, stage).front());
  }
  return shape_of(ranks, plan_.cluster);
}

std::int64_t RoleCosts::gradient_bytes(int stage) const {
  return elements_[static_cast<std::size_t>(stage)] * size_of(role_.dtypes.grad);
}

std::int64_t RoleCosts::parameter_bytes(int stage) const {
  return elements_[static_cast<std::size_t>(stage)] * size_of(role_.dtypes.param);
}

double RoleCosts::reduce_seconds(int stage) const {
  const Collective collective =
      role_.layout.zero >= 1 ? Collective::reduce_scatter : Collective::all_reduce;
  return collective_seconds(collective, static_cast<double>(gradient_bytes(stage)), dp_group(stage),
                            plan_.cluster, calibration_);
}

double RoleCosts::gather_seconds(int stage) const {
  if (role_.layout.zero < 1) return 0;
  return collective_seconds(Collective::all_gather, static_cast<double>(parameter_bytes(stage)),
                            dp_group(stage), plan_.cluster, calibration_);
}

double RoleCosts::optimizer_seconds(int stage) const {
  const Work work = optimizer_step(static_cast<double>(elements_[static_cast<std::size_t>(stage)]),
                                   role_.layout.zero >= 1 ? role_.layout.dp() : 1,
                                   tensors_per_stage_, role_.dtypes, calibration_);
  return work.total(calibration_) * slowdown(1);
}

double RoleCosts::call_seconds() const { return calibration_.call_s.value * slowdown(1); }

OperationTime RoleCosts::prefill(double prompts, double sequences) const {
  const auto prompt = static_cast<double>(plan_.workload.prompt_tokens);
  const TokenBatch batch{prompts * prompt, prompts, prompts * prompt * prompt};
  const auto count = static_cast<double>(rank_.model.layers);
  Work work = count * layer_forward(rank_, batch, calibration_);
  work += embedding_forward(rank_, batch, calibration_);
  work += sample(rank_, sequences, calibration_);
  const ClusterSpec& cluster = plan_.cluster;
  const double communication =
      count * layer_tp_seconds(rank_, batch.tokens, tp_group_, cluster, calibration_) +
      embedding_tp_seconds(rank_, batch.tokens, tp_group_, cluster, calibration_) +
      sample_tp_seconds(rank_, sequences, tp_group_, cluster, calibration_);
  return timed(work, communication, slowdown(1));
}

OperationTime RoleCosts::decode(double sequences, double context) const {
  const TokenBatch batch{sequences, sequences, sequences};
  const auto count = static_cast<double>(rank_.model.layers);
  Work work = count * layer_decode(rank_, sequences, context, calibration_);
  work += embedding_forward(rank_, batch, calibration_);
  work += sample(rank_, sequences, calibration_);
  const ClusterSpec& cluster = plan_.cluster;
  const double communication =
      count * layer_tp_seconds(rank_, sequences, tp_group_, cluster, calibration_) +
      embedding_tp_seconds(rank_, sequences, tp_group_, cluster, calibration_) +
      sample_tp_seconds(rank_, sequences, tp_group_, cluster, calibration_);
  return timed(work, communication, slowdown(1));
}

ReplicaCosts RoleCosts::rollout() const {
  return {[this](double prompts, double sequences) { return prefill(prompts, sequences); },
          [this](double sequences, double context) { return decode(sequences, context); }};
}

MemoryUse RoleCosts::resident(int stage) const {
  return resident_memory(elements_[static_cast<std::size_t>(stage)], role_.layout, role_.dtypes,
                         trained_);
}

MemoryUse RoleCosts::working(Phase phase, int stage, int in_flight) const {
  const Workload& workload = plan_.workload;
  const Call* const call = call_of(workload, phase);
  if (call == nullptr || call->kind == CallKind::compute) return {};
  const std::int64_t longest = workload.prompt_tokens + workload.response_tokens.max;
  if (call->kind == CallKind::generate) {
    return rollout_memory(rank_, role_.dtypes.kv, role_.batching.max_sequences, longest,
                          static_cast<double>(role_.batching.prefill_tokens));
  }
  // A sequence that is alone in its micro-batch may be longer than the limit.
  const auto tokens = static_cast<double>(std::max(token_limit(phase), longest));
  if (call->kind == CallKind::infer) return inference_memory(rank_, is_last(stage), tokens);
  return training_memory(rank_, stage_layers(role_.layout, stage), is_last(stage), tokens,
                         in_flight, role_.recompute);
}

const Call* call_of(const Workload& workload, Phase phase) {
  for (const Call& call : workload.dataflow) {
    if (call.phase == phase) return &call;
  }
  return nullptr;
}

const RolePlan& runner_of(const Plan& plan, const ScheduledCall& scheduled) {
  const Call* const call = call_of(plan.workload, scheduled.phase);
  const bool generates = call != nullptr && call->kind == CallKind::generate;
  const RolePlan* const role = plan.find(generates ? Role::rollout : scheduled.role);
  if (role != nullptr) return *role;
  const RolePlan* const actor = plan.find(Role::actor);
  return actor != nullptr ? *actor : plan.roles.front();
}

void check_simulatable(const Plan& plan, const std::string& file, Problems& problems) {
  for (std::size_t i = 0; i < plan.roles.size(); ++i) {
    const RolePlan& role = plan.roles[i];
    const std::string place = "/roles/" + std::to_string(i) + "/layout/";
    const auto refuse = [&](bool wrong, const char* field, int found, const char* expected) {
      if (wrong) problems.push_back({file, place + field, std::to_string(found), expected, {}});
    };
    refuse(role.layout.cp > 1, "cp", role.layout.cp, "1: the simulator has no context parallelism");
    refuse(role.layout.ep > 1, "ep", role.layout.ep, "1: the simulator has no expert parallelism");
    refuse(role.layout.vpp > 1, "vpp", role.layout.vpp, "1: the simulator runs plain 1F1B");
    refuse(role.layout.dp_shard > 1, "dp_shard", role.layout.dp_shard,
           "1: no FSDP in the simulator");
    refuse(role.layout.zero > 1, "zero", role.layout.zero, "0 or 1 in the simulator");
    refuse(role.role == Role::rollout && role.layout.pp > 1, "pp", role.layout.pp,
           "1: the simulator has no pipelined rollout");
    const Offload& offload = role.offload;
    if (offload.parameters || offload.gradients || offload.optimizer) {
      problems.push_back({file,
                          "/roles/" + std::to_string(i) + "/offload",
                          "true",
                          "no offload in the simulator",
                          {}});
    }
  }
}

}  // namespace tessera
