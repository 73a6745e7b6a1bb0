#include "simulator/engine/plan_tasks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "cost_models/documents/stopped.h"
#include "cost_models/packing.h"
#include "cost_models/spec/split.h"
#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_request.h"
#include "simulator/engine/optimizer_tasks.h"
#include "simulator/engine/pipeline_tasks.h"
#include "simulator/engine/planned_arrivals.h"
#include "simulator/engine/role_costs.h"
#include "simulator/engine/task_links.h"
#include "simulator/rollout/draw_lengths.h"

namespace tessera {
namespace {

class Builder {
 public:
  Builder(const Plan& plan, const Calibration& calibration, const SimulationOptions& options,
          PlanCosts& costs)
      : plan_(plan),
        calibration_(calibration),
        options_(options),
        costs_(costs),
        links_(result_.network, plan.cluster, calibration) {
    result_.network =
        cluster_network(plan.cluster, calibration, plan.world_size(), options.machine.lost_card_of);
    result_.shares_links = shares_links(plan.cluster, options.machine.lost_card_of);
    for (const PlannedReshard& pair : plan.reshard) {
      end_if_stopped(options.stop);
      arrivals_.push_back(planned_arrivals(plan, pair, calibration, costs.evaluator()));
    }
    last_call_.assign(static_cast<std::size_t>(plan.world_size()), -1);
  }

  IterationTasks build() {
    for (step_ = 0; step_ < options_.steps; ++step_) {
      lengths_ = draw_lengths(plan_.workload, options_.seed, step_);
      call_of_phase_.fill(-1);
      for (const ScheduledCall& call : plan_.schedule) add_call(call);
    }
    slow_down();
    return std::move(result_);
  }

 private:
  TaskGraph& graph() { return result_.graph; }

  void add_call(const ScheduledCall& scheduled) {
    end_if_stopped(options_.stop);
    const RolePlan& role = runner_of(plan_, scheduled);
    CallTasks call{.phase = scheduled.phase,
                   .role = role.role,
                   .step = static_cast<int>(step_),
                   .ranks = united(role.ranks, {})};
    if (scheduled.phase == Phase::reshard) {
      for (const PlannedReshard& pair : plan_.reshard) {
        call.ranks =
            united(united(call.ranks, plan_.find(pair.from)->ranks), plan_.find(pair.to)->ranks);
      }
    }
    call.start = join("start", call.phase, ends_before(scheduled, call.ranks));
    std::vector<TaskId> tails = body(scheduled, costs_.of(role.role), call);
    tails.push_back(call.start);
    call.end = join("end", call.phase, std::move(tails));
    const auto id = static_cast<int>(result_.calls.size());
    for (const int rank : call.ranks) last_call_[static_cast<std::size_t>(rank)] = id;
    call_of_phase_[call.phase] = id;
    result_.calls.push_back(std::move(call));
  }

  // What a slow rank computes takes longer, and its group with it.
  void slow_down() {
    if (options_.machine.slow_ranks.empty()) return;
    for (Task& task : graph().tasks) {
      if (task.stream != Stream::compute) continue;
      double factor = 1;
      for (const int rank : task.ranks) {
        const auto slow = options_.machine.slow_ranks.find(rank);
        if (slow != options_.machine.slow_ranks.end()) factor = std::max(factor, slow->second);
      }
      task.duration_ns = std::llround(static_cast<double>(task.duration_ns) * factor);
    }
  }

  TaskId join(const char* name, Phase phase, std::vector<TaskId> after) {
    return graph().add({.name = name, .phase = phase, .ranks = {}, .after = std::move(after)});
  }

  std::vector<TaskId> ends_before(const ScheduledCall& scheduled, const std::vector<int>& ranks) {
    std::set<int> calls;
    for (const Phase phase : scheduled.after) {
      calls.insert(call_of_phase_[phase]);
    }
    for (const int rank : ranks) calls.insert(last_call_[static_cast<std::size_t>(rank)]);
    calls.erase(-1);
    std::vector<TaskId> ends;
    for (const int call : calls) ends.push_back(result_.calls[static_cast<std::size_t>(call)].end);
    return ends;
  }

  // Adds the tasks between the call's start and its end; returns those that nothing else follows.
  std::vector<TaskId> body(const ScheduledCall& scheduled, const RoleCosts& costs,
                           CallTasks& call) {
    if (call.phase == Phase::reshard) return reshard(call);
    const Call* const what = call_of(plan_.workload, scheduled.phase);
    if (what == nullptr) return {};
    switch (what->kind) {
      case CallKind::generate:
        return generate(costs, call);
      case CallKind::infer:
        return infer(costs, call);
      case CallKind::train:
        return train(costs, call);
      case CallKind::compute:
        return {host(
            call, call.ranks,
            host_call_seconds(*what, plan_.workload, traits_of(plan_.engine), calibration_).value,
            {call.start})};
    }
    return {};
  }

