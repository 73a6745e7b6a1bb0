// On which GPUs exported roles stand: pools, and nodes of several types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "planner/explain/planner.h"
#include "planner/explain/report.h"
#include "planner/interop/export.h"
#include "planner/request/describe.h"
#include "planner/request/request.h"
#include "planner/search/search.h"
#include "tests/planner/interop/exported.h"
#include "tests/planner/interop/target_of.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Placements, OfVerlAreThoseOfItsPools) {
  PlanRequest request;
  request.workload.algorithm = "ppo";
  request.workload.kl = KlPlace::loss;
  request.workload.reward_model = "qwen2.5-0.5b";
  request.workload.dataflow = preset_dataflow("ppo", KlPlace::loss, true);
  request.engine = "verl";
  request.one_step_off = true;
  Problems problems;
  std::vector<std::string> names;
  for (const Placement& placement : allowed_placements(request, problems)) {
    names.push_back(describe(placement));
  }
  EXPECT_THAT(names, ::testing::ElementsAre("colocated", "actor+critic+reference | reward",
                                            "actor+critic+reference | reward | rollout"));
  for (const char* words : {"reward | actor + reference + critic", "actor+critic+reference|reward",
                            "reward|critic+actor+rollout+reference"}) {
    request.fixed.placement = words;
    const std::vector<Placement> one = allowed_placements(request, problems);
    ASSERT_EQ(one.size(), 1U) << words;
    EXPECT_EQ(describe(one.front()), "actor+critic+reference | reward");
  }
  request.fixed.placement = "rollout | reward | critic+reference+actor";
  EXPECT_EQ(describe(allowed_placements(request, problems).at(0)),
            "actor+critic+reference | reward | rollout");
  request.fixed.placement = "reward|reward|actor+critic+reference";
  EXPECT_TRUE(allowed_placements(request, problems).empty());
  problems.clear();
  request.fixed.placement = "actor|critic+reference+reward";
  EXPECT_TRUE(allowed_placements(request, problems).empty());
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].expected, HasSubstr("actor+critic+reference|reward|rollout"));
}

Plan on_two_types(const std::string& engine, const std::vector<std::string>& fixed) {
  Problems problems;
  PlanRequest request;
  request.engine = engine;
  request.models["actor"] = {read_model_spec("qwen2-7b", problems).value(), "qwen2-7b", ""};
  request.cluster = read_cluster_spec("h800-h20-64", problems).value();
  request.workload = read_workload("grpo-7b-1k", problems).value();
  request.calibration = calibration_for_cluster(request.cluster, problems).value();
  request.fixed = parse_settings(fixed, problems);
  request.one_step_off = true;
  auto outcome = make_plan(request, problems);
  EXPECT_TRUE(problems.empty());
  return std::get<Plan>(*std::move(outcome));
}

TEST(Export, SaysWhereEachGpuTypeHasToStand) {
  const Plan apart = on_two_types("verl", {"placement=actor+reference|rollout"});
  EXPECT_THAT(text_of(must_export(apart, target_of("verl")), "NOTES.md"),
              HasSubstr("accelerator_type"));
  const Plan first =
      on_two_types("tessera", {"placement=colocated", "actor.gpu=H800-SXM-80GB", "actor.gpus=32"});
  EXPECT_THAT(text_of(must_export(first, target_of("kubernetes")), "NOTES.md"),
              HasSubstr("nodeSelector for H800-SXM-80GB"));
  EXPECT_THAT(text_of(must_export(first, target_of("torchrun")), "NOTES.md"),
              AllOf(HasSubstr("nodes 0-3 (ranks 0-31) H800-SXM-80GB"),
                    HasSubstr("4-7 (ranks 32-63) H20-96GB")));
}

TEST(Export, RefusesLaunchersThatCannotPlaceByType) {
  const auto refused = [](const Plan& plan, const ExportTarget& target) {
    Problems problems;
    EXPECT_FALSE(export_plan(plan, target, {}, problems));
    return problems.empty() ? Problem{} : problems[0];
  };
  const Plan second =
      on_two_types("tessera", {"placement=colocated", "actor.gpu=H20-96GB", "actor.gpus=32"});
  EXPECT_EQ(refused(second, target_of("torchrun")).found, "32 of 64 ranks without a role");
  const Plan both = on_two_types(
      "tessera", {"placement=colocated", "actor.gpu=H800-SXM-80GB+H20-96GB", "actor.gpus=64"});
  EXPECT_EQ(refused(both, target_of("kubernetes")).place, "/cluster/node_types");
  EXPECT_THAT(text_of(must_export(both, target_of("slurm")), "NOTES.md"),
              HasSubstr("SLURM_HOSTFILE"));
}

}  // namespace
}  // namespace tessera
