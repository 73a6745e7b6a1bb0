// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/plan_query.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>

#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/utc_now.h"
#include "cost_models/fit/derived_calibration.h"
#include "cost_models/spec/preset_algorithms.h"
#include "cost_models/spec/spec_document.h"
#include "gui/topology/node_topology.h"
#include "planner/plan/hub_name.h"
#include "planner/plan/model_source.h"
#include "planner/plan/plan.h"
#include "planner/request/objective.h"
#include "planner/request/plan_constants.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/request/request_reader.h"

namespace tessera::gui {
namespace {

// A model beside the actor as the workload names it; none where it names none.
void take_model(PlanRequest& request, const char* key, const std::string& where,
                Problems& problems) {
  request.models.erase(key);
  if (where.empty()) return;
  if (auto model = read_model_source(where, problems)) request.models[key] = *std::move(model);
}

// What the names say; of what has none, what the opened plan states. A critic or a reward model of
// the plan stays while the model and the workload that it was planned for do.
PlanRequest named_request(const PlanQuery& query, Problems& problems) {
  const RequestNames names{.model = query.model,
                           .cluster = query.cluster,
                           .workload = query.workload,
                           .engine = query.engine,
                           .objective = query.objective,
                           .risk = query.risk,
                           .fixed = query.fixed};
  if (!query.opened) return read_request(names, problems);
  PlanRequest request = request_of(*query.opened, {});
  if (query.engine != request.engine) request.choices = {};
  request.engine = query.engine;
  request.fixed = parse_settings(query.fixed, problems);
  request.risk = query.risk;
  check_risk(query.risk, problems);
  request.objective = objective_from(query.objective).value_or(request.objective);
  if (!query.model.empty()) {
    if (auto model = read_model_source(query.model, problems)) request.models["actor"] = *model;
  }
  const bool other_model = request.models.at("actor").spec != query.opened->models.at("actor").spec;
  if (auto cluster = cluster_of(query, problems)) request.cluster = *std::move(cluster);
  if (!query.workload.empty()) {
    if (auto workload = read_workload(query.workload, problems)) request.workload = *workload;
  }
  const bool other_workload = request.workload != query.opened->workload;
  if (other_model || other_workload) {
    take_model(request, "critic", request.workload.critic_model, problems);
  }
  if (other_workload) take_model(request, "reward", request.workload.reward_model, problems);
  return request;
}

// The preset whose file holds this value, by `read`; empty: none does.
template <class Value, class Read>
std::string preset_of(const Value& value, const std::vector<std::string>& names, const Read& read) {
  for (const std::string& name : names) {
    Problems unheard;
    const auto known = read(name, unheard);
    if (known && *known == value) return name;
  }
  return {};
}

// Presets of several models have equal sizes, and the name says whose weights a job takes. So a
// plan that states where its model was is of the preset whose folder or repository that is, or of
// that folder while it is here, and else has no name: what the plan states is asked. One that does
// not say takes the first preset that is such a model.
std::string model_of(const ModelSource& source) {
  std::vector<std::string> names = preset_names("models", "");
  if (!source.path.empty()) {
    std::filesystem::path folder = source.path;
    if (folder.filename() == "config.json" || !folder.has_filename()) folder = folder.parent_path();
    std::erase_if(names, [&](const std::string& name) {
      return name != folder.filename() && hub_name_of_preset(name) != source.path;
    });
    names.push_back(source.path);
  }
  return preset_of(source.spec, names, [](const std::string& name, Problems& problems) {
    return read_model_spec(name, problems);
  });
}

// As `tessera plan --nodes`: which of its GPU types would be more or fewer, nobody said.
void refuse_other_size(const ClusterSpec& cluster, const PlanQuery& query, Problems& problems) {
  if (cluster.groups.empty()) return;
  const auto refuse = [&](const char* what, std::int64_t asked, std::int64_t own) {
    if (asked == 0 || asked == own) return;
    problems.push_back({.file = what,
                        .place = "",
                        .found = std::to_string(asked),
                        .expected = std::to_string(own) + ", as the cluster says how many nodes of "
                                                          "each GPU type it has",
                        .hint = "write a cluster file with other numbers"});
  };
  refuse("--nodes", query.nodes, cluster.nodes);
  refuse("--gpus-per-node", query.gpus_per_node, cluster.gpus_per_node);
}

// The constants of an opened plan go on holding for its machine; others are those shipped.
std::optional<Calibration> constants_for(const PlanQuery& query, const ClusterSpec& cluster,
                                         Problems& problems) {
  if (!query.opened) return calibration_for_cluster(cluster, problems);
  const Plan& plan = *query.opened;
  const bool alike = plan.cluster.groups.empty() && cluster.groups.empty()
                         ? plan.cluster.device == cluster.device
                         : priced(plan.cluster, 1) == priced(cluster, 1);
  const bool linked = plan.cluster.intra_per_gpu.value == cluster.intra_per_gpu.value;
  if (!alike || (plan.provenance.constants.empty() && !linked)) {
    return calibration_for_cluster(cluster, problems);
  }
  auto constants = constants_of(plan, problems);
  if (!constants) return std::nullopt;
  return std::move(constants->calibration);
}

}  // namespace

std::optional<ClusterSpec> cluster_of(const PlanQuery& query, Problems& problems) {
  if (!query.cluster.empty()) return read_cluster_spec(query.cluster, problems);
  if (query.opened) return query.opened->cluster;
  return std::nullopt;
}

PlanRequest request_from(const PlanQuery& query, Problems& problems) {
  PlanRequest request = named_request(query, problems);
  if (!problems.empty()) return request;
  request.created = utc_now();
  request.tessera_version = TESSERA_VERSION;
  if (!query.topology.empty()) {
    if (const auto topology = read_topology(query.topology, problems)) {
      request.cluster = with_topology(std::move(request.cluster), *topology, problems);
    }
    if (!problems.empty()) return request;
  }
  refuse_other_size(request.cluster, query, problems);
  if (!problems.empty()) return request;
  request.cluster = resized(std::move(request.cluster), query.nodes, query.gpus_per_node);
  if (query.price_per_gpu_hour > 0) {
    request.cluster = priced(std::move(request.cluster), query.price_per_gpu_hour);
  }
  check_size(request.cluster, problems);
  if (query.batch != WorkloadChange{}) {
    request.workload = resized(std::move(request.workload), query.batch);
    check_size(request.workload, problems);
  }
  if (!problems.empty()) return request;
  if (auto calibration = constants_for(query, request.cluster, problems)) {
    request.calibration = *std::move(calibration);
  }
  return request;
}

std::optional<PlanQuery> for_any_engine(const PlanQuery& query) {
  PlanQuery any = query;
  any.engine = kAnyEngine;
  Problems problems;
  request_from(any, problems);
  if (any == query || !problems.empty()) return std::nullopt;
  return any;
}

ClusterSpec resized(ClusterSpec cluster, std::int64_t nodes, std::int64_t gpus_per_node) {
  if (nodes > 0) cluster.nodes = nodes;
  if (gpus_per_node > 0 && cluster.gpus_per_node > 0) {
    const std::int64_t cards = cluster.nics_per_node * gpus_per_node / cluster.gpus_per_node;
    if (cluster.nics_per_node > 0) cluster.nics_per_node = std::max<std::int64_t>(1, cards);
    cluster.gpus_per_node = gpus_per_node;
  }
  return cluster;
}

ClusterSpec priced(ClusterSpec cluster, double per_gpu_hour) {
  const double before = std::exchange(cluster.price_per_gpu_hour, per_gpu_hour);
  for (auto& group : cluster.groups) {
    const double share = before > 0 ? group.price_per_gpu_hour / before : 1;
    group.price_per_gpu_hour = share * per_gpu_hour;
  }
  return cluster;
}

namespace {

// Of listed lengths the mean is theirs.
void take_mean(LengthSpec& lengths) {
  if (lengths.quantiles.empty()) return;
  const auto sum = std::accumulate(lengths.quantiles.begin(), lengths.quantiles.end(), 0.0);
  lengths.mean = sum / static_cast<double>(lengths.quantiles.size());
}

// To that mean, all lengths alike; 0 = as they are.
void scale(LengthSpec& lengths, std::int64_t mean) {
  if (mean <= 0 || lengths.mean <= 0) return;
  const double factor = static_cast<double>(mean) / lengths.mean;
  const auto scaled = [&](std::int64_t tokens) {
    return std::max<std::int64_t>(1, std::llround(factor * static_cast<double>(tokens)));
  };
  lengths.max = std::max(mean, scaled(lengths.max));
  lengths.mean = static_cast<double>(mean);
  for (std::int64_t& length : lengths.quantiles) length = scaled(length);
  take_mean(lengths);
}

// What is longer ends there.
void limit(LengthSpec& lengths, std::int64_t longest) {
  lengths.max = longest;
  if (lengths.cv <= 0) lengths.mean = std::min(lengths.mean, static_cast<double>(longest));
  for (std::int64_t& length : lengths.quantiles) length = std::min(length, longest);
  take_mean(lengths);
}

}  // namespace

Workload resized(Workload workload, const WorkloadChange& change) {
  if (!change.algorithm.empty() && is_preset_algorithm(workload.algorithm)) {
    workload.algorithm = change.algorithm;
    workload.dataflow =
        preset_dataflow(workload.algorithm, workload.kl, !workload.reward_model.empty());
  }
  if (change.prompt_tokens > 0) workload.prompt_tokens = change.prompt_tokens;
  if (change.prompts_per_step > 0) workload.prompts_per_step = change.prompts_per_step;
  if (change.samples_per_prompt > 0) workload.samples_per_prompt = change.samples_per_prompt;
  scale(workload.response_tokens, change.response_tokens);
  if (change.longest_response > 0) limit(workload.response_tokens, change.longest_response);
  return workload;
}

void check_size(const ClusterSpec& cluster, Problems& problems) {
  const tessera::Document text{.file = "the cluster", .root = to_node(cluster)};
  ObjectReader reader(text, problems);
  cluster_from(reader, Defaults::refused);
}

void check_size(const Workload& workload, Problems& problems) {
  const tessera::Document text{.file = "the workload", .root = to_node(workload)};
  ObjectReader reader(text, problems);
  workload_from(reader, Defaults::refused);
}

PlanQuery query_of(std::shared_ptr<const Plan> plan) {
  const PlanRequest asked = request_of(*plan, {});
  PlanQuery query{.nodes = plan->cluster.nodes,
                  .gpus_per_node = plan->cluster.gpus_per_node,
                  .fixed = plan->certificate.fixed,
                  .engine = asked.engine,
                  .objective = std::string(name_of(asked.objective)),
                  .risk = asked.risk};
  query.model = model_of(plan->models.at("actor"));
  query.cluster = preset_of(plan->cluster, preset_names("clusters", ".yaml"),
                            [&](const std::string& name, Problems& problems) {
                              auto known = read_cluster_spec(name, problems);
                              if (known) *known = resized(*known, query.nodes, query.gpus_per_node);
                              return known;
                            });
  query.workload = preset_of(
      plan->workload, preset_names("workloads", ".yaml"),
      [](const std::string& name, Problems& problems) { return read_workload(name, problems); });
  query.opened = std::move(plan);
  return query;
}

PlanQuery changed(PlanQuery query, const RequestChange& change) {
  if (change.fixed) query.fixed = words_of(*change.fixed);
  if (change.nodes > 0) query.nodes = change.nodes;
  return query;
}

}  // namespace tessera::gui
