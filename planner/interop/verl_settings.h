// What a plan says in verl 0.9.1's keys: one value per key that the plan determines.
//
// Facts about verl are from its 0.9.1 wheel: trainer/config/*.yaml, workers/config/*.py,
// workers/engine_workers.py and trainer/ppo/v1/trainer_base.py. Token limits there are per GPU: a
// micro-batch of a replica holds limit x context parallel tokens. ppo_mini_batch_size counts
// prompts.
#pragma once

#include <string>
#include <vector>

#include "planner/interop/setting.h"
#include "planner/plan/plan.h"

namespace tessera {

inline constexpr std::string_view kVerlVersion = "0.9.1";

struct VerlOptions {
  std::string rollout = "vllm";        // or "sglang"
  std::string model;                   // path or hub name; empty = the plan's
  std::string train_files, val_files;  // empty = verl's defaults
  std::string project = "tessera", experiment = "plan";
};

struct VerlSettings {
  Settings settings;
  std::vector<std::string> notes;  // what the user should know; one sentence or two each
};

/// Precondition: the plan is valid and its engine ("verl" or "verl-megatron") has no objection
/// (outside_capabilities). What the keys cannot say is appended to `problems`.
VerlSettings verl_settings(const Plan& plan, const VerlOptions& options, Problems& problems);

/// Bytes of the largest tensor of the actor as verl gathers it; a bucket must hold it.
std::int64_t largest_tensor_bytes(const Plan& plan);

}  // namespace tessera
