#include "planner/request/check_request.h"

#include <algorithm>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/node_groups.h"
#include "planner/engines/engine.h"

namespace tessera {
namespace {

// Settings of roles that the workload does not have.
void check_roles(const PlanRequest& request, Problems& problems) {
  const std::vector<Role> roles = roles_of(request.workload);
  for (const auto& [key, value] : request.fixed.values) {
    if (std::find(roles.begin(), roles.end(), key.first) != roles.end()) continue;
    std::string present;
    for (const Role role : roles)
      present += (present.empty() ? "" : ", ") + std::string(name_of(role));
    problems.push_back({"--fix",
                        std::string(name_of(key.first)) + "." + std::string(name_of(key.second)),
                        "a role that the workload does not have", present, ""});
  }
}

// GPU types that the cluster does not have.
void check_types(const PlanRequest& request, Problems& problems) {
  std::vector<std::string> names;
  for (std::size_t view = 0; view < pool_views(request.cluster).size(); ++view) {
    names.push_back(type_name(request.cluster, static_cast<int>(view)));
  }
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  for (const auto& [role, type] : request.fixed.gpu_types) {
    if (std::find(names.begin(), names.end(), type) != names.end()) continue;
    problems.push_back({"--fix", std::string(name_of(role)) + ".gpu", "'" + type + "'", known,
                        did_you_mean(type, names)});
  }
}

// Degrees of actor and rollout that would not add up in one order.
void check_order(const PlanRequest& request, Problems& problems) {
  if (!engine_named(request.engine).fixed_order) return;
  const auto actor = request.fixed.find(Role::actor, Field::tp);
  const auto rollout = request.fixed.find(Role::rollout, Field::tp);
  if (!actor || !rollout || *actor == *rollout) return;
  problems.push_back(
      {"--fix", "rollout.tp", std::to_string(*rollout),
       std::to_string(*actor) + ", as actor.tp says",
       "engine '" + request.engine + "' adds up in one order: " + std::string(kWhyEqualTp)});
}

// Images that nobody looks at.
void check_images(const PlanRequest& request, Problems& problems) {
  const auto actor = request.models.find("actor");
  if (request.workload.images.per_prompt <= 0 || actor == request.models.end()) return;
  if (actor->second.spec.vision) return;
  problems.push_back({actor->second.path.empty() ? "actor" : actor->second.path, "vision_config",
                      "no vision tower", "one, as the workload's prompts have images",
                      "leave out the workload's images, or take a vision-language model"});
}

}  // namespace

void check_lengths(const PlanRequest& request, Problems& problems) {
  const LengthSpec& response = request.workload.response_tokens;
  for (const auto& [name, model] : request.models) {
    const std::int64_t positions = context_length(model.spec);
    const std::int64_t longest = longest_sequence(request.workload);
    if (positions == 0 || longest <= positions) continue;
    problems.push_back(
        {model.path.empty() ? name : model.path, "max_position_embeddings",
         std::to_string(positions) + " positions" +
             (positions == model.spec.max_positions ? "" : " with its rotary scaling"),
         "at least " + std::to_string(longest) + ", the workload's prompt_tokens " +
             std::to_string(request.workload.longest_prompt()) + " + response_tokens.max " +
             std::to_string(response.max),
         "shorten the workload, or extend the model's rope_scaling"});
  }
}

void check_models(const PlanRequest& request, Problems& problems) {
  if (!request.models.contains("actor")) {
    problems.push_back({"request", "models", "no actor", "the actor's model", ""});
  }
  topological_order(request.workload.dataflow, "workload", problems);
  if (request.workload.dataflow.empty()) {
    problems.push_back({"workload", "dataflow", "no calls", "a dataflow", ""});
  }
  if (request.cluster.gpus() < 1) {
    problems.push_back({"cluster", "nodes", "no GPUs", "at least one", ""});
  }
}

void check_settings(const PlanRequest& request, Problems& problems) {
  check_roles(request, problems);
  check_types(request, problems);
  check_images(request, problems);
  check_order(request, problems);
}

}  // namespace tessera
