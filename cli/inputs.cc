#include "cli/inputs.h"

#include <utility>

#include "cost_models/spec/preset.h"
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
  std::string name = where;
  if (name.empty()) {
    const std::optional<std::string> shipped = shipped_calibration(cluster.device);
    if (!shipped) {
      throw Error(ExitCode::bad_input,
                  {Problem{.file = cluster.name,
                           .place = "gpu",
                           .found = "'" + cluster.device.name + "'",
                           .expected = "a device with a shipped calibration, or --calibration",
                           .hint = "tessera calibrate makes one on the machine itself"}});
    }
    name = *shipped;
  }
  std::optional<Calibration> calibration = find_calibration(name, problems);
  if (!calibration) throw Error(ExitCode::bad_input, std::move(problems));
  return *std::move(calibration);
}

std::optional<ModelSource> read_model_source(const std::string& where, Problems& problems) {
  std::optional<ModelSpec> spec = read_model_spec(where, problems);
  if (!spec) return std::nullopt;
  const auto folder = find_config(where, "models", "", problems);
  return ModelSource{*std::move(spec), folder ? folder->string() : where, ""};
}

}  // namespace tessera
