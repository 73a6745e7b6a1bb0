#include "planner/pricing/role/reshard.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cost_models/adapters.h"
#include "cost_models/compute.h"
#include "cost_models/layout/min_cost_flow.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/reshard/travel.h"
#include "planner/pricing/role/full_gather.h"
#include "planner/pricing/role/groups.h"

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// Ranks that take each part of the rollout, by [part][training class].
using TakenParts = std::vector<std::vector<std::int64_t>>;

// Elements that a rank receives, by [rollout tp rank][training tp rank + tp x stage].
using RankVolumes = std::vector<std::vector<std::int64_t>>;

// Cuts by tensor and pipeline parallelism only, as the closed form below counts them exactly.
bool plain(const Candidate& candidate) {
  return candidate.cp == 1 && candidate.vpp == 1 && candidate.dp_shard == 1 && candidate.ep == 1 &&
         candidate.etp == 1 && candidate.head_layers == 0;
}

// All that the ranks of one period of nodes receive, the busiest of them, and how many ranks of
// each training class take each part, where each node's parts go to the ranks that assign_ranks
// gives them (cost_models/layout/rank_assignment.h: alike places and ranks in the same order, so
// equal ties).
struct ListedSwitch {
  std::int64_t sum = 0, busiest = 0;
  TakenParts taken;
};

ListedSwitch listed_volume(const RankVolumes& volumes, int slots, std::int64_t most) {
  const auto classes = static_cast<int>(volumes.front().size());
  const auto parts = volumes.size();
  const std::vector<int> supply(parts, slots / static_cast<int>(parts));
  std::map<std::vector<int>, ListedSwitch> known;  // by ranks of a node
  const TakenParts none(parts, std::vector<std::int64_t>(static_cast<std::size_t>(classes), 0));
  ListedSwitch all{.taken = none};
  for (int first = 0; first < std::lcm(slots, classes); first += slots) {
    std::map<int, int> alike;
    for (int rank = first; rank < first + slots; ++rank) ++alike[rank % classes];
    std::vector<int> held, demand;
    for (const auto& [source, count] : alike) {
      held.push_back(source);
      demand.push_back(count);
    }
    auto [entry, fresh] = known.try_emplace(held);
    ListedSwitch& node = entry->second;
    if (fresh) {
      node.taken = none;
      std::vector<std::vector<std::int64_t>> cost(parts);
      for (std::size_t part = 0; part < parts; ++part) {
        for (const int source : held) {
          cost[part].push_back(volumes[part][static_cast<std::size_t>(source)]);
        }
      }
      const auto flow = min_cost_assignment(supply, demand, cost, most);
      for (std::size_t part = 0; part < parts; ++part) {
        for (std::size_t i = 0; i < held.size(); ++i) {
          node.sum += flow[part][i] * cost[part][i];
          node.taken[part][static_cast<std::size_t>(held[i])] += flow[part][i];
          if (flow[part][i] > 0) node.busiest = std::max(node.busiest, cost[part][i]);
        }
      }
    }
    all.sum += node.sum;
    all.busiest = std::max(all.busiest, node.busiest);
    for (std::size_t part = 0; part < parts; ++part) {
      for (std::size_t c = 0; c < node.taken[part].size(); ++c) {
        all.taken[part][c] += node.taken[part][c];
      }
    }
  }
  return all;
}

