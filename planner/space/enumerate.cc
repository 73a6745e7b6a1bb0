// Every way to run a role on a number of GPUs.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <numeric>

#include "cost_models/packing.h"
#include "cost_models/spec/context_parallel.h"
#include "cost_models/spec/expert_parallel.h"
#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/request/candidate.h"
#include "planner/request/request.h"
#include "planner/request/settings_of_candidate.h"
#include "planner/space/context_degrees.h"
#include "planner/space/degree_limits.h"
#include "planner/space/distinct_limits.h"
#include "planner/space/divisors.h"
#include "planner/space/layout_space.h"

namespace tessera {
namespace {

// Larger micro-batches of a rank were never run, and gain less than 0.1 % of a 7B's call.
constexpr std::int64_t kMostTokens = 131072;
// Hidden states of a longest sequence from which on sequence parallelism is no slower: one
// collective instead of two saves less than the norms of whole sequences take.
constexpr Bytes kScatteredStates{16LL << 20};

class Enumeration {
 public:
  Enumeration(const PlanRequest& request, const Capabilities& table, DistinctLimits& limits,
              Role role, int gpus)
      : request_(request),
        table_(table),
        limits_(limits),
        model_(model_of(request, role)),
        shape_(layer_to_cut(model_)),
        prompts_(engine_named(request.engine).prompts),
        per_node_(static_cast<int>(request.cluster.gpus_per_node)),
        rollout_(role == Role::rollout),
        served_(rollout_ || (role == Role::reward && table.serving.reward)),
        trained_(is_trained(request.workload, role)),
        fixed_zero_(request.fixed.find(role, Field::zero).has_value()),
        replicated_adapters_(request.traits.adapters.replicated && request.lora.contains(role)),
        context_shards_(request.traits.shards.over_context),
        batch_(dealt_to_replicas(request.workload, prompts_, role)) {
    next_.role = role;
    next_.gpus = gpus;
    const auto tokens = request.fixed.find(role, Field::tokens);
    const auto update = request.fixed.find(role, Field::update_tokens);
    const Bytes states{longest_sequence(request.workload) * model_.hidden *
                       size_of(dtypes_of(request, role).param)};
    tries_whole_ = states <= kScatteredStates ||
                   request.fixed.find(role, Field::sequence_parallel).value_or(1) == 0;
    one_limit_ = role == Role::critic && table.training.one_critic_limit;
    limits_apart_ = trained_ && !one_limit_ && !tokens && !update;
    if (update && !one_limit_ && update != tokens) next_.update_tokens = *update;
  }

  std::vector<LayoutSpace> run() {
    if (!fixed(Field::gpus, next_.gpus)) return {};
    for (const int tp : divisors_.of(std::gcd(next_.gpus, per_node_))) {
      if (tp > model_.query_heads || tp > model_.vocab || !fixed(Field::tp, tp)) continue;
      if (shape_.ffn > 0 && tp > shape_.ffn) continue;
      if (!cuts_heads(tp) || !server_holds(tp) || (!served_ && tp > table_.training.most_tp))
        continue;
      next_.tp = tp;
      const bool can_scatter = table_.training.sequence_parallel && tp > 1 && !served_;
      for (const bool scattered : {true, false}) {
        if (scattered ? !can_scatter : can_scatter && !tries_whole_) continue;
        next_.sequence_parallel = scattered;
        if (fixed(Field::sequence_parallel, scattered ? 1 : 0)) contexts();
      }
    }
    return std::move(found_);
  }

 private:
  void contexts() {
    for (const int cp : context_degrees(next_.gpus / next_.tp)) {
      if (!fixed(Field::cp, cp)) continue;
      next_.cp = cp;
      for (const bool ulysses : {false, true}) {
        if (cp == 1 ? ulysses : !runs_context(next_.tp, cp, ulysses)) continue;
        next_.ulysses = ulysses;
        pipelines();
      }
    }
  }

  bool fixed(Field field, std::int64_t value) const {
    return request_.fixed.allows(next_.role, field, value);
  }

  bool runs_context(int tp, int cp, bool ulysses) const {
    return table_.training.ulysses.value_or(ulysses) == ulysses &&
           fixed(Field::context, ulysses ? 1 : 0) &&
           context_refusal(model_, {{.tp = tp, .cp = cp}, 0, {}, false, ulysses}).empty();
  }

  bool cuts_heads(int tp) const {
    return divides_heads(served_ ? table_.serving.heads : table_.training.heads, model_, tp);
  }

