// plan.json, version 1: reading and writing a Plan.
//
// Write -> read -> write is byte-equal. Unknown keys, wrong types, duplicate keys, other versions,
// and depth beyond 64 are Problems with a JSON pointer as their place.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cost_models/documents/problem_list.h"
#include "planner/plan/engine_rule.h"

namespace tessera {

struct Document;
struct Node;
struct Plan;

std::string to_json(const Plan& plan);
/// The same as a tree, for files that hold plans.
Node to_node(const Plan& plan);

/// Parses, checks against the schema and validates. nullopt when anything was appended.
/// planner/engines/read_plan.h has both with the engines that this program knows.
std::optional<Plan> parse_plan(std::string_view text, const std::string& file, EngineRules engines,
                               Problems& problems);
/// A plan that is a part of another file: `document` names that file, its root is the plan's map.
std::optional<Plan> plan_from(const Document& document, EngineRules engines, Problems& problems);
std::optional<Plan> read_plan(const std::filesystem::path& file, EngineRules engines,
                              Problems& problems);

/// Writes atomically (temporary file, fsync, rename). Throws Error(io).
void write_plan(const Plan& plan, const std::filesystem::path& file);

}  // namespace tessera