ShardOverlap shard_overlap(const ParameterTable& table, int training_tp, int rollout_tp) {
  ShardOverlap result;
  const auto layers = table.model.layers;
  const ParallelLayout from{{.tp = training_tp}, 0, even_stages(layers, 1)};
  const ParallelLayout to{{.tp = rollout_tp}, 0, even_stages(layers, 1)};
  const std::vector<std::vector<std::int64_t>> zeros(
      static_cast<std::size_t>(training_tp),
      std::vector<std::int64_t>(static_cast<std::size_t>(rollout_tp), 0));
  result.layer.fill(zeros);
  result.first = result.last = result.both = zeros;
  std::array<std::int64_t, kLayerKinds> sample{};  // the first layer of each kind stands for all
  sample.fill(-1);
  for (const Parameter& parameter : table.rows) {
    auto* sums = &result.both;
    if (parameter.place == StagePlace::layer) {
      const auto kind = static_cast<std::size_t>(kind_of_layer(table.model, parameter.layer));
      if (sample[kind] < 0) sample[kind] = parameter.layer;
      if (sample[kind] != parameter.layer) continue;
      sums = &result.layer[kind];
    } else if (parameter.place == StagePlace::embedding) {
      sums = &result.first;
    } else if (parameter.place == StagePlace::head) {
      sums = &result.last;
    }
    for (int i = 0; i < training_tp; ++i) {
      const auto held = compute_box(parameter, from, {.tp = i});
      for (int j = 0; j < rollout_tp; ++j) {
        const auto wanted = compute_box(parameter, to, {.tp = j});
        if (held && wanted) {
          (*sums)[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] +=
              volume(intersect(*held, *wanted));
        }
      }
    }
  }
  return result;
}

// What a rank of the actor (tp fastest, then stage) receives as a part of the rollout's TP group,
// by [part][rank]; `common_volumes`: what it has of that part.
RankVolumes rank_volumes(const ModelParts& parts, const ShardElements& wanted,
                         const ShardOverlap& common, const Candidate& actor,
                         const Candidate& rollout, RankVolumes& common_volumes) {
  const RoleModel& model = parts.model();
  const ParallelLayout layout = parts.layout(actor);
  std::vector<LayerCounts> by_stage;
  LayerCounts whole{};
  for (int stage = 0; stage < actor.pp; ++stage) {
    by_stage.push_back(stage_layers(model.spec, layout, stage));
    for (std::size_t k = 0; k < whole.size(); ++k) whole[k] += by_stage.back()[k];
  }
  RankVolumes volumes(static_cast<std::size_t>(rollout.tp));
  common_volumes = volumes;
  for (std::size_t b = 0; b < volumes.size(); ++b) {
    std::int64_t all = wanted.first[b] + wanted.last[b].total() + wanted.both[b];
    for (std::size_t k = 0; k < whole.size(); ++k) all += whole[k] * wanted.layer[k][b].total();
    for (int rank = 0; rank < actor.tp * actor.pp; ++rank) {
      const auto a = static_cast<std::size_t>(rank % actor.tp);
      const int stage = rank / actor.tp;
      const bool first = stage == 0, last = stage == actor.pp - 1;
      std::int64_t kept = (first ? common.first[a][b] : 0) + (last ? common.last[a][b] : 0) +
                          (first || last ? common.both[a][b] : 0);
      for (std::size_t k = 0; k < whole.size(); ++k) {
        kept += by_stage[static_cast<std::size_t>(stage)][k] * common.layer[k][a][b];
      }
      volumes[b].push_back(all - kept);
      common_volumes[b].push_back(kept);
    }
  }
  return volumes;
}

// Elements that the busiest holder sends: what the ranks of the period lack of its part, dealt
// evenly to the ranks of its class. Elements that several classes hold (norms, shared KV heads) are
// sent by one of them, so that all is scaled to what is received.
std::int64_t busiest_sender(const TakenParts& taken, const RankVolumes& common,
                            std::int64_t received) {
  const std::size_t classes = common.front().size();
  double most = 0, all = 0, ranks = 0;
  for (std::size_t holder = 0; holder < classes; ++holder) {
    double sent = 0;
    for (std::size_t part = 0; part < taken.size(); ++part) {
      for (std::size_t c = 0; c < classes; ++c) {
        if (holder == 0) ranks += as_double(taken[part][c]);
        if (c != holder) sent += as_double(taken[part][c] * common[part][holder]);
      }
    }
    all += sent;
    most = std::max(most, sent);
  }
  if (all <= 0) return 0;
  return static_cast<std::int64_t>(most / all * as_double(received) * as_double(classes) / ranks);
}

