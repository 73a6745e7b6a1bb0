// Inputs that several commands read, with every problem thrown at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cost_models/calibration.h"

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
class Option;
}  // namespace CLI

namespace tessera {

struct Plan;

Plan read_plan_or_throw(const std::string& file);

/// The option --nodes: as many as the cluster has where it is 0.
CLI::Option* add_nodes(CLI::App& command, std::int64_t& nodes);
/// The cluster with so many nodes; as it is with 0. Throws Error (bad_input) where it cannot have
/// them: it states no network between nodes, or has several GPU types.
ClusterSpec with_nodes(ClusterSpec cluster, std::int64_t nodes);

/// The calibration named, or the one shipped for the cluster's device (or derived from the
/// nearest). Throws Error (bad_input).
Calibration calibration_for(const ClusterSpec& cluster, const std::string& where);

/// The calibration named; else that with which the plan was made, where it can still be found; else
/// that of the cluster's device. Throws Error (bad_input).
Calibration calibration_of(const Plan& plan, const std::string& named);

/// 2 where the plan, as the cost models price it again, does not fit, else 0. What a search did not
/// certify is told on stderr in the command's name.
int code_of_fit(const Plan& plan, const Calibration& calibration, const char* command);

/// The plan that a run's folder, or the one with that metrics.jsonl, holds. nullopt where there is
/// none, and for any other file: what lies beside it may be of another run.
std::optional<std::string> plan_file_of_run(const std::string& run);

/// Throws Error (bad_input) where the run's own plan (plan_file_of_run) runs something else than
/// `plan`, read from `file`; transports are the run's own choice. Where there is none nothing is
/// known, and nothing refused.
void refuse_run_of_other_plan(const Plan& plan, const std::string& file, const std::string& run);

/// The option --risk. Throws Error (usage) from the parser where it is no probability that a
/// request may have.
CLI::Option* add_risk(CLI::App& command, double& risk);

}  // namespace tessera
