// The members of a plan's file, each named once with its range: fields(visitor, value). The two
// visitors, PlanWriter and PlanReader, are in plan_json.cc and plan_json_read.cc, so that what is
// written is what is read.
//
// A visitor has field, stated (left out where it has its type's default), object, list, map,
// strings, stated_strings, phases, ranks, stages and calibrations. Templates; used by these two
// files only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "cost_models/documents/object_reader.h"
#include "cost_models/layout/reshard_transport.h"
#include "planner/plan/plan.h"

namespace tessera {

inline constexpr Whole kDegree{.least = 1, .most = 1 << 20};

/// replicas * shards of a file that may state anything: the largest int where it is more.
inline int data_parallel(int replicas, int shards) {
  return static_cast<int>(
      std::min<std::int64_t>(std::int64_t{replicas} * shards, std::numeric_limits<int>::max()));
}
inline constexpr std::array kFloatTypes{DType::fp32, DType::bf16, DType::fp16};
inline constexpr std::array kRecomputes{Recompute::none, Recompute::selective, Recompute::full};
inline constexpr std::array kModes{ReshardMode::minimal, ReshardMode::full};
inline constexpr std::array kOrders{RankOrder::contiguous, RankOrder::megatron, RankOrder::strided};

template <class V>
void fields(V& v, ModelSource& source) {
  v.object("spec", source.spec);
  v.field("path", source.path);
  v.field("config_sha256", source.config_sha256);
}

template <class V>
void fields(V& v, ParallelLayout& layout) {
  v.field("tp", layout.tp, kDegree);
  v.field("cp", layout.cp, kDegree);
  v.field("pp", layout.pp, kDegree);
  v.field("vpp", layout.vpp, kDegree);
  int replicas = layout.dp_replicate();
  v.field("dp_replicate", replicas, kDegree);
  v.field("dp_shard", layout.dp_shard, kDegree);
  layout.dp = data_parallel(replicas, layout.dp_shard);
  v.field("ep", layout.ep, kDegree);
  v.field("etp", layout.etp, kDegree);
  v.field("zero", layout.zero, Whole{.least = 0, .most = 3});
  v.field("sequence_parallel", layout.sequence_parallel);
  v.stated("ulysses", layout.ulysses);
  v.stages("stages", layout.stages);
}

template <class V>
void fields(V& v, RoleDTypes& types) {
  v.field("param", types.param, kFloatTypes);
  v.field("grad", types.grad, kFloatTypes);
  v.field("master", types.master, kFloatTypes);
  v.field("kv", types.kv, kFloatTypes);
  v.field("wire", types.wire, kFloatTypes);
}

struct TokensPerCall {
  Batching& batching;
};

template <class V>
void fields(V& v, TokensPerCall& tokens) {
  v.field("update", tokens.batching.update_tokens, kNotNegative);
  v.field("log_prob", tokens.batching.log_prob_tokens, kNotNegative);
  v.field("values", tokens.batching.values_tokens, kNotNegative);
  v.field("reward", tokens.batching.reward_tokens, kNotNegative);
  v.field("prefill", tokens.batching.prefill_tokens, kNotNegative);
}

template <class V>
void fields(V& v, Batching& batching) {
  TokensPerCall tokens{batching};
  v.field("mini_batch", batching.mini_batch, kNotNegative);
  v.object("tokens_per_call", tokens);
  v.field("max_sequences", batching.max_sequences, kNotNegative);
  v.stated("kv_cache_tokens", batching.kv_cache_tokens, kNotNegative);
  v.stated("update_sequences", batching.update_sequences, kNotNegative);
  v.stated("log_prob_sequences", batching.log_prob_sequences, kNotNegative);
}

template <class V>
void fields(V& v, Offload& offload) {
  v.field("parameters", offload.parameters);
  v.field("gradients", offload.gradients);
  v.field("optimizer", offload.optimizer);
}

template <class V>
void fields(V& v, Lora& lora) {
  v.field("rank", lora.rank, Whole{.least = 1, .most = 1 << 16});
  v.field("alpha", lora.alpha, kFromZero);
  v.strings("targets", lora.targets);
  v.field("merged", lora.merged);
}

template <class V>
void fields(V& v, MemoryUse& use) {
  v.field("weights", use.weights, kNotNegative);
  v.field("gradients", use.gradients, kNotNegative);
  v.field("master_weights", use.master_weights, kNotNegative);
  v.field("optimizer", use.optimizer, kNotNegative);
  v.field("activations", use.activations, kNotNegative);
  v.field("logits", use.logits, kNotNegative);
  v.field("kv_cache", use.kv_cache, kNotNegative);
  v.stated("gathered", use.gathered, kNotNegative);
  v.field("communication", use.communication, kNotNegative);
  v.field("reshard", use.reshard, kNotNegative);
  v.field("workspace", use.workspace, kNotNegative);
  v.field("reserve", use.reserve, kNotNegative);
}

template <class V>
void fields(V& v, RolePlan& role) {
  v.field("role", role.role, kEveryRole);
  v.field("model", role.model);
  v.ranks(role);
  v.stated_strings("gpu_types", role.gpu_types);
  v.object("layout", role.layout);
  v.object("dtypes", role.dtypes);
  v.object("batching", role.batching);
  v.field("recompute", role.recompute, kRecomputes);
  v.object("offload", role.offload);
  v.stated_object("lora", role.lora);
  v.stated("fused_loss", role.fused_loss);
  v.stated("host_optimizer", role.host_optimizer);
  v.stated("mtp", role.mtp, kEveryMtpUse);
  v.stated("fsdp", role.fsdp, kFsdps);
  v.stated("no_sync", role.no_sync);
  v.stated("log_probs", role.log_probs, kEveryToldLogProbs);
  v.map("memory", role.memory);
}

template <class V>
void fields(V& v, ScheduledCall& call) {
  v.field("call", call.phase, kEveryPhase);
  v.field("role", call.role, kEveryRole);
  v.phases("after", call.after);
}

template <class V>
void fields(V& v, PlannedReshard& pair) {
  v.field("from", pair.from, kEveryRole);
  v.field("to", pair.to, kEveryRole);
  v.field("mode", pair.mode, kModes);
  v.field("transport", pair.transport, kTransports);
  v.field("bucket_bytes", pair.bucket_bytes, kNotNegative);
  v.field("keep", pair.keep);
  v.field("digest", pair.digest);
  v.field("bytes_received", pair.bytes_received, kNotNegative);
  v.field("lower_bound_bytes", pair.lower_bound_bytes, kNotNegative);
  v.field("total_received_bytes", pair.total_received_bytes, kNotNegative);
  v.field("peak_bytes", pair.peak_bytes, kNotNegative);
}

template <class V>
void fields(V& v, EnvironmentVariable& variable) {
  v.field("name", variable.name, false);  // not empty
  v.field("value", variable.value);
  v.field("reason", variable.reason);
}

template <class V>
void fields(V& v, Prediction& prediction) {
  v.field("step_s", prediction.step_s, kFromZero);
  v.map("phases_s", prediction.phases_s);
  v.field("exposed_comm_s", prediction.exposed_comm_s, kFromZero);
  v.field("tokens_per_s_per_gpu", prediction.tokens_per_s_per_gpu, kFromZero);
  v.field("mfu", prediction.mfu, kFromZero);
  v.field("peak_bytes", prediction.peak_bytes, kNotNegative);
  v.stated("fits", prediction.fits, kFraction);
  v.stated("peak_error_bytes", prediction.peak_error_bytes, kNotNegative);
  v.field("step_error_s", prediction.step_error_s, kFromZero);
  v.strings("measured_constants", prediction.measured_constants);
  v.strings("assumed_constants", prediction.assumed_constants);
}

template <class V>
void fields(V& v, RunnerUp& runner_up) {
  v.field("placement", runner_up.placement);
  v.field("description", runner_up.description);
  v.field("step_s", runner_up.step_s, kFromZero);
  v.stated("gpus", runner_up.gpus, Whole{.least = 1, .most = 1 << 24});
  v.stated("billed_gpus", runner_up.billed_gpus, kFromZero);
  v.stated_strings("settings", runner_up.settings);
}

template <class V>
void fields(V& v, SaferPlan& safer) {
  v.field("risk", safer.risk, kFraction);
  v.field("fits", safer.fits, kFraction);
  fields(v, safer.plan);
}

template <class V>
void fields(V& v, Certificate& certificate) {
  v.field("objective", certificate.objective);
  v.stated("risk", certificate.risk, kFraction);
  v.stated_strings("fixed", certificate.fixed);
  v.stated_object("better", certificate.better);
  v.field("value", certificate.value);
  v.field("lower_bound", certificate.lower_bound);
  v.field("gap", certificate.gap);
  v.field("evaluated", certificate.evaluated, kNotNegative);
  v.field("pruned", certificate.pruned, kNotNegative);
  v.list("runner_up", certificate.runner_up);
  v.field("margin", certificate.margin);
  v.stated("margin_deviations", certificate.margin_deviations, kFromZero);
  v.stated_object("safer", certificate.safer);
  v.stated("digest", certificate.digest);
}

template <class V>
void fields(V& v, Provenance& provenance) {
  v.field("tessera_version", provenance.tessera_version);
  v.field("calibration", provenance.calibration);
  v.field("created", provenance.created);
  v.stated("calibration_digest", provenance.calibration_digest);
  v.calibrations("constants", provenance.constants);
}

/// The whole plan but for its version and its dataflow, which the two sides treat themselves.
template <class V>
void before_dataflow(V& v, Plan& plan) {
  v.map("models", plan.models);
  v.field("engine", plan.engine, false);
  v.object("cluster", plan.cluster);
  v.object("workload", plan.workload);
}

template <class V>
void after_dataflow(V& v, Plan& plan) {
  v.list("schedule", plan.schedule);
  v.list("roles", plan.roles);
  v.list("reshard", plan.reshard);
  v.list("environment", plan.environment);
  v.object("prediction", plan.prediction);
  v.object("certificate", plan.certificate);
  v.object("provenance", plan.provenance);
}

}  // namespace tessera
