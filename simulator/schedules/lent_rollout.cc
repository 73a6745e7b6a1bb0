#include "simulator/schedules/lent_rollout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <set>
#include <span>

#include "cost_models/collective.h"
#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/plan_pricing.h"
#include "planner/request/plan_request.h"
#include "simulator/engine/memory_over_time.h"
#include "simulator/engine/pipeline_tasks.h"
#include "simulator/rollout/draw_lengths.h"

namespace tessera {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

std::string gib(std::int64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text.data();
}

}  // namespace

LentRollout::LentRollout(const Plan& plan, const Calibration& calibration,
                         const SimulationOptions& options, const CallRanks& ranks)
    : plan_(plan), costs_(plan, calibration), calibration_(calibration), seed_(options.seed) {
  const auto gen = ranks.find(Phase::gen);
  if (gen != ranks.end()) rollout_ = gen->second;
  std::set<int> trainers;
  for (const auto& [phase, own] : ranks) {
    if (phase != Phase::reshard) trainers.insert(own.begin(), own.end());
  }
  for (const int rank : trainers) {
    if (!std::binary_search(rollout_.begin(), rollout_.end(), rank)) trainers_.push_back(rank);
  }
  measure(calibration, options);
}

// What every rank holds between its calls and at most, and how much of it may wait elsewhere.
void LentRollout::measure(const Calibration& calibration, const SimulationOptions& options) {
  SimulationOptions one = options;
  one.steps = 1;
  const IterationTasks tasks = build_iteration(plan_, calibration, one, costs_);
  use_.resize(static_cast<std::size_t>(plan_.world_size()));
  for (const MemorySample& sample : memory_over_time(plan_, costs_, tasks, run(tasks).runs)) {
    Use& use = use_[at(sample.rank)];
    use.peak = std::max<std::int64_t>(use.peak, sample.use.total());
    if (sample.time_ns > 0) continue;
    use.resident = sample.use.total();
    use.parkable = sample.use.optimizer + sample.use.master_weights;
  }
  for (std::size_t rank = 0; rank < use_.size(); ++rank) {
    use_[rank].limit = usable_memory_of_rank(plan_, calibration, static_cast<int>(rank));
  }
  const RolePlan* const actor = plan_.find(Role::actor);
  if (actor == nullptr) return;
  const RoleOperations& operations = costs_.of(Role::actor).operations();
  for (int stage = 0; stage < actor->layout.pp; ++stage) {
    const std::int64_t elements = operations.elements(stage).total() / operations.shard_ranks();
    copy_bytes_ = std::max(copy_bytes_, elements * size_of(actor->dtypes.wire));
  }
}

std::string LentRollout::why_no_copy() const {
  const RolePlan* const actor = plan_.find(Role::actor);
  if (actor == nullptr) return {};
  for (const int rank : actor->ranks) {
    const Use& use = use_[at(rank)];
    if (use.peak + copy_bytes_ <= use.limit) continue;
    return "the copy of its weights that the actor keeps, " + gib(copy_bytes_) +
           " a rank, does not fit: rank " + std::to_string(rank) + " holds " + gib(use.peak) +
           " of " + gib(use.limit);
  }
  return {};
}

std::string LentRollout::why_not(std::int64_t beside) {
  const RolePlan* const rollout = plan_.find(Role::rollout);
  if (rollout == nullptr || rollout_.empty()) return "no call generates responses";
  if (!plan_.cluster.groups.empty()) return "the cluster has several GPU types";
  const int size = rollout->layout.tp * rollout->layout.pp;
  share_ = {.replicas = static_cast<int>(trainers_.size()) / size};
  if (share_.replicas == 0) {
    return "the trainers' " + std::to_string(trainers_.size()) + " ranks hold no replica of " +
           std::to_string(size);
  }
  MemoryUse most;
  for (int stage = 0; stage < rollout->layout.pp; ++stage) {
    const MemoryUse use = costs_.of(Role::rollout).memory(Phase::gen, stage, 0);
    if (use.total() > most.total()) most = use;
  }
  const std::int64_t fixed = most.total() - most.kv_cache;
  const Workload& workload = plan_.workload;
  const double sequences = static_cast<double>(rollout->batching.max_sequences);
  const double longest = static_cast<double>(longest_sequence(workload));
  const double cached = costs_.of(Role::rollout).operations().cache_tokens();
  const bool paged = traits_of(plan_.engine).decode.block_tokens > 0;
  const std::int64_t prompt = paged ? workload.prompt_tokens : workload.longest_prompt();
  const double slot = static_cast<double>(prompt + workload.response_tokens.max);
  const double whole = cached > 0 ? cached : sequences * slot;  // tokens
  const double token = static_cast<double>(most.kv_cache.value) / whole;
  double tokens = whole;
  for (int i = 0; i < share_.replicas * size; ++i) {
    const Use& use = use_[at(trainers_[at(i)])];
    auto room = static_cast<double>(use.limit - use.resident - beside - fixed);
    if (room < token * whole && use.parkable > 0) {
      room += static_cast<double>(use.parkable);
      share_.parked_bytes = std::max(share_.parked_bytes, use.parkable);
    }
    tokens = std::min(tokens, std::floor(room / token));
    if (tokens >= longest) continue;
    return "rank " + std::to_string(trainers_[at(i)]) + " holds " +
           gib(use.resident + beside - share_.parked_bytes) + " of " + gib(use.limit) +
           " between its calls, and a replica needs " +
           gib(fixed + static_cast<std::int64_t>(token * longest)) + " for one sequence";
  }
  share_.sequences = std::min(rollout->batching.max_sequences,
                              static_cast<std::int64_t>(cached > 0 ? sequences : tokens / slot));
  cache_tokens_ = cached > 0 ? tokens : 0;
  const double parked =
      host_copy_seconds(Traffic{static_cast<double>(share_.parked_bytes)}, calibration_);
  share_.to_s = weights_seconds(most.weights) + parked;
  share_.back_s = parked;  // the weights are dropped: what is trained never left
  known_.clear();
  return {};
}

