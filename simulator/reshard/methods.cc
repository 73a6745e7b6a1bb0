#include "simulator/reshard/methods.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/stopped.h"
#include "cost_models/layout/model_tensors.h"
#include "cost_models/layout/rank_assignment.h"
#include "planner/engines/engine.h"
#include "planner/pricing/role/full_gather.h"
#include "planner/pricing/role/groups.h"
#include "simulator/network/collective_links.h"
#include "simulator/reshard/arrivals.h"
#include "simulator/reshard/rank_shares.h"

namespace tessera {
namespace {

/// Share of the free memory that NeMo RL's buffer takes (NRL_REFIT_BUFFER_MEMORY_RATIO's default).
constexpr double kNemoShare = 0.3;
/// Ranges beyond which only their sums are worked out.
constexpr std::size_t kMostRanges = 4'000'000;

RankMap mapped(RankOrder order, const ParallelLayout& layout, const std::vector<int>& ranks) {
  Problems problems;
  RankMap map = make_rank_map(order, layout, ranks, nullptr, "", problems);
  TESSERA_CHECK(problems.empty());
  return map;
}

ParallelLayout zero3_layout(const ParameterTable& table, std::size_t ranks) {
  const auto shards = static_cast<int>(ranks);
  return {
      {.dp = shards, .dp_shard = shards}, shards > 1 ? 3 : 0, even_stages(table.model.layers, 1)};
}

bool fully_sharded(const ParallelLayout& layout) { return layout.dp_shard > 1; }

}  // namespace

struct ReshardComparison::State {
  explicit State(ReshardQuestion asked);

  MethodCost cost(ReshardMethod method, Bytes bucket) const;
  void move(ReshardMethod method, Bytes bucket, MethodCost& cost) const;

  // What a rank gathers whole, from a trainer of this map.
  void gather_whole(const RankMap& trainer, DType type, MethodCost& cost) const;
  void gather_at_once(const RankMap& trainer, MethodCost& cost) const;
  void gather_each_tensor(const RankMap& trainer, DType type, MethodCost& cost) const;
  void gather_micro_dp(MethodCost& cost) const;
  void gather_in_buckets(const RankMap& trainer, DType type, Bytes bucket, MethodCost& cost) const;
  void gather_in_halves(Bytes buffer, MethodCost& cost) const;
  void broadcast(Bytes bucket, MethodCost& cost) const;
  void move_missing(ReshardTransport transport, Bytes bucket, MethodCost& cost) const;
  std::vector<Arrival> arrivals(const ReshardTravel& travel) const;

  std::size_t ranks() const { return question.to_ranks.size(); }
  Bytes whole(DType type) const { return Bytes{elements * size_of(type)}; }
  Bytes needed() const;
  Bytes largest(DType type) const { return Bytes{largest_tensor * size_of(type)}; }
  double tensors() const;
  Seconds barriers() const;
  Seconds gathering(Traffic bytes, double pieces, GroupShape group) const;
  GroupShape model_group(const RankMap& trainer) const;