// FSDP within a node, each tensor cut along the dim that generation cuts: where the rollout's parts
// are dealt by rank list, a rank's shard lies within its part.
bool shards_within_parts(const PlanRequest& request, const Candidate& actor,
                         const Candidate& rollout) {
  return takes_rank_lists(request.engine) && !replicas_stay_near(request.cluster, rollout.tp) &&
         actor.tp == 1 && actor.pp == 1 && actor.cp == 1 && actor.dp_shard > 1 &&
         actor.gpus == rollout.gpus && rollout.pp == 1 && actor.dp_shard % rollout.tp == 0 &&
         actor.dp_shard <= request.cluster.gpus_per_node;
}

// Weights are final before anybody reads them, and nobody changes them before all have read.
Seconds barriers_of(const Assumptions& assumed, int ranks) {
  return 2 * barrier_seconds(group_shape(assumed.cluster(), ranks, 1), assumed.cluster(),
                             assumed.calibration());
}

}  // namespace

ReshardPricer::ReshardPricer(const Assumptions& assumed, ModelParts* actor, ModelParts& rollout)
    : assumed_(assumed), actor_(actor), rollout_(rollout) {}

const ShardOverlap& ReshardPricer::overlap(int training_tp, int rollout_tp, bool adapters) {
  const auto [entry, added] = overlaps_.try_emplace({training_tp, rollout_tp, adapters ? 1 : 0});
  if (added) {
    const RoleModel& model = adapters ? actor_->model() : rollout_.model();
    entry->second =
        shard_overlap(adapters ? *model.adapter_table : *model.table, training_tp, rollout_tp);
  }
  return entry->second;
}

// Cuts along different axes are independent: a rank keeps its part of what it wants. Counts no more
// than a rank may keep, so the bytes are an upper bound of the mean. Shards are dealt evenly, so
// that everybody sends what it receives.
BusiestBytes ReshardPricer::cut_evenly(const Candidate& actor, const Candidate& rollout,
                                       bool adapters) {
  const PlanRequest& request = assumed_.request;
  const RoleModel& model = actor_->model();
  const Elements wanted = fullest_stage(rollout_, rollout, adapters);
  Elements held;
  for (const StageClass& stage : actor_->stages(actor)) {
    const Elements own = held_of_stage(*actor_, actor, stage, adapters);
    if (held.total() == 0 || own.total() < held.total()) held = own;
  }
  const double whole = as_double(adapters ? model.adapter_table->elements() : model.elements);
  const double share =
      shards_within_parts(request, actor, rollout) ? 1 : as_double(wanted.total()) / whole;
  const double kept = as_double(held.total()) / shard_ranks(actor, request.traits) * share;
  const Bytes received{static_cast<std::int64_t>(as_double(wanted.total()) - kept) *
                       size_of(model.dtypes.wire)};
  return {received, received};
}

BusiestBytes ReshardPricer::bytes(const Candidate& actor, const Candidate& rollout) {
  const RoleModel& model = actor_->model();
  if (!rollout_.model().lora.moves_adapters()) return lacking(actor, rollout, false);
  if (model.adapter_table != nullptr) {
    Candidate unsharded = actor;  // as data-parallel ranks have adapters
    unsharded.dp_shard = 1;
    unsharded.zero = 0;
    const BusiestBytes adapters = lacking(unsharded, rollout, true);
    if (!rollout.offload.parameters) return adapters;
    const BusiestBytes weights =
        lacking(actor, rollout, false);  // unmapped, what was there is lost
    return {weights.received + adapters.received, weights.sent + adapters.sent};
  }
  // Every GPU gathers the adapters whole (verl's collect_lora_params).
  if (actor.gpus == 1) return {};
  const Bytes moved{adapter_count(*model.table, model.lora) * size_of(model.dtypes.wire)};
  return {moved, moved};
}

