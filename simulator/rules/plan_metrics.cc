#include "simulator/rules/plan_metrics.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "cost_models/compute.h"
#include "cost_models/lengths.h"
#include "cost_models/spec/device/device_kind.h"
#include "cost_models/spec/node_groups.h"
#include "planner/plan/plan.h"
#include "planner/pricing/memory_limit.h"

namespace tessera {
namespace {

// The fullest rank against its device.
struct MemoryShares {
  double of_device = 0, of_usable = 0;
};

void take_more(MemoryShares& most, Bytes bytes, Bytes memory, Bytes usable) {
  if (memory > 0) most.of_device = std::max(most.of_device, bytes / memory);
  if (usable > 0) most.of_usable = std::max(most.of_usable, bytes / usable);
}

// With several GPU types every pool against its own: in each phase the fullest ranks of its roles
// together, as the search counts them.
MemoryShares memory_shares(const Plan& plan, const Calibration& calibration) {
  MemoryShares most;
  if (plan.cluster.groups.empty()) {
    take_more(most, plan.prediction.peak_bytes, plan.cluster.device.memory,
              usable_memory(plan, calibration));
    return most;
  }
  for (const std::vector<Role>& block : placement_of(plan)) {
    std::map<Phase, Bytes> bytes;
    for (const Role role : block) {
      for (const auto& [phase, use] : plan.find(role)->memory) bytes[phase] += use.total();
    }
    const int view = view_of(plan.cluster, plan.find(block.front())->ranks);
    const Bytes memory = seen_from(plan.cluster, view).device.memory;
    for (const auto& [phase, sum] : bytes) {
      take_more(most, sum, memory, usable_memory(plan, calibration, view));
    }
  }
  return most;
}

// The fastest way into a GPU that a reshard of this plan can use: the link within a node, or a
// network card's share where every source is on another node.
double best_inbound_rate(const Plan& plan) {
  const ClusterSpec& cluster = plan.cluster;
  const RolePlan* actor = plan.find(Role::actor);
  const RolePlan* rollout = plan.find(Role::rollout);
  const double nic = static_cast<double>(cluster.nics_per_node) * cluster.nic.value /
                     static_cast<double>(std::max<std::int64_t>(1, cluster.gpus_per_node));
  if (actor == nullptr || rollout == nullptr) return cluster.intra_per_gpu.value;
  const auto per_node = static_cast<int>(cluster.gpus_per_node);
  const auto on_nodes_of = [&](const RolePlan& role, int rank) {
    return std::any_of(role.ranks.begin(), role.ranks.end(),
                       [&](int other) { return other / per_node == rank / per_node; });
  };
  const bool apart = std::none_of(rollout->ranks.begin(), rollout->ranks.end(),
                                  [&](int rank) { return on_nodes_of(*actor, rank); });
  return apart && nic > 0 ? nic : std::max(cluster.intra_per_gpu.value, nic);
}

void add_reshard(const Plan& plan, Expectation& result) {
  if (plan.reshard.empty()) return;
  const PlannedReshard& pair = plan.reshard.front();
  const auto found = plan.prediction.phases_s.find(Phase::reshard);
  const double seconds = found == plan.prediction.phases_s.end() ? 0.0 : found->second.value;
  const auto received = static_cast<double>(pair.bytes_received.value);
  result.predicted["reshard/bytes"] = received;
  result.predicted["reshard/lower_bound_bytes"] = static_cast<double>(pair.lower_bound_bytes.value);
  result.bound["reshard/bytes"] = static_cast<double>(pair.lower_bound_bytes.value);
  // Multiples of nothing limit nothing: a reshard without bytes is its barriers.
  if (received > 0) {
    result.predicted["reshard/seconds"] = seconds;
    result.predicted["reshard/exposed_s"] = seconds;
  }
  const double rate = best_inbound_rate(plan);
  if (rate > 0) {
    result.bound["reshard/seconds"] = static_cast<double>(pair.lower_bound_bytes.value) / rate;
    result.bound["reshard/exposed_s"] = 0;  // it may hide behind the optimizer
    result.bound["reshard/gbps"] = rate * 1e-9;
  }
  if (seconds > 0) result.predicted["reshard/gbps"] = received / seconds * 1e-9;
  if (plan.prediction.step_s > 0) {
    result.predicted["reshard/share"] = seconds / plan.prediction.step_s.value;
  }
  const RolePlan* from = plan.find(pair.from);
  if (from == nullptr) return;
  const double whole = static_cast<double>(parameter_count(plan.model_of(pair.from))) *
                       static_cast<double>(size_of(from->dtypes.wire));
  if (whole > 0) result.predicted["reshard/traffic_ratio"] = received / whole;
}

// flop/s of the fastest large GEMM.
double best_matmul_rate(DType dtype, const Calibration& calibration) {
  double best = 0;
  for (const double size : {4096.0, 8192.0, 16384.0}) {
    const double flops = 2 * size * size * size;
    best = std::max(best, flops / matmul_seconds(size, size, size, dtype, calibration).value);
  }
  return best;
}

void add_compute_bounds(const Plan& plan, const Calibration& calibration, Expectation& result) {
  const RolePlan* actor = plan.find(Role::actor);
  if (actor == nullptr) return;
  const int view = view_of(plan.cluster, actor->ranks);
  const double peak = seen_from(plan.cluster, view).device.peak_bf16.value;
  if (!(peak > 0)) return;
  const double rate = best_matmul_rate(actor->dtypes.param, seen_from(calibration, view));
  result.bound["perf/mfu/actor"] = rate / peak;
  const Workload& workload = plan.workload;
  const double sequence =
      static_cast<double>(workload.prompt_tokens) + mean_length(workload.response_tokens);
  const double flops_per_token = 3 * forward_flops_per_token(plan.model_of(Role::actor), sequence) *
                                 static_cast<double>(workload.epochs);
  const double tokens = static_cast<double>(workload.sequences()) * sequence;
  result.bound["perf/throughput"] = rate / flops_per_token;
  result.bound["timing_s/step"] = tokens * flops_per_token / rate / plan.world_size();
}

bool is_without_times(std::string_view metric) {
  static constexpr std::array<std::string_view, 6> kWithoutTimes{
      "perf/max_memory_allocated_gb", "perf/memory_share",
      "perf/usable_memory_share",     "reshard/bytes",
      "reshard/lower_bound_bytes",    "reshard/traffic_ratio"};
  return std::find(kWithoutTimes.begin(), kWithoutTimes.end(), metric) != kWithoutTimes.end();
}

RoughTimes rough_times(const Plan& plan, const Calibration& calibration, bool on_processors) {
  const bool for_processors = is_cpu(plan.cluster.device);
  if (on_processors && !for_processors) return RoughTimes::other_device;
  const bool measured = !constant_names(calibration, true).empty();
  if (measured) return for_processors ? RoughTimes::shared : RoughTimes::none;
  // As calibration_for_cluster names what it derives.
  const bool derived = calibration.name.find(", derived from ") != std::string::npos;
  if (!derived && !for_processors) return RoughTimes::none;
  if (plan.prediction.measured_constants.empty()) return RoughTimes::all;
  return for_processors ? RoughTimes::shared : RoughTimes::bounds;
}

}  // namespace

Expectation expectation_of(const Plan& plan, const Calibration& calibration) {
  Expectation result;
  const Prediction& prediction = plan.prediction;
  result.predicted["timing_s/step"] = prediction.step_s;
  result.predicted["perf/time_per_step"] = prediction.step_s;
  for (const auto& [phase, seconds] : prediction.phases_s) {
    result.predicted["timing_s/" + std::string(name_of(phase))] = seconds;
  }
  result.predicted["perf/throughput"] = prediction.tokens_per_s_per_gpu;
  result.predicted["perf/mfu/actor"] = prediction.mfu;
  add_compute_bounds(plan, calibration, result);
  constexpr double kGib = 1LL << 30;
  result.predicted["perf/max_memory_allocated_gb"] =
      static_cast<double>(prediction.peak_bytes.value) / kGib;
  if (prediction.step_s > 0) {
    result.predicted["comm/share"] = prediction.exposed_comm_s / prediction.step_s;
    const auto gen = prediction.phases_s.find(Phase::gen);
    if (gen != prediction.phases_s.end()) {
      result.predicted["gen/share"] = gen->second / prediction.step_s;
    }
  }
  const MemoryShares shares = memory_shares(plan, calibration);
  result.predicted["perf/memory_share"] = shares.of_device;
  // The share of what a plan may fill (usable_memory): 1 is the most that any plan has.
  result.predicted["perf/usable_memory_share"] = shares.of_usable;
  add_reshard(plan, result);
  result.on_processors = is_cpu(plan.cluster.device);
  if (plan.models.contains("actor")) {
    result.parameters_in_billions =
        static_cast<double>(parameter_count(plan.models.at("actor").spec)) * 1e-9;
  }
  return result;
}

RunExpectation expectation_of_run(const Plan& plan, const Calibration& calibration,
                                  bool on_processors) {
  RunExpectation result{expectation_of(plan, calibration),
                        rough_times(plan, calibration, on_processors)};
  result.expectation.on_processors |= on_processors;
  if (result.rough == RoughTimes::none) return result;
  std::erase_if(result.expectation.bound,
                [](const auto& value) { return !is_without_times(value.first); });
  std::erase_if(result.expectation.predicted,
                [&](const auto& value) { return leaves_out(result.rough, value.first); });
  return result;
}

bool ranks_on_processors(const MetricValues& step) {
  return step.contains("plan/predicted_step_s") && !step.contains("perf/max_memory_allocated_gb");
}

bool leaves_out(RoughTimes rough, std::string_view metric) {
  return rough != RoughTimes::none && rough != RoughTimes::bounds && !is_without_times(metric);
}

std::string why_times_are_not_judged(RoughTimes rough, const Plan& plan) {
  // Measured constants would not be judged by either.
  if (rough == RoughTimes::all && is_cpu(plan.cluster.device)) rough = RoughTimes::shared;
  switch (rough) {
    case RoughTimes::shared:
      return "ranks share the processors with one another and with whatever else runs there";
    case RoughTimes::other_device:
      return "the plan is for " + plan.cluster.device.name + ", and its ranks run on processors";
    case RoughTimes::all:
      return "no constant was measured on this machine: tessera calibrate measures it";
    case RoughTimes::none:
    case RoughTimes::bounds:
      break;
  }
  return {};
}

}  // namespace tessera