  ReshardQuestion question;
  bool apart = false;
  RankMap zero3;                   // the trainer's ranks, fully sharded
  RankMap sorted_to;               // the rollout's ranks, ascending
  std::optional<RankMap> strided;  // as HybridFlow deals them, where the degrees divide
  RankMap dealt;                   // as ours deals them
  std::int64_t elements = 0, largest_tensor = 0;
  ReshardPlan exact;   // of `dealt`
  bool listed = true;  // with its transfers
};

ReshardComparison::State::State(ReshardQuestion asked) : question(std::move(asked)) {
  std::vector<int> ascending = question.to_ranks;
  std::sort(ascending.begin(), ascending.end());
  apart = question.from.index_of(ascending.front()) < 0;
  std::vector<int> trainer = question.from.ranks;
  std::sort(trainer.begin(), trainer.end());
  zero3 = mapped(RankOrder::contiguous, zero3_layout(question.table, trainer.size()), trainer);
  sorted_to = mapped(RankOrder::contiguous, question.to, ascending);
  Problems problems;
  if (!apart && !fully_sharded(question.from.layout)) {
    strided =
        make_rank_map(RankOrder::strided, question.to, ascending, &question.from, "", problems);
    if (!problems.empty()) strided.reset();
  }
  const ReshardOptions options{.node_of = [node = question.cluster.gpus_per_node](int rank) {
    return static_cast<int>(rank / node);
  }};
  if (question.planned) {
    dealt = *question.planned;
  } else if (strided) {
    dealt = *strided;
  } else if (apart) {
    dealt = sorted_to;
  } else {
    dealt = mapped(RankOrder::list, question.to,
                   assign_ranks(question.table, question.from, question.to, ascending, options));
  }
  for (const Parameter& row : question.table.rows) {
    elements += row.elements();
    largest_tensor = std::max(largest_tensor, row.elements());
  }
  end_if_stopped(question.stop);
  listed = question.table.rows.size() * (question.from.ranks.size() + ranks()) <= kMostRanges;
  exact = listed
              ? plan_reshard(model_tensors(question.table, question.from, dealt, question.weights),
                             options)
              : reshard_totals(question.table, question.from, dealt, question.weights, options);
}

Bytes ReshardComparison::State::needed() const {
  std::int64_t most = 0;
  for (const RankShare& share : rank_shares(question.table, question.from, dealt)) {
    most = std::max(most, share.needed);
  }
  return Bytes{most * size_of(question.weights)};
}

// A file's tensors that are several rows of the table are loaded as one.
double ReshardComparison::State::tensors() const {
  return static_cast<double>(
      std::count_if(question.table.rows.begin(), question.table.rows.end(),
                    [](const Parameter& row) { return !row.slice || row.slice->offset == 0; }));
}

Seconds ReshardComparison::State::barriers() const {
  const auto all = static_cast<int>(ranks() + (apart ? question.from.ranks.size() : 0));
  return 2 * barrier_seconds(group_shape(question.cluster, all, 1), question.cluster,
                             question.calibration);
}

Seconds ReshardComparison::State::gathering(Traffic bytes, double pieces, GroupShape group) const {
  if (group.ranks <= 1) return {};
  return barriers() + gather_seconds(bytes, pieces, group, question.cluster, question.calibration);
}

// How a trainer's ranks are dealt, where they follow one another from a node's first one on.
std::optional<RankOrder> order_of(const RankMap& trainer, std::int64_t per_node) {
  const int first = trainer.ranks.front();
  const auto count = static_cast<int>(trainer.ranks.size());
  if (first % per_node != 0 && first / per_node != (first + count - 1) / per_node) return {};
  std::vector<int> ascending(trainer.ranks.size());
  std::iota(ascending.begin(), ascending.end(), first);
  for (const RankOrder order : {RankOrder::contiguous, RankOrder::megatron}) {
    if (trainer == mapped(order, trainer.layout, ascending)) return order;
  }
  return {};
}

// The ranks over which one copy of the weights lies.
GroupShape ReshardComparison::State::model_group(const RankMap& trainer) const {
  Candidate candidate;
  candidate.degrees() = trainer.layout.degrees();
  candidate.gpus = static_cast<int>(trainer.ranks.size());
  candidate.zero = trainer.layout.zero;
  const int together = gathering_ranks(candidate);
  if (const auto order = order_of(trainer, question.cluster.gpus_per_node)) {
    return copy_group(candidate, together, *order, question.cluster);
  }
  std::vector<int> copy;
  for (std::size_t i = 0; i < trainer.ranks.size(); ++i) {
    const RankCoord& at = trainer.coords[i];
    if (at.dp_replicate == 0 && (at.cp == 0 || trainer.layout.zero == 3)) {
      copy.push_back(trainer.ranks[i]);
    }
  }
  return static_cast<int>(copy.size()) == together ? shape_of(question.cluster, copy)
                                                   : group_shape(question.cluster, together, 1);
}

void ReshardComparison::State::gather_whole(const RankMap& trainer, DType type,
                                            MethodCost& cost) const {
  for (const RankShare& share : rank_shares(question.table, trainer, sorted_to)) {
    const Bytes received{(elements - share.held) * size_of(type)};
    const bool reused = type == question.weights;  // shards of another type are no weights
    const std::int64_t beside = reused ? share.held - share.both : share.held;
    cost.received = cost.sent = std::max(cost.received, received);
    cost.total_received += received;
    cost.redundant = std::max(cost.redundant, Bytes{beside * size_of(type)});
  }
}

void ReshardComparison::State::gather_micro_dp(MethodCost& cost) const {
  if (!strided || question.from.layout.ep > 1) {
    cost.unusable = "needs a trainer cut by tp and pp alone, by multiples of the rollout's";
    return;
  }
  for (const RankShare& share : rank_shares(question.table, question.from, *strided)) {
    const std::int64_t element = size_of(question.weights);
    const Bytes received{(share.needed - share.both) * element};
    cost.received = cost.sent = std::max(cost.received, received);
    cost.total_received += received;
    cost.peak = std::max(cost.peak, Bytes{share.needed * element});
    cost.redundant = std::max(cost.redundant, Bytes{(share.held - share.both) * element});
  }
  GroupShape shape;
  for (const std::vector<int>& group : micro_dp_groups(question.from, *strided)) {
    shape = widest(shape, shape_of(question.cluster, group));
  }
  cost.wire = gathering(cost.peak, 1, shape);
}

// What engines that gather every tensor hold: the rollout's weights, a bucket and one tensor.
void ReshardComparison::State::gather_in_buckets(const RankMap& trainer, DType type, Bytes bucket,
                                                 MethodCost& cost) const {
  gather_whole(trainer, type, cost);
  cost.bucket = std::max(bucket, largest(type));
  cost.peak = needed() + cost.bucket + largest(type);
  const GroupShape group = model_group(trainer);
  if (group.ranks <= 1) return;
  cost.wire = barriers() + whole_gather_seconds(whole(type), cost.bucket, group, question.cluster,
                                                question.calibration);
}

// The trainer gathers bucket by bucket onto the sender, whose broadcast of the bucket before goes
// on meanwhile.
void ReshardComparison::State::broadcast(Bytes bucket, MethodCost& cost) const {
  const Bytes all = whole(question.weights);
  cost.bucket = std::max(bucket, largest(question.weights));
  cost.received = cost.sent = all;
  cost.total_received = all * static_cast<std::int64_t>(ranks());
  cost.peak = needed() + cost.bucket * 2;
  const GroupShape receivers = shape_of(question.cluster, question.to_ranks);
  const bool one_node = question.cluster.nodes == 1;
  const GroupShape group{receivers.ranks + 1, one_node ? 1 : receivers.nodes + 1,
                         receivers.over_switch, receivers.over_socket};
  const double rounds = rounds_of(all, cost.bucket);
  const Seconds sending =
      rounds * collective_seconds(Collective::broadcast, Traffic{all} / rounds, group,
                                  question.cluster, question.calibration);
  const Seconds gathered = gathering(all, rounds, model_group(question.from));
  cost.wire = barriers() + std::max(sending, gathered) + std::min(sending, gathered) / rounds;
}

std::vector<Arrival> ReshardComparison::State::arrivals(const ReshardTravel& travel) const {
  const std::array element{Bytes{size_of(question.weights)}};
  const std::array machines{Machines{question.cluster, question.calibration}};
  const auto all = static_cast<int>(ranks() + (apart ? question.from.ranks.size() : 0));
  if (listed) return arrivals_of(exact.transfers, element, all, travel, machines);
  // Too many ranges: the busiest rank's bytes, from other nodes where there are any.
  constexpr int kMessages = 8;
  const auto moved = [&](Bytes bytes) {
    const bool far = question.cluster.nodes > 1;
    return far ? MovedBytes{{}, bytes} : spread_within(bytes, question.cluster);
  };
  return {
      {dealt.ranks.front(), exact.bytes_received.value,
       barriers() + travel_seconds(moved(exact.bytes_received), kMessages, moved(exact.bytes_sent),
                                   travel, question.cluster, question.calibration)}};
}

void ReshardComparison::State::move_missing(ReshardTransport transport, Bytes bucket,
                                            MethodCost& cost) const {
  const ReshardTravel travel{transport, bucket};
  cost.bucket = bucket;
  cost.received = exact.bytes_received;
  cost.sent = exact.bytes_sent;
  cost.total_received = exact.total_received;
  for (const RankShare& share : rank_shares(question.table, question.from, dealt)) {
    const std::int64_t element = size_of(question.weights);
    cost.peak = std::max(cost.peak, Bytes{share.needed * element});
    cost.redundant = std::max(cost.redundant, Bytes{(share.held - share.both) * element});
  }
  cost.peak += std::min(travel_stages(travel), cost.received + cost.sent);
  for (const Arrival& arrival : arrivals(travel)) {
    cost.wire = std::max(cost.wire, arrival.seconds);
  }
}

namespace {

// Software of engines, from what was measured of them (planner/engines).
HandoverTraits handover_of(ReshardMethod method, bool fully_sharded,
                           const std::optional<PlannedGather>& planned) {
  switch (method) {
    case ReshardMethod::verl_buckets:
    case ReshardMethod::broadcast:
      if (planned) return planned->handover;
      return traits_of(fully_sharded ? "verl" : "verl-megatron").handover;
    case ReshardMethod::full_tensor:
      return {.tensor = traits_of("verl").handover.tensor};
    case ReshardMethod::per_tensor:
    case ReshardMethod::nemo_buckets:  // both convert by Megatron-Bridge
      return {.tensor = traits_of("verl-megatron").handover.tensor};
    default:
      return {};
  }
}

bool needs_shared_ranks(ReshardMethod method) { return method < ReshardMethod::broadcast; }

}  // namespace

void ReshardComparison::State::gather_at_once(const RankMap& trainer, MethodCost& cost) const {
  gather_whole(trainer, question.weights, cost);
  cost.peak = whole(question.weights);
  cost.wire = gathering(cost.peak, 1, model_group(trainer));
}

void ReshardComparison::State::gather_each_tensor(const RankMap& trainer, DType type,
                                                  MethodCost& cost) const {
  gather_whole(trainer, type, cost);
  cost.peak = needed() + largest(type);
  cost.wire = gathering(whole(type), tensors(), model_group(trainer));
}

void ReshardComparison::State::gather_in_halves(Bytes buffer, MethodCost& cost) const {
  const auto free = static_cast<double>(
      std::max<std::int64_t>(0, (question.cluster.device.memory - needed()).value));
  if (buffer == 0) buffer = Bytes{static_cast<std::int64_t>(kNemoShare * free)};
  gather_in_buckets(question.from, question.weights, buffer / 2, cost);
  cost.peak += cost.bucket;  // the other half
}

void ReshardComparison::State::move(ReshardMethod method, Bytes bucket, MethodCost& cost) const {
  const bool sharded = fully_sharded(question.from.layout);
  const PlannedGather verls = question.gather.value_or(PlannedGather{.master_weights = sharded});
  const RankMap kept = kept_by_trainer(question);
  const Bytes verl = bucket > 0 ? bucket : verls.bucket > 0 ? verls.bucket : WholeGather{}.bucket;
  switch (method) {
    case ReshardMethod::gather_all:
      return gather_at_once(zero3, cost);
    case ReshardMethod::gather_model:
      return gather_at_once(question.from, cost);
    case ReshardMethod::micro_dp:
      return gather_micro_dp(cost);
    case ReshardMethod::full_tensor:
      return gather_each_tensor(sharded ? kept : zero3, question.master, cost);
    case ReshardMethod::per_tensor:
      return gather_each_tensor(question.from, question.weights, cost);
    case ReshardMethod::verl_buckets:
      return gather_in_buckets(kept, verls.master_weights ? question.master : question.weights,
                               verl, cost);
    case ReshardMethod::nemo_buckets:
      return gather_in_halves(bucket, cost);
    case ReshardMethod::broadcast:
      return broadcast(verl, cost);
    case ReshardMethod::copy_engine:
      return move_missing(ReshardTransport::copy_engine, bucket, cost);
    case ReshardMethod::window:
      return move_missing(ReshardTransport::window, bucket, cost);
    case ReshardMethod::send_recv:
      return move_missing(ReshardTransport::send_recv, bucket, cost);
  }
}

MethodCost ReshardComparison::State::cost(ReshardMethod method, Bytes bucket) const {
  end_if_stopped(question.stop);
  MethodCost cost{.method = method, .overlap = overlap_of(method)};
  if (needs_shared_ranks(method) && apart) {
    cost.unusable = "needs the trainer's GPUs";
    return cost;
  }
  move(method, bucket, cost);
  if (!cost.unusable.empty()) return cost;
  cost.fits = cost.peak + cost.redundant <= question.cluster.device.memory;
  const HandoverTraits by =
      handover_of(method, fully_sharded(question.from.layout), question.gather);
  const bool far = method == ReshardMethod::broadcast;
  cost.software = far ? tensors() * by.broadcast_tensor : by.call + tensors() * by.tensor;
  cost.software = cost.software * question.calibration.handover.value;
  cost.total = cost.wire + cost.software;
  if (method == ReshardMethod::nemo_buckets) {  // a half is loaded while the other fills
    const double rounds = rounds_of(whole(question.weights), cost.bucket);
    cost.total = std::max(cost.wire, cost.software) + std::min(cost.wire, cost.software) / rounds;
  }
  return cost;
}

ReshardComparison::ReshardComparison(ReshardQuestion question)
    : state_(std::make_unique<const State>(std::move(question))) {}
ReshardComparison::~ReshardComparison() = default;

MethodCost ReshardComparison::cost(ReshardMethod method) const {
  return state_->cost(method, state_->question.bucket);
}
MethodCost ReshardComparison::cost(ReshardMethod method, Bytes bucket) const {
  return state_->cost(method, bucket);
}
std::vector<MethodCost> ReshardComparison::all() const {
  std::vector<MethodCost> costs;
  for (const ReshardMethod method : kReshardMethods) costs.push_back(cost(method));
  return costs;
}
const ReshardQuestion& ReshardComparison::question() const { return state_->question; }
bool ReshardComparison::apart() const { return state_->apart; }
const RankMap& ReshardComparison::dealt() const { return state_->dealt; }
Bytes ReshardComparison::model_bytes() const { return state_->whole(state_->question.weights); }

}  // namespace tessera
