#include "planner/pricing/role/full_gather.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "cost_models/adapters.h"
#include "cost_models/collective.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/reshard/travel.h"
#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "planner/pricing/role/groups.h"
#include "planner/request/candidate.h"

namespace tessera {

bool gathers_whole(std::string_view engine) {
  return engine_named(engine).weights.gather.has_value();
}

Candidate whole_copies(Candidate rollout) {
  rollout.tp = rollout.pp = rollout.ep = rollout.etp = 1;
  rollout.dp = rollout.gpus;
  return rollout;
}

int gathering_ranks(const Candidate& actor) {
  const int dense = actor.tp * actor.pp * actor.dp_shard * (actor.zero == 3 ? actor.cp : 1);
  return std::min(actor.gpus, std::max(dense, actor.pp * actor.ep * actor.etp));
}

Seconds whole_gather_seconds(Bytes whole, Bytes bucket, GroupShape group,
                             const ClusterSpec& cluster, const Calibration& calibration) {
  if (group.ranks <= 1) return {};
  return gather_seconds(whole, rounds_of(whole, bucket), group, cluster, calibration);
}

Bytes as_gathered(std::string_view engine, const RoleDTypes& dtypes, Bytes bytes) {
  const bool masters = engine_named(engine).weights.gather.value().master_weights;
  return masters ? bytes / size_of(dtypes.wire) * size_of(dtypes.master) : bytes;
}

namespace {

// A file's tensors that are several rows of the table are counted once.
std::int64_t loaded_tensors(const RoleModel& model) {
  const ParameterTable& table = *model.table;
  if (model.lora.moves_adapters()) return adapter_tensors(table, model.lora);
  return std::count_if(table.rows.begin(), table.rows.end(),
                       [](const Parameter& row) { return !row.slice || row.slice->offset == 0; });
}

}  // namespace

Seconds handover_seconds(const Assumptions& assumed, const RoleModel& rollout, bool shared) {
  const HandoverTraits& by = assumed.traits().handover;
  if (by == HandoverTraits{}) return {};
  const auto tensors = static_cast<double>(loaded_tensors(rollout));
  return shared ? by.call + by.tensor * tensors : by.broadcast_tensor * tensors;
}

Seconds seconds_before_handover(const Assumptions& assumed, const ModelSpec& model,
                                const Candidate& actor) {
  constexpr Traffic kState{12};  // fp32 master weight and two moments
  const HandoverTraits& by = assumed.traits().handover;
  if (!by.gathered_first && by.eviction <= 0) return {};
  const auto parameters = static_cast<double>(parameter_count(model));
  const int experts = actor.ep * actor.etp * actor.pp;
  const int copy = actor.zero == 3 ? actor.gpus : std::max(actor.tp * actor.pp, experts);
  Seconds seconds;
  if (by.gathered_first && copy > 1) {
    const Traffic whole{parameters * static_cast<double>(size_of(model.dtype))};
    seconds +=
        collective_seconds(Collective::all_gather, whole, group_shape(assumed.cluster(), copy, 1),
                           assumed.cluster(), assumed.calibration());
  }
  const int shards = actor.zero >= 1 ? actor.gpus : copy;
  if (by.eviction > 0) seconds += kState * parameters / shards / by.eviction;
  return seconds;
}

namespace {

Bytes largest_tensor_bytes(std::string_view engine, const ModelSpec& actor,
                           const RoleDTypes& dtypes) {
  const auto& gather = engine_named(engine).weights.gather;
  const DType type = gather && gather->master_weights ? dtypes.master : dtypes.param;
  return Bytes{std::max(actor.vocab, actor.ffn) * actor.hidden * size_of(type)};
}

}  // namespace

Bytes largest_tensor_bytes(const Plan& plan) {
  const RolePlan* const actor = plan.find(Role::actor);
  if (actor == nullptr) return {};
  return largest_tensor_bytes(plan.engine, plan.models.at(actor->model).spec, actor->dtypes);
}

Bytes gather_bucket_bytes(std::string_view engine, const ModelSpec& actor, const RoleDTypes& dtypes,
                          Bytes asked) {
  constexpr std::int64_t kMebibyte = 1 << 20;
  const Bytes usual = engine_named(engine).weights.gather.value_or(WholeGather{}).bucket;
  const std::int64_t largest =
      (largest_tensor_bytes(engine, actor, dtypes).value + kMebibyte - 1) / kMebibyte;
  return std::max(asked > 0 ? asked : usual, Bytes{largest * kMebibyte});
}

Bytes gather_bucket_bytes(const Plan& plan, Bytes asked) {
  const RolePlan& actor = *plan.find(Role::actor);
  return gather_bucket_bytes(plan.engine, plan.models.at(actor.model).spec, actor.dtypes, asked);
}

RankMap sharded_over_context(RankMap map) {
  ParallelLayout& layout = map.layout;
  if (layout.zero != 3) return map;
  for (RankCoord& at : map.coords) at.dp_shard = at.dp_shard * layout.cp + std::exchange(at.cp, 0);
  layout.dp *= layout.cp;
  layout.dp_shard *= layout.cp;
  layout.cp = 1;
  return map;
}

namespace {

RankMap storing_map(const Plan& plan, Role role) {
  RankMap map = rank_map_of(plan, role);
  return traits_of(plan.engine).shards.over_context ? sharded_over_context(std::move(map)) : map;
}

// Elements of a tensor that a rank keeps. FSDP2 cuts it by rows into chunks of which each has as
// many but the last ones, which have what is left (torch.chunk along dim 0).
std::int64_t kept(const Parameter& row, const ParallelLayout& layout, const RankCoord& at) {
  const auto box = compute_box(row, layout, at);
  if (!box) return 0;
  if (layout.zero != 3 || box->rank == 0) return volume(*box);
  const std::int64_t rows = box->dims[0].size(), shards = layout.dp_shard;
  const std::int64_t chunk = (rows + shards - 1) / shards;
  const std::int64_t left = std::max<std::int64_t>(0, rows - at.dp_shard * chunk);
  return volume(*box) / rows * std::min(chunk, left);
}

}  // namespace

GatheredBytes gathered_bytes(const Plan& plan, const PlannedReshard& pair) {
  ModelSpec model = plan.model_of(pair.from);
  if (plan.find(pair.to)->mtp == MtpUse::left_out) model.mtp = MtpUse::left_out;
  const ParameterTable table = parameter_table(model);
  const RankMap map = storing_map(plan, pair.from);
  const AlikeParameters alike = alike_parameters(table, map.layout, map.layout);
  const std::int64_t whole = table.elements();
  std::int64_t most = 0, all = 0;
  for (const RankCoord& at : map.coords) {
    std::int64_t lacking = whole;
    for (std::size_t kind = 0; kind < alike.first.size(); ++kind) {
      const Parameter& row = table.rows[static_cast<std::size_t>(alike.first[kind])];
      lacking -= alike.count[kind] * kept(row, map.layout, at);
    }
    most = std::max(most, lacking);
    all += lacking;
  }
  const RoleDTypes& dtypes = plan.find(pair.from)->dtypes;
  const auto gathered = [&](std::int64_t elements) {
    return as_gathered(plan.engine, dtypes, Bytes{elements * size_of(dtypes.wire)});
  };
  return {gathered(most), gathered(all)};
}

void set_gathered(const Plan& plan, GatheredBytes received, Bytes weights, PlannedReshard& pair) {
  pair.mode = ReshardMode::full;
  pair.digest.clear();
  pair.bytes_received = received.busiest;
  pair.lower_bound_bytes = std::min(pair.lower_bound_bytes, received.busiest);
  pair.total_received_bytes = received.all;
  pair.bucket_bytes = gather_bucket_bytes(plan, pair.bucket_bytes);
  pair.peak_bytes = weights + pair.bucket_bytes;
}

double share_of(std::int64_t gpus, const Candidate& actor, const PlanRequest& request) {
  const auto node = static_cast<double>(gpus);
  const double block = static_cast<double>(actor.tp) * actor.cp;
  const bool apart = dealt_order(actor, request.traits) == RankOrder::megatron;
  const double stages =
      std::clamp(node / (apart ? block * actor.dp : block), 1.0, static_cast<double>(actor.pp));
  const double copy = std::max(block * actor.dp_shard,
                               static_cast<double>(actor.ep) * static_cast<double>(actor.etp));
  return stages / actor.pp * std::min(1.0, std::max(node / stages, block) / copy);
}

MovedBytes spread_over_copy(Traffic bytes, const Candidate& actor, const PlanRequest& request) {
  const ClusterSpec& cluster = request.cluster;
  const double local = share_of(cluster.gpus_per_node, actor, request);
  const auto over = [&](const SharedLink& link) {
    if (link.gpus == 0) return Traffic{};
    const double block = actor.tp * actor.cp;  // which may be wider than the link's GPUs
    const double behind = std::min(1.0, static_cast<double>(link.gpus) / block);
    return bytes * std::max(0.0, local - behind * share_of(link.gpus, actor, request));
  };
  const Traffic far = bytes * (1 - local);
  return {bytes * local, far, over(cluster.pcie_switch), over(cluster.socket),
          far * (1 - leaf_share_of_copy(actor, request))};
}

double spare_uplink(std::int64_t gpus, const ClusterSpec& cluster) {
  if (!has_leaves(cluster)) return 0;
  return std::max(0.0, 1 - static_cast<double>(gpus) /
                               static_cast<double>(cluster.nodes_per_leaf * cluster.gpus_per_node));
}

// Stages of a copy lie side by side, or as far apart as its replicas take.
double leaf_share_of_copy(const Candidate& actor, const PlanRequest& request) {
  const double local = share_of(request.cluster.gpus_per_node, actor, request);
  if (local >= 1 || !has_leaves(request.cluster)) return 1;
  const bool apart = dealt_order(actor, request.traits) == RankOrder::megatron;
  const std::int64_t block = std::int64_t{actor.tp} * actor.cp;
  const std::int64_t stage = std::max(block * actor.dp_shard, std::int64_t{actor.ep} * actor.etp);
  const std::int64_t ranks = stage * actor.pp;
  return leaf_shares(request.cluster, {.gpus = actor.gpus,
                                       .ranks = static_cast<double>(ranks),
                                       .nodes = 1 / local,
                                       .step = apart ? block * actor.dp : 1,
                                       .extent = apart ? actor.gpus : ranks,
                                       .members = static_cast<double>(ranks)})
      .pairs;
}

double busiest_link(const std::vector<double>& by_stage, const Candidate& candidate,
                    const PlanRequest& request) {
  const double busiest = *std::max_element(by_stage.begin(), by_stage.end());
  const ClusterSpec& cluster = request.cluster;
  const std::int64_t leaf =
      cluster.gpus_per_node * (has_leaves(cluster) ? cluster.nodes_per_leaf : 1);
  if (cluster.nodes == 1 || (candidate.pp == 1 && candidate.gpus >= leaf)) return busiest;
  const bool apart = dealt_order(candidate, request.traits) == RankOrder::megatron;
  const int block = candidate.tp * candidate.cp * (apart ? candidate.dp : 1);
  // Of the links that so many neighbours share, by the mean of those behind one.
  const auto shared_by = [&](int neighbours) {
    double most = 0;
    if (block % neighbours == 0) {  // of one stage
      for (const double own : by_stage) {
        double sum = 0;
        for (int rank = 0; rank < neighbours; ++rank) sum += own;
        most = std::max(most, sum / neighbours);
      }
      return most;
    }
    const int period = std::min(candidate.gpus, std::lcm(neighbours, block * candidate.pp));
    for (int first = 0; first < period; first += neighbours) {
      double sum = 0;
      for (int rank = first; rank < std::min(period, first + neighbours); ++rank) {
        sum += by_stage[static_cast<std::size_t>(rank / block % candidate.pp)];
      }
      most = std::max(most, sum / neighbours);
    }
    return most;
  };
  const auto per_node = static_cast<int>(cluster.gpus_per_node);
  const int cards = static_cast<int>(std::clamp<std::int64_t>(cluster.nics_per_node, 1, per_node));
  const double blocking = std::max(1.0, cluster.blocking());
  const double own = static_cast<double>(cards) / per_node / blocking;
  return std::max(
      {own * busiest, shared_by(per_node / cards) / blocking, shared_by(static_cast<int>(leaf))});
}

}  // namespace tessera
