// SPDX-License-Identifier: GPL-3.0-or-later
// What the user asks the planner, and the request that it makes; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/explain/infeasible.h"
#include "planner/request/request.h"

namespace tessera {
struct Plan;
}

namespace tessera::gui {

/// Numbers of the workload that are asked otherwise than its file says; 0 = as it says.
struct WorkloadChange {
  std::int64_t prompts_per_step = 0, samples_per_prompt = 0;
  std::int64_t response_tokens = 0;   // mean; the limit and all other lengths grow or shrink alike
  std::int64_t longest_response = 0;  // instead of the limit that goes with the mean
  std::int64_t prompt_tokens = 0;
  std::string algorithm;  // "ppo" or "grpo", with its calls; empty = as the file says
  bool operator==(const WorkloadChange&) const = default;
};

/// A choice on the explore page. Names are presets or paths; 0 = as the cluster says.
struct PlanQuery {
  std::string model, cluster, workload;  // empty: as `opened` has it
  std::int64_t nodes = 0, gpus_per_node = 0;
  std::vector<std::string> fixed;  // as --fix: "actor.tp=2", "placement=actor|critic"
  std::string engine{kOwnEngine}, objective = "step_s";
  double risk = kDefaultRisk;
  double price_per_gpu_hour = 0;  // in any money; 0 = as the cluster says
  std::string topology;  // file of a node's (gui/topology/node_topology.h); empty = the cluster's
  WorkloadChange batch;
  /// A plan of a file, for what no preset names, and for its adapters and its engine's choices.
  std::shared_ptr<const Plan> opened;
  bool operator==(const PlanQuery&) const = default;
};

/// The question that a plan of a file answers, with what its search was given.
PlanQuery query_of(std::shared_ptr<const Plan> plan);
/// The question with what a fix changes about it.
PlanQuery changed(PlanQuery query, const RequestChange& change);

/// The question for whatever engine can answer it, where that can be asked; nullopt where it
/// cannot, or is asked so already. Reads the files.
std::optional<PlanQuery> for_any_engine(const PlanQuery& query);

/// Of the files and of what the opened plan states; what is wrong goes to Problems.
PlanRequest request_from(const PlanQuery& query, Problems& problems);

/// The cluster that is asked about, before its size is changed; nullopt: there is none, or Problems
/// say why.
std::optional<ClusterSpec> cluster_of(const PlanQuery& query, Problems& problems);

/// The cluster with fewer (or more) nodes and GPUs per node; network cards keep their number per
/// GPU. Precondition: one GPU type, or its own numbers.
ClusterSpec resized(ClusterSpec cluster, std::int64_t nodes, std::int64_t gpus_per_node);

/// The cluster at that mean price; what its types cost beside one another stays.
ClusterSpec priced(ClusterSpec cluster, double per_gpu_hour);

/// The workload with these numbers instead of its own, and the calls of that algorithm; one whose
/// calls are its own keeps them.
Workload resized(Workload workload, const WorkloadChange& change);

/// What no cluster file may say of a cluster's size: Problems.
void check_size(const ClusterSpec& cluster, Problems& problems);
/// What no workload file may say of its numbers: Problems.
void check_size(const Workload& workload, Problems& problems);

}  // namespace tessera::gui
