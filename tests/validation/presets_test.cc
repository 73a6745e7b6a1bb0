// Every preset that ships reads, and its models, clusters and workloads are priced.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/pricing/fixed.h"
#include "planner/request/candidate.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"

namespace tessera {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(TESSERA_SOURCE_DIR) / "configs";

std::vector<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs / folder)) {
    names.insert(entry.path().stem().string() +
                 (entry.is_directory() ? entry.path().extension().string() : ""));
  }
  return {names.begin(), names.end()};
}

PlanRequest request_of(const std::string& model, const std::string& cluster,
                       const std::string& workload) {
  Problems problems;
  PlanRequest request;
  const auto spec = read_model_spec(model, problems);
  const auto machines = read_cluster_spec(cluster, problems);
  const auto work = read_workload(workload, problems);
  EXPECT_TRUE(spec && machines && work) << (problems.empty() ? "" : to_string(problems[0]));
  if (!spec || !machines || !work) return request;
  request.models["actor"] = {*spec, model, ""};
  request.cluster = *machines;
  request.workload = *work;
  const auto calibration = calibration_for_cluster(*machines, problems);
  EXPECT_TRUE(calibration) << cluster;
  if (calibration) request.calibration = *calibration;
  return request;
}

// The actor on every GPU of the cluster, whole on each: seconds of an update.
double update_seconds(PlanRequest request) {
  const auto gpus = static_cast<int>(request.cluster.gpus());
  request.workload.prompts_per_step = gpus * request.workload.mini_batches;
  request.workload.samples_per_prompt = 2;
  CostEvaluator costs(request);
  Candidate actor{{.dp = gpus}, Role::actor, gpus, 1, 16384};
  return price_fixed(costs, actor).seconds[Phase::update_actor];
}

TEST(Presets, EveryClusterReadsAndPricesATrainingStep) {
  const auto names = names_in("clusters");
  EXPECT_GE(names.size(), 27U);
  for (const std::string& name : names) {
    const PlanRequest request = request_of("qwen2.5-0.5b", name, "grpo-7b-1k");
    EXPECT_EQ(request.cluster.name, name);
    EXPECT_GT(update_seconds(request), 0) << name;
  }
}

TEST(Presets, EveryModelReadsCountsAndPricesATrainingStep) {
  const auto names = names_in("models");
  EXPECT_GE(names.size(), 29U);
  for (const std::string& name : names) {
    const PlanRequest request = request_of(name, "h100-8", "grpo-7b-1k");
    EXPECT_GT(parameter_count(request.models.at("actor").spec), 0) << name;
    EXPECT_GT(update_seconds(request), 0) << name;
  }
}

TEST(Presets, EveryWorkloadReadsAndPricesATrainingStep) {
  const auto names = names_in("workloads");
  EXPECT_GE(names.size(), 6U);
  for (const std::string& name : names) {
    EXPECT_GT(update_seconds(request_of("qwen2.5-0.5b", "h100-8", name)), 0) << name;
  }
}

TEST(Presets, EveryCalibrationReads) {
  for (const std::string& name : names_in("calibrations")) {
    Problems problems;
    EXPECT_TRUE(find_calibration(name, problems)) << name;
  }
}

// A network of half the bandwidth up is no faster, and slower where groups span nodes.
TEST(Presets, OversubscriptionSlowsWhatCrossesNodes) {
  PlanRequest full = request_of("llama3.1-8b", "h100-64", "grpo-7b-1k");
  PlanRequest half = request_of("llama3.1-8b", "h100-64-roce-2to1", "grpo-7b-1k");
  EXPECT_GT(update_seconds(half), update_seconds(full));
}

TEST(Presets, APoolOnTwoGpuTypesIsPricedAsTheWeaker) {
  const PlanRequest mixed = request_of("llama3.1-8b", "a100-h100-64", "grpo-7b-1k");
  EXPECT_EQ(mixed.cluster.nodes, 8);
  EXPECT_EQ(mixed.cluster.device.name, "A100-SXM-80GB");
  EXPECT_DOUBLE_EQ(mixed.cluster.price_per_gpu_hour, 2.4);
  EXPECT_DOUBLE_EQ(mixed.cluster.nic.value, 25e9);
  const PlanRequest strong = request_of("llama3.1-8b", "h100-64", "grpo-7b-1k");
  EXPECT_GT(update_seconds(mixed), 2 * update_seconds(strong));
}

}  // namespace
}  // namespace tessera