  bool server_holds(int tp) const {
    const auto refusals = rollout_ ? table_.serving.refusals : nullptr;
    return refusals == nullptr || refusals(model_, {{.tp = tp}}).empty();
  }

  std::vector<int> context_degrees(int ranks) {
    if (!table_.training.context_parallel || served_) return {1};
    if (const auto asked = request_.fixed.find(next_.role, Field::cp)) {
      if (ranks % *asked != 0) return {};
      return {static_cast<int>(*asked)};
    }
    return divisors_.of(ranks);
  }

  bool tries(int dp) const {
    if (request_.fixed.find(next_.role, Field::cp)) return true;
    const TrainingLimits& can = table_.training;
    return tries_split(request_.workload,
                       {.gpus = next_.gpus,
                        .tp = next_.tp,
                        .cp = next_.cp,
                        .dp = dp,
                        .batch = batch_,
                        .deepest = std::min<std::int64_t>(can.most_pp, model_.layers),
                        .alone = can.most_tp == 1 && can.most_pp == 1});
  }

  void pipelines() {
    const int most_pp = served_ ? table_.serving.most_pp : table_.training.most_pp;
    for (const int pp : divisors_.of(next_.gpus / next_.tp / next_.cp)) {
      const int dp = next_.gpus / next_.tp / next_.cp / pp;
      const bool dealt = rollout_ ? dp <= batch_ : batch_ % dp == 0;
      if (pp > most_pp || pp > model_.layers || !dealt || !fixed(Field::pp, pp) ||
          !fixed(Field::dp, dp) || !tries(dp)) {
        continue;
      }
      next_.pp = pp;
      next_.dp = dp;
      batches_ = rollout_ ? slots() : token_limits();
      for (const int vpp : virtual_stages(pp)) {
        const InterleavedCount rule = request_.traits.pipeline.interleaved;
        if (!fixed(Field::vpp, vpp) || !fills_rounds(rule, pp, vpp, batch_ / dp)) continue;
        next_.vpp = vpp;
        for (const int head : head_layers(pp)) {
          if (!fixed(Field::head_layers, head)) continue;
          next_.head_layers = head;
          if (stages_allowed()) experts();
        }
      }
      next_.vpp = 1;
      next_.head_layers = 0;
    }
  }

  // Chunks must be equal for the interleaved schedule to gain anything.
  std::vector<int> virtual_stages(int pp) const {
    std::vector<int> counts = {1};
    if (!table_.training.virtual_stages || pp == 1 || served_) return counts;
    for (int v = 2; v <= kMostVirtualStages; ++v) {
      const std::int64_t chunks = std::int64_t{pp} * v;
      if (chunks <= model_.layers && model_.layers % chunks == 0) counts.push_back(v);
    }
    return counts;
  }

  // A cut that counts the head as the layers that it costs, where that changes anything.
  std::vector<int> head_layers(int pp) const {
    std::vector<int> counts = {0};
    if (served_ || pp == 1 || next_.vpp > 1 || model_.head == ModelHead::value) {
      return counts;
    }
    const double width = static_cast<double>(shape_.ffn) +
                         static_cast<double>(shape_.experts_per_token * shape_.expert_ffn);
    const double layer = 4.0 * static_cast<double>(model_.query_heads * shape_.key_dim) +
                         (1.0 + static_cast<double>(shape_.up_parts())) * width;
    const auto head = static_cast<int>(std::lround(static_cast<double>(model_.vocab) / layer));
    if (head > 0 && head < model_.layers &&
        cut_stages(model_.layers, pp, 1, head) != cut_stages(model_.layers, pp, 1, 0)) {
      counts.push_back(head);
    }
    return counts;
  }

  // Stages as Megatron states them. Where all roles share their GPUs the reference inherits the
  // actor's stages, so that uneven ones cannot be chosen apart: they are all equal there.
  bool stages_allowed() const {
    const std::int64_t chunks = std::int64_t{next_.pp} * next_.vpp;
    if (!table_.training.equal_middle_stages || served_ || chunks == 1) return true;
    if (table_.pools.colocated || next_.vpp > 1) {
      return next_.head_layers == 0 && model_.layers % chunks == 0;
    }
    const auto stages = cut_stages(model_.layers, next_.pp, 1, next_.head_layers);
    return std::adjacent_find(stages.begin() + 1, stages.end() - 1,
                              [](const LayerRange& a, const LayerRange& b) {
                                return a.last - a.first != b.last - b.first;
                              }) == stages.end() - 1;
  }