  TaskId host(const CallTasks& call, std::vector<int> ranks, double seconds,
              std::vector<TaskId> after) {
    return graph().add({.name = "prepare",
                        .phase = call.phase,
                        .ranks = std::move(ranks),
                        .duration_ns = nanoseconds(seconds),
                        .after = std::move(after)});
  }

  std::vector<TaskId> reshard(const CallTasks& call) {
    std::vector<TaskId> copies;
    for (const std::vector<Arrival>& pair : arrivals_) {
      for (const Arrival& arrival : pair) {
        Task task{.name = "receive weights",
                  .phase = call.phase,
                  .stream = Stream::copy,
                  .ranks = {arrival.rank},
                  .duration_ns = nanoseconds(arrival.seconds),
                  .after = {call.start},
                  .bytes = arrival.bytes,
                  .exchange = Exchange::weights};
        if (!arrival.from.empty()) links_.put_arrival(graph(), task, arrival);
        copies.push_back(graph().add(std::move(task)));
      }
    }
    return copies;
  }

  std::vector<TaskId> generate(const RoleCosts& costs, const CallTasks& call) {
    const Workload& workload = plan_.workload;
    const Engine& engine = engine_named(plan_.engine);
    const RolePlan& role = costs.role();
    const ReplicaBatching batching{.prompt_tokens = workload.prompt_tokens,
                                   .samples_per_prompt = workload.samples_per_prompt,
                                   .max_sequences = role.batching.max_sequences,
                                   .prefill_tokens = role.batching.prefill_tokens,
                                   .stages = role.layout.pp,
                                   .refills_alone = engine.traits.decode.refills_alone,
                                   .cache_tokens = costs.operations().cache_tokens(),
                                   .block_tokens = engine.traits.decode.block_tokens};
    std::vector<TaskId> tails;
    const std::vector<std::vector<RolloutSegment>> segments = simulate_replicas(
        lengths_, ReplicaDeal{workload, engine.prompts, role.layout}, batching, costs.rollout());
    for (int replica = 0; replica < role.layout.dp; ++replica) {
      end_if_stopped(options_.stop);
      const std::vector<int> ranks = costs.replica_ranks(replica);
      const double software = costs.software_seconds(CallKind::generate);
      TaskId previous = host(call, ranks, costs.call_seconds() + software, {call.start});
      result_.replicas.push_back({static_cast<int>(result_.calls.size()), replica, previous, ranks,
                                  segments[static_cast<std::size_t>(replica)]});
      for (const RolloutSegment& segment :
           coarsened(result_.replicas.back().segments, options_.rollout_segments)) {
        Task task = segment_task(segment, call.phase, ranks, previous);
        links_.put_generation(graph(), task, costs, replica, segment);
        previous = graph().add(std::move(task));
      }
      tails.push_back(previous);
    }
    return tails;
  }

  static Task segment_task(const RolloutSegment& segment, Phase phase,
                           const std::vector<int>& ranks, TaskId after) {
    const bool prefill = segment.kind == SegmentKind::prefill;
    const std::string sequences = std::to_string(segment.sequences);
    const std::string steps = std::to_string(segment.steps);
    // Differences of rounded times, so that the whole has no rounding error of its parts.
    return {.name = prefill ? "prefill " + steps + " prompts, " + sequences + " sequences"
                            : "decode " + sequences + " sequences, " + steps + " steps",
            .phase = phase,
            .ranks = ranks,
            .duration_ns = nanoseconds(segment.end_s) - nanoseconds(segment.start_s),
            .after = {after},
            .communication_ns = nanoseconds(segment.communication_s)};
  }

  // The host's part of a call on every replica, and what it fetches from host memory.
  std::vector<TaskId> prepared(const RoleCosts& costs, const CallTasks& call, double offload_s,
                               double software_s, const std::vector<TaskId>& after) {
    std::vector<TaskId> ready;
    for (int replica = 0; replica < costs.role().layout.dp; ++replica) {
      const std::vector<int> ranks = costs.replica_ranks(replica);
      ready.push_back(host(call, ranks, costs.call_seconds() + software_s, after));
      if (offload_s <= 0) continue;
      ready.back() = graph().add({.name = "offload",
                                  .phase = call.phase,
                                  .stream = Stream::copy,
                                  .ranks = ranks,
                                  .duration_ns = nanoseconds(offload_s),
                                  .after = {ready.back()},
                                  .exchange = Exchange::host});
    }
    return ready;
  }

