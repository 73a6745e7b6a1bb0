// plan.json files, read and checked with the rules of every engine that this program knows.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cost_models/documents/problem_list.h"

namespace tessera {

struct Document;
struct Plan;

/// parse_plan, plan_from, read_plan (planner/plan/plan_json.h) and validate (planner/plan/plan.h)
/// with engine_rules.
std::optional<Plan> parse_plan(std::string_view text, const std::string& file, Problems& problems);
std::optional<Plan> plan_from(const Document& document, Problems& problems);
std::optional<Plan> read_plan(const std::filesystem::path& file, Problems& problems);
void validate(const Plan& plan, const std::string& file, Problems& problems);

/// A plan that Tessera's own executor is to run: the file's plan, with a Problem for everything in
/// it that the executor cannot do (with vLLM's servers, where the plan is for them) and every model
/// whose config.json has changed since; nullopt where it is no plan.
std::optional<Plan> read_executable_plan(const std::filesystem::path& file, Problems& problems);

}  // namespace tessera
