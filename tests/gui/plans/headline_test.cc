// SPDX-License-Identifier: GPL-3.0-or-later
// What is said of a plan in few words: its memory, its cost, its model.
#include "gui/document/headline.h"

#include <gtest/gtest.h>

#include <set>

#include "cost_models/spec/node_groups.h"
#include "gui/document/text.h"
#include "gui/models/pinned_model.h"
#include "gui/models/plan_table_model.h"
#include "gui/units/number_role.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/pricing/memory_limit.h"
#include "planner/request/settings.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

// What is minimised is said, and stands in the table.
TEST(Headline, SaysTheCostWhereThatIsTheObjective) {
  PlanQuery query{.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"};
  query.objective = "cost";
  query.price_per_gpu_hour = 3;
  const PlanAnswer found = answer(query);
  const SharedPlan plan = std::get<SharedPlan>(found.result);
  const double cost = plan->prediction.step_s.value * gpus_of(*plan) * 3 / 3600;
  const QString text = QString::number(cost, 'g', 4) + " a step";
  EXPECT_EQ(headline_of(*plan, std::nullopt, {}).cost, text);
  EXPECT_TRUE(headline_of(*plan, std::nullopt, {}).text().contains(text));
  EXPECT_EQ(headline_of(free_plan(), std::nullopt, {}).cost, "");
  PlanTableModel model;
  model.setWinner(plan);
  EXPECT_TRUE(model.isByCost());
  EXPECT_EQ(model.index(0, PlanTableModel::Cost).data().toString(), text);
  model.setWinner(shared(free_plan()));
  EXPECT_FALSE(model.isByCost());
}

// A file may state any number; one that is none of a step's leaves room for the others.
TEST(Headline, StaysShortWhateverAFileStates) {
  Plan plan = free_plan();
  plan.prediction.step_error_s = Seconds{1e300};
  plan.prediction.tokens_per_s_per_gpu = 1e300;
  plan.prediction.phases_s.begin()->second = Seconds{1e300};
  plan.certificate.margin = 1e300;
  const QString text = headline_of(plan, calibration_of(plan), {}).text();
  EXPECT_LE(text.size(), 160) << text.toStdString();
  EXPECT_TRUE(text.contains("+- 1e+300 s")) << text.toStdString();
  EXPECT_TRUE(text.contains("fits with")) << text.toStdString();
  plan.prediction.step_s = Seconds{-1e300};
  EXPECT_LE(headline_of(plan, calibration_of(plan), {}).text().size(), 160);
  EXPECT_LE(proof_text(plan, 1e300, {}, {}).size(), 600);
  EXPECT_EQ(countText(3480), "3,480");
  EXPECT_EQ(countText(1e300), "1e+300");
  EXPECT_EQ(secondsText(123456.789), "123456.79 s");
}

// A plan that is there in full is billed for the GPUs that it has, whatever is minimised.
TEST(Headline, TheTableSaysWhatAPlanOnSeveralGpuTypesCosts) {
  const PlanAnswer found =
      answer({.model = "qwen2.5-0.5b", .cluster = "h100-h20-128", .workload = "ppo-7b-1k"});
  const SharedPlan plan = std::get<SharedPlan>(found.result);
  ASSERT_FALSE(plan->cluster.groups.empty());
  ASSERT_EQ(objective_of(*plan), Objective::step_time);
  double hourly = 0;  // of the GPUs that it has, each at its type's price
  std::set<int> ranks;
  for (const RolePlan& role : plan->roles) ranks.insert(role.ranks.begin(), role.ranks.end());
  for (const int rank : ranks) {
    const auto type = static_cast<std::size_t>(group_of(plan->cluster, rank));
    hourly += plan->cluster.groups[type].price_per_gpu_hour;
  }
  PlanTableModel model;
  model.setWinner(plan);
  const QVariant cost = model.index(0, PlanTableModel::Cost).data(kNumberRole);
  ASSERT_TRUE(cost.isValid());
  EXPECT_NEAR(cost.toDouble(), plan->prediction.step_s.value * hourly / 3600, 1e-6 * hourly);
  EXPECT_EQ(
      model.headerData(PlanTableModel::Cost, Qt::Horizontal, kNumberRole).toString().toStdString(),
      "Cost of a step, the cluster's money");
}

// GPUs of another type are as many all the same: what is behind is the step.
TEST(Headline, AsFewGpusOfAnotherTypeAreBehindByTheirStep) {
  PlanQuery query{.model = "qwen2.5-0.5b", .cluster = "h100-h20-128", .workload = "grpo-7b-1k"};
  query.objective = "gpus";
  const PlanAnswer found = answer(query);
  const Plan& plan = *std::get<SharedPlan>(found.result);
  const auto& others = plan.certificate.runner_up;
  ASSERT_FALSE(others.empty());
  ASSERT_EQ(others.front().gpus, gpus_of(plan));
  const double behind = others.front().step_s / plan.prediction.step_s - 1;
  ASSERT_GT(behind, kNoPart);
  EXPECT_EQ(headline_of(plan, std::nullopt, {}).rivals, "row 2: +" + differenceText(behind));
}

// Of several GPU types, too, the peak stands against what plans may use, as views and reports say.
TEST(Headline, MemoryOfAMixedClusterStandsAgainstWhatPlansMayUse) {
  const PlanAnswer found =
      answer({.model = "qwen2.5-0.5b", .cluster = "a100-h100-64", .workload = "ppo-7b-1k"});
  const Plan& plan = *std::get<SharedPlan>(found.result);
  ASSERT_FALSE(plan.cluster.groups.empty());
  const auto calibration = calibration_of(plan);
  const PlanFit fit = fit_of(plan, *calibration);
  std::set<std::int64_t> usable;
  for (int rank = 0; rank < plan.cluster.gpus(); ++rank) {
    usable.insert(usable_memory_of_rank(plan, *calibration, rank).value);
  }
  EXPECT_TRUE(usable.contains(fit.usable.value));
  EXPECT_LT(fit.usable.value, fit.device.value);
  const QString fits = headline_of(plan, calibration, {}).fits;
  EXPECT_TRUE(fits.endsWith("(" + partText(fit.peak, fit.usable) + ")")) << fits.toStdString();
}

TEST(PinnedModel, NamesPresetsAndNotWhereTheyLie) {
  PinnedModel model;
  model.pin(shared(free_plan()));
  for (int row = 0; row < model.rowCount(); ++row) {
    if (model.headerData(row, Qt::Vertical).toString() != "Model") continue;
    EXPECT_EQ(model.index(row, 0).data().toString(), "qwen2.5-0.5b");
  }
}

// The window has no command line: a setting is named as one.
TEST(ProblemText, OfASettingNamesItAndNoOption) {
  Problems problems;
  const std::vector<std::string> words{"actor.foo=3"};
  parse_settings(words, problems);
  ASSERT_EQ(problems.size(), 1u);
  const QString text = problemText(problems.front());
  EXPECT_TRUE(text.startsWith("setting actor.foo=3: ")) << text.toStdString();
  EXPECT_FALSE(text.contains("--fix"));
}

// Whatever runs beside the training of the step before does not make the step.
TEST(Headline, NamesOneStepOffAndAPhaseThatTheStepWaitsFor) {
  PlanQuery query{.model = "qwen2.5-7b", .cluster = "h100-8", .workload = "grpo-7b-1k"};
  query.engine = "verl";
  query.fixed = {"placement=standalone"};
  Problems problems;
  PlanRequest request = request_from(query, problems);
  request.one_step_off = true;
  request.choices.log_probs = ToldLogProbs::told;  // generation takes longer than any other phase
  const auto found = make_plan(request, problems);
  ASSERT_TRUE(found && std::holds_alternative<Plan>(*found));
  const SharedPlan plan = shared(std::get<Plan>(*found));
  const std::map<Phase, Seconds>& times = plan->prediction.phases_s;
  const Seconds gen = times.at(Phase::gen), update = times.at(Phase::update_actor);
  ASSERT_GT(gen, update);
  Seconds training{};
  for (const auto& [phase, seconds] : times) {
    if (phase != Phase::gen && phase != Phase::reshard) training = training + seconds;
  }
  ASSERT_NEAR(training / plan->prediction.step_s, 1, 0.02);  // the rollout has slack
  const Headline line = headline_of(*plan, std::nullopt, {});
  EXPECT_TRUE(line.largest.endsWith(" % in update_actor")) << line.largest.toStdString();
  EXPECT_TRUE(line.text().contains("one step off"));
  PlanTableModel model;
  model.setWinner(plan);
  EXPECT_EQ(model.index(0, PlanTableModel::Placement).data(),
            "actor+reference | rollout, one step off");
  EXPECT_EQ(headline_of(free_plan(), std::nullopt, {}).off, "");
}

}  // namespace
}  // namespace tessera::gui
