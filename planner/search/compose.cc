// From the winner of the search to a whole Plan.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_assignment.h"
#include "cost_models/lengths.h"
#include "cost_models/spec/node_groups.h"
#include "cost_models/vision/tower.h"
#include "planner/engines/engine.h"
#include "planner/plan/call_limits.h"
#include "planner/plan/phase_seconds.h"
#include "planner/plan/plan.h"
#include "planner/pricing/iteration.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/peak_memory.h"
#include "planner/pricing/role/full_gather.h"
#include "planner/pricing/role/groups.h"
#include "planner/pricing/uncertainty.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/plan_value.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/search/search.h"

namespace tessera {
namespace {

std::size_t block_of(const Solution& solution, Role role) {
  for (std::size_t block = 0; block < solution.placement.size(); ++block) {
    const auto& roles = solution.placement[block];
    if (std::find(roles.begin(), roles.end(), role) != roles.end()) return block;
  }
  return 0;
}

Batching batching_of(const PlanRequest& request, const Candidate& candidate) {
  const Workload& workload = request.workload;
  Batching batching;
  if (is_trained(workload, candidate.role)) {
    batching.mini_batch = workload.sequences() / workload.mini_batches;
  }
  for (const Call& call : workload.dataflow) {
    const Role runs = call.kind == CallKind::generate ? Role::rollout : call.role;
    if (runs != candidate.role) continue;
    if (call.phase == Phase::gen) batching.max_sequences = candidate.max_sequences;
    std::int64_t Batching::*const limit = limit_of(call.phase);
    if (limit == nullptr) continue;
    const bool apart = updates(call.phase) && candidate.update_tokens > 0;
    batching.*limit = apart ? candidate.update_tokens : candidate.tokens;
  }
  return batching;
}

RolePlan role_plan(const PlanRequest& request, CostEvaluator& costs, const Solution& solution,
                   const Candidate& candidate, const std::vector<ScheduledCall>& schedule) {
  const Role role = candidate.role;
  const std::size_t block = block_of(solution, role);
  RolePlan plan;
  plan.role = role;
  plan.model = model_key(request, role);
  plan.ranks.resize(static_cast<std::size_t>(candidate.gpus));
  std::iota(plan.ranks.begin(), plan.ranks.end(), solution.first_rank[block]);
  if (role == Role::rollout) {
    if (!rollout_apart(solution.placement) && !gathers_whole(request.engine)) {
      plan.rank_order = rollout_order(solution.choice.at(Role::actor), candidate, request.cluster);
    }
  } else {
    plan.rank_order = dealt_order(candidate, request.traits);
  }
  if (!request.cluster.groups.empty()) {
    plan.gpu_types = types_of(request.cluster, candidate.view);
  }
  plan.recompute = candidate.recompute;
  plan.offload = candidate.offload;
  if (role == Role::rollout) plan.offload = {};  // the reshard says that it is unmapped
  plan.layout = layout_of(candidate, model_of(request, role).layers);
  plan.dtypes = dtypes_of(request, role);
  if (const auto lora = request.lora.find(role); lora != request.lora.end()) {
    plan.lora = lora->second;
  }
  const EngineChoices& choices = request.choices;
  plan.fused_loss = choices.fused_loss && (role == Role::actor || role == Role::reference);
  plan.host_optimizer = choices.host_optimizer && role == Role::actor && plan.offload.optimizer;
  if (role == Role::rollout) plan.log_probs = choices.log_probs;
  plan.fsdp = choices.fsdp[role];
  plan.no_sync = choices.no_sync[role];
  plan.mtp = request.mtp[role];
  plan.batching = batching_of(request, candidate);
  if (role == Role::rollout) plan.batching.kv_cache_tokens = costs.cache_tokens(candidate);
  // A rank's context and libraries are counted once, with the first role of its block.
  const bool first = solution.placement[block].front() == role;
  for (const ScheduledCall& call : schedule) {
    MemoryUse use = costs.memory(candidate, call.phase);
    if (first) use.reserve = reserve_of(costs.request(candidate.view));
    plan.memory[call.phase] = use;
  }
  return plan;
}

// Tensors and ranks beyond which the exact ranges are not worked out for a plan whose engine reads
// none; its bytes are the evaluator's estimate then, without a digest.
constexpr std::size_t kMostRanges = 4'000'000;

PlannedReshard minimal_reshard(const Plan& plan, CostEvaluator& costs, const Solution& solution) {
  PlannedReshard pair;
  const Candidate& rollout = solution.choice.at(Role::rollout);
  pair.keep = !rollout.offload.parameters;
  pair.transport = costs.request().reshard.transport;
  pair.bucket_bytes = costs.request().reshard.bucket;
  const std::size_t ranks =
      plan.find(Role::actor)->ranks.size() + plan.find(Role::rollout)->ranks.size();
  const bool minimal = costs.request().traits.adapters.minimal;
  const bool gathered = plan.find(Role::rollout)->lora.moves_adapters() && !minimal;  // no ranges
  // Layouts know no shards of Ulysses' groups.
  const Candidate& actor = solution.choice.at(Role::actor);
  const bool over_context = shard_ranks(actor, costs.request().traits) > actor.dp_shard;
  if (gathered || over_context ||
      (!engine_named(plan.engine).weights.exact_ranges &&
       costs.tensors(Role::actor) * ranks > kMostRanges)) {
    pair.bytes_received = pair.lower_bound_bytes = costs.reshard_bytes(actor, rollout);
    pair.total_received_bytes = pair.bytes_received * rollout.gpus;
    pair.peak_bytes = costs.memory(rollout, Phase::gen).weights;
    return pair;
  }
  const ReshardPlan exact = reshard_totals_of(plan, pair);
  set_exact(pair, exact);
  for (const RankTraffic& traffic : exact.traffic) {
    pair.peak_bytes = std::max(pair.peak_bytes, traffic.kept + traffic.received);
  }
  if (moves_adapters_alone(plan, pair)) {  // before the first generation
    pair.peak_bytes = costs.memory(rollout, Phase::gen).weights;
  }
  pair.peak_bytes += travel_stages(costs.request().reshard);
  return pair;
}

// The least that could move is still told; what moves are whole tensors, in buckets, without ranges
// of our own.
PlannedReshard planned_reshard(const Plan& plan, CostEvaluator& costs, const Solution& solution) {
  PlannedReshard pair = minimal_reshard(plan, costs, solution);
  const bool adapters = plan.find(Role::rollout)->lora.moves_adapters();
  if (!gathers_whole(plan.engine) || adapters) return pair;
  const Candidate& rollout = solution.choice.at(Role::rollout);
  GatheredBytes received;
  if (rollout_apart(solution.placement)) {
    received.busiest = costs.memory(whole_copies(rollout), Phase::gen).weights;
    received.all = received.busiest * rollout.gpus;
  } else {
    received = gathered_bytes(plan, pair);
  }
  set_gathered(plan, received, costs.memory(rollout, Phase::gen).weights, pair);
  return pair;
}

// What the reshard depends on of a candidate.
Candidate only_layout(Candidate candidate) {
  candidate.tokens = candidate.update_tokens = candidate.max_sequences = 0;
  candidate.recompute = Recompute::none;
  if (candidate.role != Role::rollout) candidate.offload = {};
  return candidate;
}

// A rollout on the actor's ranks whose groups do not divide the training groups takes them in the
// order that moves the fewest bytes.
void assign_rollout(Plan& plan, RolePlan& rollout, const Solution& solution) {
  if (!takes_rank_lists(plan.engine) || rollout_apart(solution.placement) ||
      rollout.rank_order != RankOrder::contiguous ||
      replicas_stay_near(plan.cluster, rollout.layout.tp * rollout.layout.pp)) {
    return;
  }
  const std::vector<int> order =
      assign_ranks(parameter_table(plan.model_of(Role::actor)), rank_map_of(plan, Role::actor),
                   rollout.layout, rollout.ranks, reshard_options(plan));
  if (order == rollout.ranks) return;
  rollout.ranks = order;
  rollout.rank_order = RankOrder::list;
}

// Sets the rollout's rank map and adds the reshard.
void add_reshard(Plan& plan, CostEvaluator& costs, const Solution& solution, KnownReshards& known) {
  RolePlan& rollout = *std::find_if(plan.roles.begin(), plan.roles.end(), [](const RolePlan& role) {
    return role.role == Role::rollout;
  });
  const auto first = [&](Role role) { return plan.find(role)->ranks.front(); };
  auto [entry, added] = known.try_emplace({only_layout(solution.choice.at(Role::actor)),
                                           only_layout(solution.choice.at(Role::rollout)),
                                           first(Role::actor), first(Role::rollout)});
  MappedReshard& mapped = entry->second;
  if (added) {
    assign_rollout(plan, rollout, solution);
    mapped = {rollout.rank_order, rollout.ranks, planned_reshard(plan, costs, solution)};
  }
  rollout.rank_order = mapped.order;
  rollout.ranks = mapped.ranks;
  plan.reshard.push_back(mapped.pair);
}

/// Of a rank of the block with most: blocks work at the same time.
Seconds communication_of_a_rank(CostEvaluator& costs, const Solution& solution) {
  Seconds most;
  for (const std::vector<Role>& block : solution.placement) {
    Seconds seconds;
    for (const Role role : block) {
      const PhaseSeconds parts = costs.cost(solution.choice.at(role)).communication;
      seconds = std::accumulate(parts.begin(), parts.end(), seconds);
    }
    most = std::max(most, seconds);
  }
  return most;
}

// 3 x forward FLOPs of the actor's update over its devices' peaks; of the critic's in a workload
// that trains no actor. `sequence`: mean tokens.
double update_mfu(const Plan& plan, const PlanRequest& request, const Solution& solution,
                  double sequence) {
  const bool actors = solution.seconds[Phase::update_actor] > 0;
  const Role role = actors ? Role::actor : Role::critic;
  const Seconds update = solution.seconds[actors ? Phase::update_actor : Phase::update_critic];
  if (update <= 0) return 0;
  const Workload& workload = request.workload;
  const double flops = 3 * forward_flops_per_sequence(model_of(request, role), workload, sequence) *
                       static_cast<double>(workload.sequences() * workload.epochs);
  double peak =
      request.cluster.device.peak_bf16.value * static_cast<double>(solution.choice.at(role).gpus);
  if (!request.cluster.groups.empty()) {
    peak = 0;
    for (const int rank : plan.find(role)->ranks) {
      peak += device_of(request.cluster, rank).peak_bf16.value;
    }
  }
  return peak > 0 ? flops / update.value / peak : 0;
}

Prediction prediction_of(const Plan& plan, const PlanRequest& request, CostEvaluator& costs,
                         const Solution& solution) {
  const Workload& workload = request.workload;
  Prediction prediction;
  prediction.step_s = solution.step_s;
  for (const ScheduledCall& call : plan.schedule) {
    prediction.phases_s[call.phase] = solution.seconds[call.phase];
  }
  prediction.exposed_comm_s =
      solution.seconds[Phase::reshard] + communication_of_a_rank(costs, solution);
  const double sequence =
      static_cast<double>(workload.prompt_tokens) + mean_length(workload.response_tokens);
  const double tokens = static_cast<double>(workload.sequences()) * sequence;
  prediction.tokens_per_s_per_gpu = tokens / solution.step_s.value / gpus_of(plan);
  prediction.mfu = update_mfu(plan, request, solution, sequence);
  prediction.peak_bytes = peak_bytes(plan.schedule, solution, costs, costs);
  prediction.step_error_s =
      step_deviation(step_sensitivities(request, solution, costs.deal()), request.calibration);
  prediction.measured_constants = constant_names(request.calibration, true);
  prediction.assumed_constants = constant_names(request.calibration, false);
  return prediction;
}

std::vector<EnvironmentVariable> environment_of(const PlanRequest& request,
                                                const Solution& solution) {
  std::vector<EnvironmentVariable> environment;
  if (!request.calibration.overlapped_dispatch) {
    environment.push_back({"OMP_NUM_THREADS", "1", "every rank computes on one core"});
    environment.push_back(
        {"OMPI_MCA_mpi_yield_when_idle", "1", "ranks that wait leave their core to the others"});
    return environment;
  }
  const bool tensor_parallel = std::any_of(solution.choice.begin(), solution.choice.end(),
                                           [](const auto& entry) { return entry.second.tp > 1; });
  if (tensor_parallel) {
    environment.push_back({"CUDA_DEVICE_MAX_CONNECTIONS", "1",
                           "kernels start in the order in which they were launched, so that "
                           "communication is not overtaken"});
  }
  environment.push_back({"NCCL_NVLS_ENABLE", "0",
                         "the prediction's collectives are those without switch reduction, and "
                         "its buffers cost memory on every GPU"});
  environment.push_back({"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True",
                         "packed micro-batches differ in size; fixed segments would fragment"});
  return environment;
}

}  // namespace

Plan compose_plan(const PlanRequest& request, CostEvaluator& costs, const Solution& solution,
                  KnownReshards* known) {
  Plan plan;
  plan.engine = request.engine;
  plan.cluster = request.cluster;
  plan.workload = request.workload;
  plan.schedule =
      schedule_of(default_schedule(request.workload), solution.placement, solution.policy_lag);
  for (const auto& [role, candidate] : solution.choice) {
    plan.roles.push_back(role_plan(request, costs, solution, candidate, plan.schedule));
    const std::string& key = plan.roles.back().model;
    plan.models.emplace(key, request.models.at(key));
  }
  if (plan.find(Role::rollout) != nullptr && plan.find(Role::actor) != nullptr) {
    KnownReshards own;
    add_reshard(plan, costs, solution, known != nullptr ? *known : own);
  }
  plan.environment = environment_of(request, solution);
  plan.prediction = prediction_of(plan, request, costs, solution);
  const PlanFit fit = fit_of(plan, request.calibration);
  plan.prediction.fits = fit.probability;
  plan.prediction.peak_error_bytes = fit.deviation;
  plan.provenance = {.tessera_version = request.tessera_version,
                     .calibration = request.calibration.name,
                     .created = request.created};
  return plan;
}

}  // namespace tessera