  // As the engine has them.
  std::vector<std::vector<MicroBatch>> micro_batches(std::span<const std::int64_t> lengths,
                                                     const RoleCosts& costs, Phase phase) const {
    const PipelineTraits traits = traits_of(plan_.engine).pipeline;
    const ParallelLayout& layout = costs.role().layout;
    return pack_micro_batches(lengths, plan_.workload.prompt_tokens, layout.dp,
                              costs.token_limit(phase),
                              batches_of_round(traits.interleaved, layout.pp, layout.vpp),
                              traits.order, costs.sequence_limit(phase));
  }

  std::vector<TaskId> infer(const RoleCosts& costs, const CallTasks& call) {
    const auto packed = micro_batches(lengths_, costs, call.phase);
    const auto ready = prepared(costs, call, costs.operations().offload_seconds(false, 1),
                                costs.software_seconds(CallKind::infer), {call.start});
    const PassEnd end = add_forward_pass(graph(), {costs, call.phase, packed, links_}, ready);
    std::vector<TaskId> tails;
    for (const auto& stage : end.last) tails.insert(tails.end(), stage.begin(), stage.end());
    return tails;
  }

  std::vector<TaskId> train(const RoleCosts& costs, CallTasks& call) {
    const auto size = static_cast<std::size_t>(costs.role().batching.mini_batch);
    std::vector<TaskId> ready = {call.start};
    double software = costs.software_seconds(CallKind::train);
    for (std::int64_t epoch = 0; epoch < plan_.workload.epochs; ++epoch) {
      for (std::size_t first = 0; first < lengths_.size(); first += size) {
        const std::size_t count = std::min(size, lengths_.size() - first);
        const auto part = std::span(lengths_).subspan(first, count);
        ready = mini_batch(costs, call, part, std::exchange(software, 0), ready);
      }
    }
    return ready;
  }

  std::vector<TaskId> mini_batch(const RoleCosts& costs, CallTasks& call,
                                 std::span<const std::int64_t> lengths, double software_s,
                                 const std::vector<TaskId>& after) {
    end_if_stopped(options_.stop);
    const auto packed = micro_batches(lengths, costs, call.phase);
    const auto steps = static_cast<double>(plan_.workload.mini_batches * plan_.workload.epochs);
    const auto ready =
        prepared(costs, call, costs.operations().offload_seconds(true, steps), software_s, after);
    return add_optimizer_step(
        result_, links_, costs, call.phase,
        add_training_pass(graph(), {costs, call.phase, packed, links_}, ready, call.in_flight));
  }

  const Plan& plan_;
  const Calibration& calibration_;
  const SimulationOptions& options_;
  const PlanCosts& costs_;
  std::vector<std::vector<Arrival>> arrivals_;  // of each reshard
  std::vector<int> last_call_;                  // by rank, -1 = none
  EnumArray<Phase, int> call_of_phase_;
  std::int64_t step_ = 0;
  std::vector<std::int64_t> lengths_;
  IterationTasks result_;
  TaskLinks links_;
};

}  // namespace

const RolePlan& runner_of(const Plan& plan, const ScheduledCall& scheduled) {
  const Call* const call = call_of(plan.workload, scheduled.phase);
  const bool generates = call != nullptr && call->kind == CallKind::generate;
  const RolePlan* const role = plan.find(generates ? Role::rollout : scheduled.role);
  if (role != nullptr) return *role;
  const RolePlan* const actor = plan.find(Role::actor);
  return actor != nullptr ? *actor : plan.roles.front();
}

IterationTasks build_iteration(const Plan& plan, const Calibration& calibration,
                               const SimulationOptions& options) {
  PlanCosts costs(plan, calibration);
  return build_iteration(plan, calibration, options, costs);
}

IterationTasks build_iteration(const Plan& plan, const Calibration& calibration,
                               const SimulationOptions& options, PlanCosts& costs) {
  return Builder(plan, calibration, options, costs).build();
}

NetworkRun run(const IterationTasks& tasks, const std::stop_token& stop) {
  if (tasks.shares_links) return run(tasks.graph, tasks.network.flow_capacity(), stop);
  NetworkRun result{.runs = run(tasks.graph, stop), .flows = {}};
  for (const TaskRun& one : result.runs) {
    result.alone_end_ns = std::max(result.alone_end_ns, one.end_ns);
  }
  return result;
}

}  // namespace tessera