  // Other inference engines cut experts as they cut the rest, or spread whole ones over replicas.
  bool experts_allowed() const {
    const ServedExperts spread = served_ ? table_.serving.experts : ServedExperts::any_degree;
    const ParallelLayout cut{{.tp = next_.tp, .ep = next_.ep, .etp = next_.etp}};
    if (spread == ServedExperts::any_part) return served_expert_refusal(model_, cut).empty();
    if (spread == ServedExperts::any_degree) return !served_ || cut.etp == 1 || cut.etp == cut.tp;
    return (cut.ep == 1 && cut.etp == cut.tp) || (cut.ep % cut.tp == 0 && cut.etp == 1);
  }

  // What the engine asks of trained experts (ExpertRule).
  bool runs_experts(int zero, int dp_shard = 1) const {
    if (served_ || table_.training.experts == nullptr) return true;
    return table_.training
        .experts(model_, {{.tp = next_.tp,
                           .cp = next_.cp,
                           .dp = next_.dp,
                           .dp_shard = dp_shard,
                           .ep = next_.ep,
                           .etp = next_.etp},
                          zero,
                          {},
                          next_.sequence_parallel})
        .empty();
  }

  void experts() {
    next_.ep = next_.etp = 1;
    const int ranks = next_.tp * next_.cp * next_.dp;
    const bool parallel = served_ ? table_.serving.experts != ServedExperts::together
                                  : table_.training.expert_parallel;
    if (shape_.experts == 0 || !parallel) {
      if (fixed(Field::ep, 1) && fixed(Field::etp, 1)) sharding();
      return;
    }
    for (const int etp : divisors_.of(next_.tp)) {
      if (!fixed(Field::etp, etp)) continue;
      next_.etp = etp;
      for (const int ep : divisors_.of(ranks / etp)) {
        if (shape_.experts % ep != 0 || !fixed(Field::ep, ep)) continue;
        next_.ep = ep;
        if (experts_allowed()) sharding();
      }
    }
    next_.ep = next_.etp = 1;
  }

  void sharding() {
    if (rollout_) return add(rollout_choices());
    std::vector<MemoryChoice> choices;  // of all stages but FSDP
    for (const int zero : table_.training.zero) {
      const bool states = trained_ && !replicated_adapters_;
      const bool held = zero == 0 || (states && (next_.dp * next_.cp > 1 || fixed_zero_));
      if (zero != 3 && held && fixed(Field::zero, zero) && fixed(Field::dp_shard, 1) &&
          runs_experts(zero)) {
        std::ranges::copy(choices_of(zero), std::back_inserter(choices));
      }
    }
    add(std::move(choices));
    const int mesh = next_.dp * (context_shards_ ? next_.cp : 1);
    if (!table_.training.fully_sharded || mesh == 1 || served_ || !fixed(Field::zero, 3) ||
        std::count(table_.training.zero.begin(), table_.training.zero.end(), 3) == 0) {
      return;
    }
    for (const int shard : shards()) {
      if (!fixed(Field::dp_shard, shard) || !runs_experts(3, shard)) continue;
      next_.dp_shard = shard;
      add(choices_of(3));
    }
    next_.dp_shard = 1;
  }

  void add(std::vector<MemoryChoice> choices) {
    if (choices.empty() || batches_.empty()) return;
    const PoolShare share = rollout_ ? pool_share(request_, prompts_, next_) : PoolShare::even;
    found_.push_back({next_, std::move(choices), batches_, limits_apart_, share});
  }

  // FSDP over all replicas, or over those of one node (HSDP).
  std::vector<int> shards() const {
    std::vector<int> counts = {next_.dp};
    const int node = per_node_ / (next_.tp * next_.cp * next_.pp);
    if (node > 1 && node < next_.dp && next_.dp % node == 0) counts.push_back(node);
    return counts;
  }

