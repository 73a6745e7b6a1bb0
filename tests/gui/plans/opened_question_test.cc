// SPDX-License-Identifier: GPL-3.0-or-later
// What is asked of the planner where a plan was opened: its constants, its models, its cluster.
#include <gtest/gtest.h>

#include <QSpinBox>

#include "cost_models/documents/problem.h"
#include "gui/document/plan_query.h"
#include "gui/form/request_form.h"
#include "gui/plans/opened_plan.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

/// The small model's plan with constants that no shipped file holds: everything takes twice as
/// long.
Plan plan_by_own_constants() {
  Problems problems;
  PlanRequest request = request_from(small_query(), problems);
  request.calibration.name = "mine";
  request.calibration.matmul_flops.value /= 2;
  request.calibration.memory_bandwidth.value /= 2;
  return std::get<Plan>(make_plan(request, problems).value());
}

// `tessera calibrate` measured its machine: what is asked of the plan next is of that machine, too.
TEST_F(Explore, APlanOfOwnConstantsIsJudgedAndPlannedAgainWithThem) {
  const Plan own = plan_by_own_constants();
  ask(small_query());
  const double shipped = document().plan->prediction.step_s.value;
  ASSERT_GT(own.prediction.step_s.value, 1.2 * shipped);
  const QString file = folder.filePath("own.json");
  write_plan(own, file.toStdString());
  ASSERT_TRUE(window.openPlan(file));
  EXPECT_EQ(document().file_problems, "");
  EXPECT_EQ(window.session().calibration()->name, "mine");
  PlanQuery again = document().question;
  again.risk /= 2;
  ask(again);
  EXPECT_EQ(document().plan->provenance.calibration, "mine");
  EXPECT_NEAR(document().plan->prediction.step_s.value / own.prediction.step_s.value, 1, 0.05);
  EXPECT_EQ(window.session().calibration()->matmul_flops.value,
            own.provenance.constants.at(0).matmul_flops.value);
  again.cluster = "a100-8";  // is no such machine
  ask(again);
  EXPECT_EQ(document().plan->provenance.calibration, "a100");
  // A plan of a former version has their name alone.
  Plan bare = own;
  bare.provenance.constants.clear();
  bare.provenance.calibration_digest.clear();
  EXPECT_TRUE(opened(bare).notice.contains("(mine) are not here")) << "nor is it told";
}

/// A preset's own question, with nothing opened.
PlanRequest asked(const PlanQuery& query) {
  Problems problems;
  PlanRequest request = request_from(query, problems);
  for (const Problem& problem : problems) ADD_FAILURE() << to_string(problem);
  return request;
}

TEST(OpenedQuestion, ModelsBesideTheActorFollowTheModelAndTheWorkloadThatAreChosen) {
  PlanQuery query = query_of(shared(free_plan()));
  query.workload = "grpo-reward-vl";
  PlanQuery fresh = query;
  fresh.opened = nullptr;
  EXPECT_EQ(asked(query).models.at("reward"), asked(fresh).models.at("reward"));
  // A critic of its own, which no field shows, was of the model that was planned for.
  Plan plan = free_plan();
  Problems problems;
  plan.models["critic"] = {read_model_spec("qwen2.5-1.5b", problems).value(), "qwen2.5-1.5b", ""};
  query = query_of(shared(plan));
  EXPECT_EQ(asked(query).models.at("critic"), plan.models.at("critic"));
  query.model = "llama3.1-8b";
  EXPECT_FALSE(asked(query).models.contains("critic"));
}

// How many nodes of which type there would be nobody said.
TEST_F(Explore, TheSizeOfAClusterOfTwoGpuTypesIsThatOfItsFile) {
  PlanQuery query{.model = "qwen2.5-7b", .cluster = "h800-h20-64", .workload = "grpo-7b-1k"};
  EXPECT_EQ(asked(query).cluster.groups.size(), 2U);
  query.nodes = asked(query).cluster.nodes;
  EXPECT_EQ(asked(query).cluster.groups.size(), 2U);
  for (const bool of_nodes : {true, false}) {
    PlanQuery other = query;
    (of_nodes ? other.nodes : other.gpus_per_node) = 4;
    Problems problems;
    request_from(other, problems);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems[0].file, of_nodes ? "--nodes" : "--gpus-per-node");
  }
  auto* nodes = named<QSpinBox>(window, "Nodes");
  auto* gpus = named<QSpinBox>(window, "GPUs per node");
  window.explore().findChild<RequestForm*>()->setQuery(query);
  EXPECT_FALSE(nodes->isEnabled() || gpus->isEnabled());
  EXPECT_TRUE(nodes->toolTip().contains("each GPU type"));
  query.nodes = 4;  // of the command line: the form's own question can be planned
  window.explore().findChild<RequestForm*>()->setQuery(query);
  EXPECT_EQ(nodes->value(), 64 / 8);
  window.explore().findChild<RequestForm*>()->setQuery(small_query());
  EXPECT_TRUE(nodes->isEnabled() && gpus->isEnabled());
  EXPECT_EQ(nodes->toolTip(), "");
}

}  // namespace
}  // namespace tessera::gui
