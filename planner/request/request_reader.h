// A planning request from what a user names: presets, files, words.
//
// Reads files; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/request/request.h"

namespace tessera {

/// Presets or paths; an empty critic or reward model is the workload's.
struct RequestNames {
  std::string model, critic, reward, cluster, workload;
  std::string engine{kOwnEngine}, objective = "step_s";
  double risk = kDefaultRisk;
  bool one_step_off = false;
  bool log_probs = false;          // servers tell those of what they draw
  Lora lora;                       // of the actor; unused: every weight is trained
  std::optional<MtpUse> mtp;       // of the actor; none = left out, or as a plan has it
  std::vector<std::string> fixed;  // as --fix: "actor.tp=2", "placement=actor|critic"
};

/// Everything but calibration and provenance, with every Problem of every file; what has one is
/// left out.
PlanRequest read_request(const RequestNames& names, Problems& problems);

}  // namespace tessera
