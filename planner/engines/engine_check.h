// Layouts and plans against what an engine can execute.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cost_models/documents/problem_list.h"
#include "planner/engines/engine.h"

namespace tessera {

struct ClusterSpec;
struct ModelSource;
struct Plan;

/// Why the engine cannot run a role of this model in this layout (ranks aside); empty = it can.
/// `place` of each Problem is the field, "tp" or "stages".
Problems outside_capabilities(const Engine& engine, const ModelSpec& model, Role role,
                              const ParallelLayout& layout);

/// Whether heads and columns of the model are cut evenly enough for the rule.
bool divides_heads(HeadRule rule, const ModelSpec& model, std::int64_t tp);

/// Appends a Problem where the engine has no such model, or does not train what its config.json
/// states; `place` is that of the model in `file`.
void refuse_model(const Engine& engine, const ModelSource& model, const std::string& file,
                  const std::string& place, Problems& problems);

/// Appends a Problem where the engine trains no such adapters beside the model; `place` is theirs
/// in `file`.
void refuse_adapters(const Engine& engine, const ModelSpec& model, const Lora& lora,
                     const std::string& file, const std::string& place, Problems& problems);

/// Appends a Problem where the engine does not do so with the model's layers of multi-token
/// prediction, or where it has none; `place` is that in `file`.
void refuse_prediction_layers(const Engine& engine, const ModelSpec& model, MtpUse use,
                              const std::string& file, const std::string& place,
                              Problems& problems);

/// Appends a Problem where the engine does not hold parameters of this type.
void refuse_type(const Engine& engine, DType type, const std::string& file,
                 const std::string& place, Problems& problems);

/// Appends a Problem where the engine cannot use a cluster of several hosts; `place` is that of the
/// cluster in `file`.
void refuse_cluster(const Engine& engine, const ClusterSpec& cluster, const std::string& file,
                    const std::string& place, Problems& problems);

/// What in `plan` the engine (by default the plan's own) cannot do: one Problem per role and thing,
/// `place` is the plan's JSON pointer. Empty: it can execute the plan.
Problems outside_capabilities(const Plan& plan, const std::string& file = "plan",
                              std::string_view engine = {});

}  // namespace tessera
