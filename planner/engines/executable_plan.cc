#include "planner/engines/executable_plan.h"

#include "planner/engines/capabilities.h"
#include "planner/plan/model_source.h"
#include "planner/plan/plan_json.h"

namespace tessera {

std::optional<Plan> read_executable_plan(const std::filesystem::path& file, Problems& problems) {
  std::optional<Plan> plan = read_plan(file, problems);
  if (!plan) return plan;
  for (Problem& problem : outside_capabilities(*plan, file.string(), "tessera")) {
    problems.push_back(std::move(problem));
  }
  check_model_sources(*plan, file.string(), problems);
  return plan;
}

}  // namespace tessera