BusiestBytes ReshardPricer::lacking(const Candidate& actor, const Candidate& rollout,
                                    bool adapters) {
  const RoleModel& model = actor_->model();
  const std::int64_t wire = size_of(model.dtypes.wire);
  if (!plain(actor) || !plain(rollout) || rollout.pp > 1) {
    return cut_evenly(actor, rollout, adapters);
  }
  const bool strided = rollout_order(actor, rollout, assumed_.cluster()) == RankOrder::strided;
  const auto node = static_cast<int>(assumed_.cluster().gpus_per_node);
  const int slots = std::min(actor.gpus, node);
  const bool listed = !strided && takes_rank_lists(assumed_.request.engine) &&
                      !replicas_stay_near(assumed_.cluster(), rollout.tp) &&
                      actor.gpus == rollout.gpus && actor.gpus % slots == 0 &&
                      slots % rollout.tp == 0;
  const int order = strided ? -1 : listed ? slots : 0;
  const int cut = actor_->own_cut(actor) != nullptr ? 2 : 0;
  auto [entry, added] =
      volumes_.try_emplace({actor.tp, actor.pp, rollout.tp, order, cut + (adapters ? 1 : 0)});
  if (!added) return entry->second;
  RankVolumes common;
  const ShardElements wanted = adapters ? shard_elements(*model.adapter_table, rollout.tp, 1, 1)
                                        : rollout_.shards(rollout.tp, 1, 1);
  const RankVolumes volumes = rank_volumes(*actor_, wanted, overlap(actor.tp, rollout.tp, adapters),
                                           actor, rollout, common);
  const int classes = actor.tp * actor.pp;
  const int period = std::lcm(classes, rollout.tp);
  std::int64_t most = 0, sum = 0;
  TakenParts taken(volumes.size(), std::vector<std::int64_t>(static_cast<std::size_t>(classes), 0));
  for (int rank = 0; rank < period; ++rank) {
    const int j = strided ? rank % actor.tp / (actor.tp / rollout.tp) : rank % rollout.tp;
    const auto part = static_cast<std::size_t>(j), own = static_cast<std::size_t>(rank % classes);
    const std::int64_t received = volumes[part][own];
    ++taken[part][own];
    most = std::max(most, received);
    sum += received;
  }
  std::int64_t sent = busiest_sender(taken, common, sum);
  if (listed) {
    const ListedSwitch list = listed_volume(volumes, slots, most);
    const int ranks = std::lcm(slots, classes);
    if (std::pair(list.sum * period, list.busiest) < std::pair(sum * ranks, most)) {
      most = std::min(most, list.busiest);
      sent = busiest_sender(list.taken, common, list.sum);
    }
  }
  return entry->second = {Bytes{most * wire}, Bytes{sent * wire}};
}

Seconds ReshardPricer::seconds(const Candidate& actor, const Candidate& rollout, bool shared) {
  if (!shared) return seconds_apart(busiest_share(actor), rollout);
  const Seconds before = seconds_before_handover(assumed_, actor_->model().spec, actor);
  return moving_seconds(actor, rollout) + before + software(true);
}

Seconds ReshardPricer::software(bool shared) {
  std::optional<Seconds>& known = software_[shared ? 1 : 0];
  if (!known) known = handover_seconds(assumed_, rollout_.model(), shared);
  return *known * assumed_.calibration().handover.value;
}

Seconds ReshardPricer::moving_seconds(const Candidate& actor, const Candidate& rollout) {
  const Seconds barriers = barriers_of(assumed_, actor.gpus);
  if (gathers_whole(assumed_.request.engine) && !rollout_.model().lora.moves_adapters()) {
    return seconds_of_gather(actor, barriers);
  }
  const int peers = std::max(1, actor.tp * actor.pp / std::gcd(actor.tp, rollout.tp) - 1);
  const BusiestBytes moved = bytes(actor, rollout);
  const Traffic received = moved.received, sent = moved.sent;
  if (received <= 0) return {};
  const double local = share_of(assumed_.cluster().gpus_per_node, actor, assumed_.request);
  // Who holds single experts or shards may send all its copies to other nodes, and the fullest
  // stage has more of them than the mean.
  const auto layers = as_double(actor_->model().spec.layers);
  const bool single = local < 1 && (actor.ep > 1 || actor.dp_shard > 1 || rollout.pp > 1);
  const Traffic sent_far =
      single ? sent * std::ceil(layers / actor.pp) * actor.pp / layers : sent * (1 - local);
  const double under = 1 - leaf_share_of_copy(actor, assumed_.request);
  return barriers + travel_seconds(spread_over_copy(received, actor, assumed_.request), peers,
                                   {sent * local, sent_far, {}, {}, under * sent_far}, travel(),
                                   assumed_.cluster(), assumed_.calibration());
}

