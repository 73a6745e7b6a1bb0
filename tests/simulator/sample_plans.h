// Tiny plans written by hand, on a machine whose only cost is arithmetic.
#pragma once

#include <numeric>
#include <vector>

#include "cost_models/calibration.h"
#include "planner/plan/plan.h"
#include "tests/planner/sample_requests.h"

namespace tessera {

/// 1e12 flop/s; everything else is free.
inline Calibration arithmetic_only() {
  Calibration calibration;
  const auto set = [](Constant& constant, double value) { constant.value = value; };
  for (const NamedConstant& named : kConstants) set(calibration.*named.member, 0);
  set(calibration.matmul_flops, 1e12);
  set(calibration.fp32_factor, 1);
  set(calibration.memory_bandwidth, 1e30);
  set(calibration.stream_bandwidth, 1e30);
  set(calibration.attention_backward, 2.5);
  set(calibration.sustained, 1);
  set(calibration.overlap_slowdown, 1);
  set(calibration.grouped_rate, 1);
  set(calibration.narrow_heads, 1);
  set(calibration.inter_efficiency, 1);
  set(calibration.host_bandwidth, 1e30);
  for (int what = 0; what <= static_cast<int>(Collective::copy_engine); ++what) {
    calibration.collectives.push_back(
        {.collective = static_cast<Collective>(what), .bandwidth = BytesPerSecond{1e30}});
  }
  return calibration;
}

inline std::vector<int> ranks_from(int first, int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

inline RolePlan hand_role(const Plan& plan, Role role, int first_rank, int tp, int pp, int dp,
                          std::int64_t tokens) {
  RolePlan result;
  result.role = role;
  result.model = "actor";
  result.ranks = ranks_from(first_rank, tp * pp * dp);
  result.layout.tp = tp;
  result.layout.pp = pp;
  result.layout.dp = dp;
  result.layout.stages = even_stages(plan.models.at("actor").spec.layers, pp);
  result.batching.mini_batch = plan.workload.sequences();
  result.batching.update_tokens = result.batching.log_prob_tokens = tokens;
  result.batching.values_tokens = result.batching.reward_tokens = tokens;
  result.batching.prefill_tokens = tokens;
  result.batching.max_sequences = plan.workload.sequences();
  return result;
}

/// A plan of these calls without roles; 16 sequences of 8 + 4 tokens, 8 layers, 8 GPUs.
inline Plan plan_of_calls(Dataflow calls) {
  Plan plan;
  plan.engine = "tessera";
  plan.models["actor"] = {tiny_model(8), "tiny", ""};
  plan.cluster = cluster_of(8, 1, 80);
  plan.workload = workload_of("grpo", KlPlace::none, false);
  plan.workload.algorithm = "custom";
  plan.workload.dataflow = std::move(calls);
  plan.schedule = default_schedule(plan.workload);
  return plan;
}

}  // namespace tessera
