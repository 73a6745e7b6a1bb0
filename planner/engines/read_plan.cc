#include "planner/engines/read_plan.h"

#include <algorithm>

#include "cost_models/documents/problem.h"
#include "planner/engines/engine.h"
#include "planner/engines/engine_check.h"
#include "planner/plan/model_source.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"

namespace tessera {

std::optional<Plan> parse_plan(std::string_view text, const std::string& file, Problems& problems) {
  return parse_plan(text, file, engine_rules(), problems);
}

std::optional<Plan> plan_from(const Document& document, Problems& problems) {
  return plan_from(document, engine_rules(), problems);
}

std::optional<Plan> read_plan(const std::filesystem::path& file, Problems& problems) {
  return read_plan(file, engine_rules(), problems);
}

void validate(const Plan& plan, const std::string& file, Problems& problems) {
  validate(plan, file, engine_rules(), problems);
}

namespace {

/// Other engines move weights in ways of their own: their plans state no transfers.
void check_reshards(const Plan& plan, const std::string& plan_file, Problems& problems) {
  const auto undone = [](const PlannedReshard& pair) { return pair.digest.empty(); };
  if (std::ranges::none_of(plan.reshard, undone)) return;
  problems.push_back(
      {.file = plan_file,
       .place = "/engine",
       .found = "'" + plan.engine + "', whose plan states no transfers of weights",
       .expected = "a plan of an engine that tessera runs: " + std::string(kOwnEngine),
       .hint = "plan again with --from " + plan_file + " --engine " + std::string(kOwnEngine) +
               ", or tessera export --to " + plan.engine + " writes the files of that engine"});
}

/// Every model's folder is where the plan says.
void check_model_folders(const Plan& plan, const std::string& plan_file, Problems& problems) {
  for (const auto& [name, source] : plan.models) {
    std::error_code error;
    if (source.path.empty() || std::filesystem::exists(source.path, error)) continue;
    problems.push_back(
        {.file = plan_file,
         .place = "/models/" + name + "/path",
         .found = "'" + source.path + "', no such folder",
         .expected = "the folder of the model that the plan was made for",
         .hint = "where it was moved, write its new path there; for another model plan again "
                 "(tessera plan --model FOLDER)"});
  }
}

}  // namespace

std::optional<Plan> read_executable_plan(const std::filesystem::path& file, Problems& problems) {
  std::optional<Plan> plan = read_plan(file, problems);
  if (!plan) return plan;
  const bool ours = engine_named(plan->engine).generation.has_value();
  const std::string_view engine = ours ? std::string_view(plan->engine) : kOwnEngine;
  for (Problem& problem : outside_capabilities(*plan, file.string(), engine)) {
    problems.push_back(std::move(problem));
  }
  check_reshards(*plan, file.string(), problems);
  check_model_folders(*plan, file.string(), problems);
  check_model_sources(*plan, file.string(), problems);
  return plan;
}

}  // namespace tessera
