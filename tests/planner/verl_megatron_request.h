// A request of presets for verl's Megatron.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"
#include "planner/request/settings.h"

namespace tessera {

inline PlanRequest verl_megatron_request(const std::string& model, const std::string& cluster,
                                         const std::string& workload,
                                         const std::vector<std::string>& words = {}) {
  Problems problems;
  PlanRequest request;
  request.models["actor"] = {*read_model_spec(model, problems), model, ""};
  request.cluster = *read_cluster_spec(cluster, problems);
  request.workload = *read_workload(workload, problems);
  request.calibration = *calibration_for_cluster(request.cluster, problems);
  request.engine = "verl-megatron";
  request.fixed = parse_settings(words, problems);
  EXPECT_TRUE(problems.empty()) << to_string(problems[0]);
  return request;
}

}  // namespace tessera
