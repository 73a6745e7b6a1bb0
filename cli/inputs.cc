#include "cli/inputs.h"

#include <filesystem>
#include <utility>

#include "cost_models/derived_calibration.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan_json.h"

namespace tessera {

Plan read_plan_or_throw(const std::string& file) {
  Problems problems;
  std::optional<Plan> plan = read_plan(file, problems);
  if (!plan) throw Error(ExitCode::bad_input, std::move(problems));
  return *std::move(plan);
}

Calibration calibration_for(const ClusterSpec& cluster, const std::string& where) {
  Problems problems;
  std::optional<Calibration> calibration = where.empty()
                                               ? calibration_for_cluster(cluster, problems)
                                               : find_calibration(where, problems);
  if (!calibration) throw Error(ExitCode::bad_input, std::move(problems));
  return *std::move(calibration);
}

Calibration calibration_of(const Plan& plan, const std::string& named) {
  if (!named.empty()) return calibration_for(plan.cluster, named);
  Problems ignored;
  if (auto same = find_calibration(plan.provenance.calibration, ignored)) return *std::move(same);
  return calibration_for(plan.cluster, "");
}

std::optional<Plan> other_plan_of(const Plan& plan, const std::string& run) {
  const std::filesystem::path where(run);
  const std::filesystem::path file =
      (std::filesystem::is_directory(where) ? where : where.parent_path()) / "plan.json";
  if (!std::filesystem::is_regular_file(file)) return std::nullopt;
  Plan ran = read_plan_or_throw(file.string());
  if (mapping_digest(ran) == mapping_digest(plan)) return std::nullopt;
  return ran;
}

}  // namespace tessera