// All of a rank's weights from the ranks of one of the actor's replicas.
double LentRollout::weights_seconds(Bytes weights) {
  const RolePlan& rollout = *plan_.find(Role::rollout);
  const Seconds handed = costs_.evaluator().handover_seconds(candidate_of(plan_, rollout), true);
  const RolePlan* const actor = plan_.find(Role::actor);
  if (actor == nullptr) return handed;
  std::set<std::int64_t> nodes;
  const std::vector<int> senders = costs_.of(Role::actor).replica_ranks(0);
  for (const int rank : senders) nodes.insert(rank / plan_.cluster.gpus_per_node);
  const double inside = 1 / static_cast<double>(nodes.size());
  const Traffic all{static_cast<double>(weights.value)};
  return handed + reshard_seconds(inside * all, (1 - inside) * all,
                                  static_cast<int>(senders.size()), plan_.cluster, calibration_);
}

// Of prompts `first` to `first + prompts` - 1, dealt over the rollout's replicas or those lent.
std::int64_t LentRollout::generation_ns(int draw, std::int64_t first, std::int64_t prompts,
                                        bool lent) {
  if (prompts == 0) return 0;
  const RoleCosts& costs = costs_.of(Role::rollout);
  const RolePlan& role = costs.role();
  const Engine& engine = engine_named(plan_.engine);
  Workload part = plan_.workload;
  part.prompts_per_step = prompts;
  const auto lengths = draw_lengths(plan_.workload, seed_ + static_cast<std::uint64_t>(draw), 0);
  const auto mine =
      std::span(lengths).subspan(static_cast<std::size_t>(first * part.samples_per_prompt),
                                 static_cast<std::size_t>(prompts * part.samples_per_prompt));
  const ReplicaBatching batching{
      .prompt_tokens = part.prompt_tokens,
      .samples_per_prompt = part.samples_per_prompt,
      .max_sequences = lent ? share_.sequences : role.batching.max_sequences,
      .prefill_tokens = role.batching.prefill_tokens,
      .stages = role.layout.pp,
      .refills_alone = engine.traits.decode.refills_alone,
      .cache_tokens = lent ? cache_tokens_ : costs.operations().cache_tokens(),
      .block_tokens = engine.traits.decode.block_tokens};
  const int replicas = lent ? share_.replicas : role.layout.dp;
  ParallelLayout layout = role.layout;
  layout.dp = replicas;
  const ReplicaDeal dealt{.workload = part, .dealing = engine.prompts, .layout = layout};
  double most = 0;
  for (const auto& segments : simulate_replicas(mine, dealt, batching, costs.rollout())) {
    if (!segments.empty()) most = std::max(most, segments.back().end_s);
  }
  return nanoseconds(costs.call_seconds() + costs.software_seconds(CallKind::generate) + most);
}

CallTimes LentRollout::times(const CallTimes& whole, std::int64_t prompts) {
  CallTimes result = whole;
  if (prompts == 0) return result;
  const int size = plan_.find(Role::rollout)->layout.tp * plan_.find(Role::rollout)->layout.pp;
  const std::ptrdiff_t lent = std::ptrdiff_t{share_.replicas} * size;
  result.lent_ranks.assign(trainers_.begin(), trainers_.begin() + lent);
  for (std::size_t draw = 0; draw < whole.draws.size(); ++draw) {
    const auto [known, fresh] = known_.try_emplace({static_cast<int>(draw), prompts});
    if (fresh) {
      const std::int64_t own = plan_.workload.prompts_per_step - prompts;
      known->second = {generation_ns(static_cast<int>(draw), 0, own, false),
                       generation_ns(static_cast<int>(draw), own, prompts, true)};
    }
    result.draws[draw][Phase::gen] = known->second.first;
    result.lent_ns.push_back(known->second.second + nanoseconds(share_.to_s + share_.back_s));
  }
  return result;
}

LentShare LentRollout::share(std::int64_t prompts) const {
  LentShare share = share_;
  share.prompts = prompts;
  return share;
}

}  // namespace tessera