// Adapters that move alone are messages.
ReshardTravel ReshardPricer::travel() const {
  ReshardTravel travel = assumed_.request.reshard;
  if (rollout_.model().adapter_table != nullptr) travel.transport = ReshardTransport::send_recv;
  return travel;
}

Seconds ReshardPricer::seconds_of_gather(const Candidate& actor, Seconds barriers) {
  const RoleDTypes& dtypes = actor_->model().dtypes;
  const PlanRequest& request = assumed_.request;
  const Bytes whole =
      as_gathered(request.engine, dtypes, Bytes{rollout_.model().elements * size_of(dtypes.wire)});
  const GroupShape group = copy_group(actor, gathering_ranks(actor),
                                      dealt_order(actor, request.traits), assumed_.cluster());
  if (group.ranks == 1) return {};
  return barriers + whole_gather_seconds(whole, rollout_.model().bucket_bytes, group,
                                         assumed_.cluster(), assumed_.calibration());
}

// Checkpoint engines and NCCL's broadcast hand weights on, from receiver to receiver.
bool ReshardPricer::passed_on() const {
  const RoleModel& model = rollout_.model();
  const bool gathered = model.lora.moves_adapters() && model.adapter_table == nullptr;
  return gathers_whole(assumed_.request.engine) || gathered;
}

double ReshardPricer::busiest_share(const Candidate& actor) {
  if (passed_on() || actor_ == nullptr) return 0;
  const bool adapters = rollout_.model().adapter_table != nullptr;
  return busiest_link(given_by_stage(*actor_, actor, adapters), actor, assumed_.request);
}

ReshardPricer::Wanted ReshardPricer::wanted_apart(const Candidate& rollout) {
  const RoleModel& model = rollout_.model();
  const bool adapters = model.adapter_table != nullptr;
  const Traffic wire{as_double(size_of(model.dtypes.wire))};
  if (model.lora.moves_adapters() && !adapters) {
    const Traffic moved = as_double(adapter_count(*model.table, model.lora)) * wire;
    return {moved, rollout.gpus * moved};
  }
  const bool whole = gathers_whole(assumed_.request.engine) && !adapters;
  const Candidate held = whole ? whole_copies(rollout) : rollout;
  return {as_double(fullest_stage(rollout_, held, adapters).total()) * wire,
          held_in_all(rollout_, held, adapters) * wire};
}

Seconds ReshardPricer::seconds_apart(double share, const Candidate& rollout) {
  constexpr int kMessages = 8;
  const Seconds barriers = barriers_of(assumed_, 2 * rollout.gpus);
  const Wanted wanted = wanted_apart(rollout);
  ReshardTravel travel = this->travel();
  if (gathers_whole(assumed_.request.engine)) travel.bucket = rollout_.model().bucket_bytes;
  const ClusterSpec& cluster = assumed_.cluster();
  const auto moved = [&](Traffic bytes, double alone) {
    return cluster.nodes == 1 ? spread_within(bytes, cluster)
                              : MovedBytes{{}, bytes, {}, {}, alone * bytes};
  };
  return barriers +
         travel_seconds(moved(wanted.busiest, spare_uplink(rollout.gpus, cluster)), kMessages,
                        moved(share * wanted.all, 0), travel, cluster, assumed_.calibration()) +
         software(false);
}

}  // namespace tessera