  const std::vector<MemoryChoice>& choices_of(int zero) {
    std::vector<MemoryChoice>& choices = choices_[static_cast<std::size_t>(zero)];
    if (!choices.empty()) return choices;
    std::vector<Offload> offloads = {{}};
    // With adapters the reference is the actor itself.
    const bool on_host = table_.offload.reference_on_host && next_.role == Role::reference &&
                         !request_.lora.contains(Role::reference);
    if (on_host) {
      offloads = {{.parameters = true}};
    } else if (table_.offload.trained) {
      if (trained_) offloads.push_back({.optimizer = true});
      const bool stays = next_.role == Role::actor && !table_.offload.actor_parameters;
      if (!stays)
        offloads.push_back({.parameters = true, .gradients = trained_, .optimizer = trained_});
    }
    for (const Recompute recompute :
         trained_ ? table_.training.recompute : std::vector{Recompute::none}) {
      if (!fixed(Field::recompute, static_cast<int>(recompute))) continue;
      const bool asked = request_.fixed.find(next_.role, Field::recompute).has_value();
      if (recompute == Recompute::selective && !asked &&
          request_.traits.kernels.selective == SelectiveRecompute::modules &&
          request_.traits.kernels.flash_attention && !model_.moe && !model_.mla) {
        continue;
      }
      for (const Offload& offload : offloads) {
        if (!fixed(Field::offload, offload_value(offload))) continue;
        choices.push_back({zero, recompute, offload});
      }
    }
    return choices;
  }

  std::vector<MemoryChoice> rollout_choices() const {
    std::vector<MemoryChoice> choices;
    // What adapters stand beside moves once, and is kept.
    const bool kept = request_.traits.adapters.minimal && request_.lora.contains(next_.role);
    for (const bool unmap : {false, true}) {
      if (unmap && (!table_.offload.rollout || kept)) continue;
      if (fixed(Field::offload, offload_value({unmap}))) choices.push_back({.offload = {unmap}});
    }
    return choices;
  }

  // DistinctLimits; multiples of cp, as every rank of a group takes as many tokens.
  std::vector<BatchLimit> token_limits() const {
    const auto tokens = request_.fixed.find(next_.role, Field::tokens);
    const auto update = request_.fixed.find(next_.role, Field::update_tokens);
    const auto cuts = [&](std::optional<std::int64_t> limit) {
      return limit && !served_ && table_.training.whole_sequences &&
             *limit < longest_sequence(request_.workload);
    };
    if (cuts(tokens) || cuts(update)) return {};
    if (one_limit_ && tokens && update && tokens != update) return {};
    if (tokens || (one_limit_ && update)) return {BatchLimit{tokens ? *tokens : *update}};
    const std::int64_t cp = next_.cp;
    std::vector<BatchLimit> limits;
    const std::int64_t all = request_.workload.sequences() / next_.dp;
    for (const std::int64_t limit :
         limits_.of(batch_ / next_.dp, all, next_.dp, kMostTokens * cp)) {
      limits.push_back(BatchLimit{(limit + cp - 1) / cp * cp});
    }
    return limits;
  }

  std::vector<BatchLimit> slots() const {
    const std::int64_t sequences = most_sequences(request_.workload, prompts_, next_.dp);
    std::vector<std::int64_t> counts;
    if (const auto slots = request_.fixed.find(Role::rollout, Field::max_sequences)) {
      counts.push_back(*slots);
    } else {
      for (std::int64_t n = sequences; n >= 1; n = n == 1 ? 0 : (n + 1) / 2) counts.push_back(n);
    }
    std::reverse(counts.begin(), counts.end());
    std::vector<BatchLimit> limits;
    for (const std::int64_t count : counts) {
      limits.push_back(rollout_batch(request_.workload, count));
    }
    return limits;
  }

  const PlanRequest& request_;
  const Capabilities& table_;
  DistinctLimits& limits_;
  ModelSpec model_;
  LayerShape shape_;
  PromptDealing prompts_;
  int per_node_;  // GPUs
  bool rollout_;
  bool served_;  // by an inference engine, as the rollout is
  bool trained_, fixed_zero_;
  bool replicated_adapters_;                       // no part of them is a replica's own
  bool context_shards_;                            // FSDP cuts over Ulysses' groups too
  bool one_limit_ = false, limits_apart_ = false;  // of tokens
  bool tries_whole_ = false;                       // tensor without sequence parallelism
  std::int64_t batch_;
  Candidate next_;
  std::vector<BatchLimit> batches_;                   // of its dp and cp
  std::array<std::vector<MemoryChoice>, 4> choices_;  // by ZeRO stage, once asked for
  Divisors divisors_;
  std::vector<LayoutSpace> found_;
};

}  // namespace

std::vector<LayoutSpace> enumerate_layouts(const PlanRequest& request,
                                           const Capabilities& capabilities, Role role, int gpus,
                                           DistinctLimits& limits) {
  return Enumeration(request, capabilities, limits, role, gpus).run();
}

}  // namespace tessera
