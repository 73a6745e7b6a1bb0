#include "executor/records/step_health.h"

#include <cmath>
#include <fstream>
#include <map>
#include <string>

#include "cost_models/compute.h"
#include "cost_models/spec/node_groups.h"
#include "executor/records/step_metrics.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

double number(const Metrics& numbers, const char* name) {
  const auto found = numbers.find(name);
  return found == numbers.end() ? 0 : found->second;
}

double actor_peak_flops(const Plan& plan) {
  double peak = 0;
  for (const int rank : plan.find(Role::actor)->ranks) {
    peak += device_of(plan.cluster, rank).peak_bf16.value;
  }
  return peak;
}

double update_flops(const Plan& plan, const Experience& experience) {
  const ModelSpec model = plan.model_of(Role::actor);
  std::map<std::size_t, double> of_length;  // of a token, by the sequence's length
  double flops = 0;
  for (const Sequence& sequence : experience.sequences) {
    const std::size_t tokens = sequence.prompt.size() + sequence.response.size();
    const auto [entry, is_new] = of_length.try_emplace(tokens, 0);
    const auto length = static_cast<double>(tokens);
    if (is_new) entry->second = forward_flops_per_token(model, length);
    flops += 3 * entry->second * length;
  }
  return flops * static_cast<double>(plan.workload.epochs);
}

}  // namespace

Metrics health_metrics(const Plan& plan, const Experience& experience, const Metrics& numbers) {
  Metrics metrics;
  const double seconds = number(numbers, "timing_s/update_actor"), peak = actor_peak_flops(plan);
  if (seconds > 0 && peak > 0) {
    metrics["perf/mfu/actor"] = update_flops(plan, experience) / seconds / peak;
  }
  double not_finite = 0;
  for (const auto& [name, value] : numbers) {
    const bool trained = name.starts_with("actor/") || name.starts_with("critic/");
    not_finite += trained && !std::isfinite(value) ? 1 : 0;
  }
  metrics["training/not_finite"] = not_finite;
  const auto updates = static_cast<double>(plan.workload.mini_batches * plan.workload.epochs);
  metrics["training/skipped_updates"] = std::round(
      updates * (number(numbers, "actor/skipped_share") + number(numbers, "critic/skipped_share")));
  return metrics;
}

void add_step_numbers(const Plan& plan, const Experience& experience, double seconds,
                      Metrics& numbers) {
  const auto add = [&](const Metrics& values) {
    for (const auto& [name, value] : values) numbers[name] = value;
  };
  numbers["timing_s/step"] = seconds;
  add(throughput_metrics(experience, numbers, plan.world_size()));
  add(health_metrics(plan, experience, numbers));
  // By the slowest rank's seconds: the largest of the ranks' rates is of one that waited least.
  if (const auto took = numbers.find("reshard/seconds");
      took != numbers.end() && took->second > 0) {
    numbers["reshard/gbps"] = numbers["reshard/bytes"] * 1e-9 / took->second;
  }
  const double predicted = plan.prediction.step_s.value;
  numbers["plan/predicted_step_s"] = predicted;
  numbers["plan/error_pct"] = 100 * (predicted - seconds) / seconds;
}

Metrics host_memory_metrics() {
  std::ifstream in("/proc/meminfo");
  std::map<std::string, double> kib;
  std::string name;
  for (double value = 0; in >> name >> value; in.ignore(64, '\n')) kib[name] = value;
  if (!kib.contains("MemTotal:")) return {};
  // psutil's "used": neither free nor a cache of files.
  const double used =
      kib["MemTotal:"] - kib["MemFree:"] - kib["Buffers:"] - kib["Cached:"] - kib["SReclaimable:"];
  return {{"perf/cpu_memory_used_gb", used / (1 << 20)}};
}

}  // namespace tessera
