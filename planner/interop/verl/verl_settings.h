// What a plan says in verl 0.9.1's keys: one value per key that the plan determines.
//
// Facts about verl are from its 0.9.1 wheel: trainer/config/*.yaml, workers/config/*.py,
// workers/engine_workers.py and trainer/ppo/v1/trainer_base.py. Token limits there are per GPU: a
// micro-batch of a replica holds limit x context parallel tokens. ppo_mini_batch_size counts
// prompts.
#pragma once

#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/files/setting.h"

namespace tessera {

struct Plan;

inline constexpr std::string_view kVerlVersion = "0.9.1";

struct VerlOptions {
  std::string rollout = "vllm";        // of kVerlRollouts (verl.h)
  std::string model;                   // path or hub name; empty = where the plan's weights are
  std::string train_files, val_files;  // empty = variables of the script
  std::string project = "tessera", experiment = "plan";
};

/// A value that the plan does not know: the script takes it as a variable, the YAML file from the
/// environment.
struct VerlVariable {
  std::string key, name, what;  // "data.train_files", "TRAIN_FILES", "the parquet files ..."
};

struct VerlSettings {
  Settings settings;  // those of `variables` as ${oc.env:NAME}
  std::vector<VerlVariable> variables;
  std::vector<std::string> notes;  // what the user should know; one sentence or two each
  bool quantized = false;  // the weights of some model have to be prepared (prepare_model.h)
};

/// Precondition: the plan is valid and its engine (one of verl_engines.h) has no objection
/// (outside_capabilities). What the keys cannot say is appended to `problems`.
VerlSettings verl_settings(const Plan& plan, const VerlOptions& options, Problems& problems);

}  // namespace tessera
