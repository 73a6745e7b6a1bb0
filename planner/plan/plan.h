// The Plan: everything that planner, simulator, executor and GUI share.
//
// Immutable data: models, cluster, workload, roles with their ranks and layouts, the schedule, the
// prediction and the certificate. Every value is written out; no reader derives a default of its
// own. plan_json.h reads and writes it. Times in seconds, sizes in bytes, ranks global.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_models/adapters.h"
#include "cost_models/calibration.h"
#include "cost_models/documents/problem_list.h"
#include "cost_models/layout/rank_map.h"
#include "cost_models/layout/reshard_plan.h"
#include "cost_models/memory.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"
#include "cost_models/spec/units.h"
#include "cost_models/spec/workload.h"
#include "cost_models/transformers/fsdp.h"
#include "planner/plan/certificate.h"
#include "planner/plan/engine_rule.h"
#include "planner/plan/model_source.h"
#include "planner/plan/placement.h"
#include "planner/plan/planned_reshard.h"
#include "planner/plan/recompute.h"
#include "planner/plan/schedule.h"
#include "planner/plan/told_log_probs.h"

namespace tessera {

inline constexpr int kPlanVersion = 1;

struct RolePlan {
  Role role = Role::actor;
  std::string model;       // key into Plan::models
  std::vector<int> ranks;  // global, ascending unless rank_order is `list`
  RankOrder rank_order = RankOrder::contiguous;
  /// Devices of the ranks where the cluster has several types: more than one where they span types,
  /// at the pace of the weakest. Else empty.
  std::vector<std::string> gpu_types;
  ParallelLayout layout;
  RoleDTypes dtypes;
  Batching batching;
  Recompute recompute = Recompute::none;
  Offload offload;
  /// Trained (actor, critic), served (rollout), or left out: the reference is the actor's own
  /// frozen weights then and holds none.
  Lora lora;
  /// Of actor and reference: a few rows of logits exist at a time, in one kernel with the head
  /// (verl's use_fused_kernels). Tessera's executor slices them without being told.
  bool fused_loss = false;
  /// Of the actor: offloaded optimizer states stay in host memory and the host computes the step
  /// (Megatron-LM's optimizer_cpu_offload). Tessera's executor does without being told.
  bool host_optimizer = false;
  /// Of the actor and the rollout: what is done with the model's layers of multi-token prediction.
  MtpUse mtp = MtpUse::left_out;
  /// Of actor, critic and reference, where PyTorch's FSDP runs them (verl's strategy).
  Fsdp fsdp = Fsdp::fsdp2;
  /// Of actor and critic there: a mini-batch's gradients are reduced with its last micro-batch, and
  /// stay whole until then (torch's no_sync; verl's use_no_sync_for_gradient_accumulation).
  bool no_sync = false;
  /// Of the rollout (verl's rollout.calculate_log_probs).
  ToldLogProbs log_probs = ToldLogProbs::as_engine;
  std::map<Phase, MemoryUse> memory;  // of the role's fullest rank, in each phase
  bool operator==(const RolePlan&) const = default;
};

struct EnvironmentVariable {
  std::string name, value, reason;
  bool operator==(const EnvironmentVariable&) const = default;
};

struct Prediction {
  Seconds step_s;
  std::map<Phase, Seconds> phases_s;
  Seconds exposed_comm_s;
  double tokens_per_s_per_gpu = 0;
  double mfu = 0;
  Bytes peak_bytes;  // of the fullest rank
  /// The probability that no rank runs out of memory, and one standard deviation of what the
  /// fullest rank's device holds (planner/pricing/memory_limit.h); 0 = unknown.
  double fits = 0;
  Bytes peak_error_bytes;
  Seconds step_error_s;  // one standard deviation, 0 = unknown
  std::vector<std::string> measured_constants, assumed_constants;
  bool operator==(const Prediction&) const = default;
};

struct Provenance {
  std::string tessera_version, calibration, created;  // created: ISO 8601, UTC
  /// Digest of the constants that the plan was made with; empty in plans of former versions.
  std::string calibration_digest;
  /// These constants, where no shipped file holds them: of all GPUs, and on several GPU types of
  /// each view after them.
  std::vector<Calibration> constants;
  bool operator==(const Provenance&) const = default;
};

struct Plan {
  std::map<std::string, ModelSource> models;  // "actor", and "critic", "reward" where they differ
  std::string engine;                         // a name of EngineRules
  ClusterSpec cluster;
  Workload workload;
  std::vector<ScheduledCall> schedule;
  std::vector<RolePlan> roles;  // in the order of enum Role
  std::vector<PlannedReshard> reshard;
  std::vector<EnvironmentVariable> environment;
  Prediction prediction;
  Certificate certificate;
  Provenance provenance;

  /// The role's plan, or nullptr where the algorithm has no such role.
  const RolePlan* find(Role role) const;
  /// The architecture a role runs: its model with the head it needs (the critic has a value head).
  ModelSpec model_of(Role role) const;
  /// Ranks of the whole plan: 1 + the highest rank of any role.
  int world_size() const;

  bool operator==(const Plan&) const = default;
};

/// True where the reference is the actor without its adapters, if it has some: the same model in
/// the same type on the same ranks, cut alike. What ZeRO cuts beside weights does not matter.
bool reference_lies_as_actor(const Plan& plan);

/// The rank map of a role of the plan (strided maps look at the actor's). Precondition: the plan is
/// valid and has the role.
RankMap rank_map_of(const Plan& plan, Role role);

/// Which ranks share a node, as all who derive the plan's reshards must see it.
ReshardOptions reshard_options(const Plan& plan);
/// The byte-exact reshard of one pair of the plan in a step, in its mode: of the weights, or of the
/// adapters that move alone.
ReshardPlan reshard_plan_of(const Plan& plan, const PlannedReshard& pair);
/// Its totals and digest without the list of transfers, faster.
ReshardPlan reshard_totals_of(const Plan& plan, const PlannedReshard& pair);

/// A digest as plan files write it: 16 hexadecimal digits.
std::string digest_text(std::uint64_t digest);

/// Appends a Problem for every reshard whose digest is not that of the plan's layouts.
void check_reshard_digests(const Plan& plan, const std::string& file, Problems& problems);

/// Appends everything about a plan that contradicts itself: layouts against ranks and models,
/// schedule against dataflow, batching that does not divide. `engines`: those that it may name.
void validate(const Plan& plan, const std::string& file, EngineRules engines, Problems& problems);

}  // namespace tessera
