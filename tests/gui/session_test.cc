// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/session.h"

#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QCoreApplication>
#include <QElapsedTimer>
#include <QTemporaryDir>
#include <atomic>
#include <fstream>

#include "cost_models/fit/derived_calibration.h"
#include "gui/document/headline.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "planner/request/describe.h"
#include "tests/gui/event_loop.h"
#include "tests/gui/model_tester.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

TEST(PlanJob, WorksOnceWhenItIsWantedAndSaysWhatItLacks) {
  Problems problems;
  const Plan& plan = digits_plan();
  const auto constants = calibration_named(plan.provenance.calibration, plan.cluster, problems);
  std::atomic<int> ran = 0;
  PlanJob<int> job([&](const Plan&, const Calibration&, const std::stop_token&) { return ++ran; });
  job.want();  // nothing to do so far
  EXPECT_EQ(job.whyNone("Working"), "No plan is open.");
  job.setPlan(shared(plan), std::nullopt);
  job.want();
  EXPECT_TRUE(job.problem().contains("constants"));
  EXPECT_EQ(job.whyNone("Working"), job.problem());
  EXPECT_FALSE(job.isBusy());
  job.setPlan(shared(plan), constants);
  EXPECT_TRUE(job.problem().isEmpty());
  EXPECT_EQ(job.facts(), nullptr);
  EXPECT_EQ(job.whyNone("Working"), "");
  job.want();
  EXPECT_EQ(job.whyNone("Working"), "Working");
  job.want();
  ASSERT_TRUE(wait_for([&] { return job.facts() != nullptr; }));
  job.want();
  EXPECT_EQ(*job.facts(), 1);
  EXPECT_EQ(ran, 1);
  job.setPlan(shared(plan), constants);
  EXPECT_EQ(job.facts(), nullptr);  // another plan's
  PlanJob<int> broken([](const Plan&, const Calibration&, const std::stop_token&) -> int {
    throw std::bad_alloc();
  });
  broken.setPlan(shared(plan), constants);
  broken.want();
  EXPECT_TRUE(wait_for([&] { return !broken.problem().isEmpty(); }));
}

PlanQuery small_query() {
  return {.model = "qwen2.5-0.5b", .cluster = "h100-8", .workload = "ppo-7b-1k"};
}

PlanRequest request_for(const std::string& cluster) {
  Problems problems;
  PlanRequest request;
  request.models["actor"] = {*read_model_spec("qwen2.5-0.5b", problems), "qwen2.5-0.5b", ""};
  request.cluster = *read_cluster_spec(cluster, problems);
  request.workload = *read_workload("grpo-7b-1k", problems);
  request.calibration = *calibration_for_cluster(request.cluster, problems);
  EXPECT_TRUE(problems.empty());
  return request;
}

TEST(PlanQuery, IsPricedAsTheCommandLinePricesIt) {
  QTemporaryDir folder;
  const std::string unknown = folder.filePath("unknown.yaml").toStdString();
  std::ofstream(unknown) << "version: 1\nname: unknown\ngpu: Nobody-96GB\nmemory_gib: 96\n"
                            "peak_tflops_bf16: 500\nhbm_gb_s: 2500\ngpus_per_node: 4\nnodes: 1\n"
                            "intra_node:\n  link: NVLink\n  gb_s_per_gpu_one_way: 200\n";
  for (const std::string& cluster : {std::string("a100-pcie-8"), unknown}) {
    const PlanAnswer shown =
        answer({.model = "qwen2.5-0.5b", .cluster = cluster, .workload = "grpo-7b-1k"});
    ASSERT_TRUE(std::holds_alternative<SharedPlan>(shown.result)) << cluster;
    Problems problems;
    const Plan expected = std::get<Plan>(*make_plan(request_for(cluster), problems));
    const Plan& plan = *std::get<SharedPlan>(shown.result);
    EXPECT_EQ(plan.prediction, expected.prediction) << cluster;
    EXPECT_EQ(plan.provenance.calibration, expected.provenance.calibration);
  }
}

TEST(PlanQuery, OfARunnerUpKeepsWhatThePlanWasAskedWith) {
  PlanRequest request = request_for("h100-8");
  request.engine = "verl";
  request.objective = Objective::cost;
  request.lora.emplace(Role::actor, Lora{.rank = 32});
  request.lora.emplace(Role::rollout, Lora{.rank = 32});
  Problems problems;
  const Plan plan = std::get<Plan>(*make_plan(request, problems));
  ASSERT_FALSE(plan.certificate.runner_up.empty());
  const RunnerUp& other = plan.certificate.runner_up.front();
  const PlanAnswer detail = answer(plan, other);
  ASSERT_TRUE(std::holds_alternative<SharedPlan>(detail.result));
  const Plan& shown = *std::get<SharedPlan>(detail.result);
  EXPECT_EQ(shown.certificate.objective, "cost");
  EXPECT_EQ(shown.find(Role::actor)->lora, plan.find(Role::actor)->lora);
  EXPECT_NEAR(shown.prediction.step_s, other.step_s, 1e-9 * other.step_s);
}

TEST(Session, AskingShowsTheWinnerWithoutBlocking) {
  Session session;
  QAbstractItemModelTester plans(session.plans(), kFatal), mesh(session.mesh(), kFatal),
      memory(session.memory(), kFatal), phases(session.phases(), kFatal);
  session.ask(small_query());
  EXPECT_TRUE(session.isBusy());
  EXPECT_FALSE(session.plan() != nullptr);  // it comes with an event
  ASSERT_TRUE(wait_for([&] { return session.plan() != nullptr; }));
  EXPECT_EQ(session.selectedRow(), 0);
  EXPECT_GT(session.mesh()->rowCount(), 0);
  EXPECT_GT(session.memory()->rowCount(), 0);
  EXPECT_GT(session.phases()->rowCount(), 0);
}

// The processors are the new question's: what was looked for beside the former answer rests.
TEST(Session, WhileAnEditIsPlannedNothingElseOfTheFormerAnswerIs) {
  Session session;
  PlanQuery query = small_query();
  session.ask(query);
  ASSERT_TRUE(wait_for([&] { return !session.isBusy(); }));
  int answers = 0;
  QObject::connect(&session, &Session::planSelected, [&] { ++answers; });
  session.wantFront();
  session.wantEveryPlan();
  ASSERT_TRUE(session.front().isBusy());
  query.fixed = {"actor.tp=2"};
  session.ask(query);
  EXPECT_FALSE(session.front().isBusy());
  session.wantFront();
  session.wantEveryPlan();
  EXPECT_FALSE(session.front().isBusy());
  ASSERT_TRUE(wait_for([&] { return !session.isBusy(); }));
  EXPECT_EQ(answers, 1);
  session.wantFront();  // of the new answer
  EXPECT_TRUE(session.front().isLooking());
}

TEST(Session, SelectingARunnerUpPlansItInFull) {
  Session session;
  session.ask(small_query());
  ASSERT_TRUE(wait_for([&] { return session.plan() != nullptr; }));
  ASSERT_GT(session.plans()->rowCount(), 1);
  session.selectRow(1);
  EXPECT_EQ(session.selectedRow(), 1);
  ASSERT_TRUE(wait_for([&] { return !session.isBusy(); }));
  EXPECT_TRUE(session.plans()->row(1).plan != nullptr);
  // Behind a comma follow notes.
  const std::string& listed = session.plans()->row(1).summary.placement;
  EXPECT_EQ(describe_placement(*session.plan()), listed.substr(0, listed.find(',')));
  session.selectRow(0);
  EXPECT_EQ(session.selectedRow(), 0);
}

TEST(Session, AnInfeasibleQueryEmptiesTheTableAndSaysWhy) {
  QTemporaryDir folder;
  Session session;
  session.ask(infeasible_query(folder.path().toStdString()));
  ASSERT_TRUE(wait_for([&] { return session.document().none_fits.has_value(); }));
  EXPECT_EQ(session.plans()->rowCount(), 0);
  EXPECT_FALSE(session.document().valid());
  EXPECT_TRUE(headline_of(*session.document().none_fits).startsWith("Nothing fits: rank"));
}

TEST(Session, AFixThatIsTakenAnswersTheQuestion) {
  Session session;
  session.ask({.model = "qwen2.5-14b",  // a 7B's live sequences fit
               .cluster = "h100-8",
               .workload = "grpo-7b-1k",
               .fixed = {"rollout.tp=1", "rollout.max_sequences=1024"}});
  ASSERT_TRUE(wait_for([&] { return !session.isBusy(); }));
  ASSERT_TRUE(session.document().none_fits.has_value());
  const Infeasible none = *session.document().none_fits;
  ASSERT_TRUE(none.change.fixed.has_value()) << none.nearest_fix;
  session.ask(changed(session.document().question, none.change));
  ASSERT_TRUE(wait_for([&] { return !session.isBusy(); }));
  EXPECT_TRUE(session.document().valid());
  session.undo();
  ASSERT_TRUE(wait_for([&] { return !session.isBusy(); }));
  EXPECT_TRUE(session.document().stale());
}

TEST(Session, EveryEditIsUndoneAndDoneAgain) {
  Session session;
  PlanQuery query = small_query();
  std::vector<PlanQuery> asked;
  for (const char* word : {"", "actor.tp=2", "actor.tp=4", "rollout.tp=2"}) {
    query.fixed = *word ? std::vector<std::string>{word} : std::vector<std::string>{};
    asked.push_back(query);
    session.ask(query);
  }
  for (std::size_t i = asked.size(); i-- > 0;) {
    EXPECT_EQ(session.document().question, asked[i]);
    EXPECT_EQ(session.canUndo(), i > 0);
    session.undo();
  }
  for (std::size_t i = 1; i < asked.size(); ++i) {
    ASSERT_TRUE(session.canRedo());
    session.redo();
    EXPECT_EQ(session.document().question, asked[i]);
  }
  EXPECT_FALSE(session.canRedo());
  ASSERT_TRUE(wait_for([&] { return session.document().valid(); }));
  EXPECT_EQ(session.plan()->find(Role::rollout)->layout.tp, 2);
}

TEST(Session, WhatIsCancelledLeavesTheQuestionUnanswered) {
  Session session;
  session.ask(small_query());
  ASSERT_TRUE(wait_for([&] { return session.document().valid(); }));
  PlanQuery other = small_query();
  other.fixed = {"actor.tp=2"};
  session.ask(other);
  session.cancel();
  EXPECT_FALSE(session.document().planning);
  EXPECT_TRUE(session.document().stale());
  EXPECT_EQ(session.document().question, other);
  session.askAgain();
  ASSERT_TRUE(wait_for([&] { return session.document().valid(); }));
  EXPECT_EQ(session.plan()->find(Role::actor)->layout.tp, 2);
}

TEST(Session, TheRowThatIsChosenLastIsShown) {
  Session session;
  session.ask(small_query());
  ASSERT_TRUE(wait_for([&] { return session.plan() != nullptr; }));
  ASSERT_GT(session.plans()->rowCount(), 1);
  session.selectRow(1);
  session.selectRow(0);  // while the other is planned
  EXPECT_FALSE(session.isBusy());
  QElapsedTimer timer;
  timer.start();
  while (timer.elapsed() < 500) QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
  EXPECT_EQ(session.selectedRow(), 0);
  EXPECT_EQ(*session.plan(), *session.plans()->row(0).plan);
}

TEST(Session, APlanOpenedIsItsOwnAnswerAndUndoGoesBack) {
  QTemporaryDir folder;
  const QString file = folder.filePath("plan.json");
  write_plan(free_plan(), file.toStdString());
  Session session;
  PlanQuery query = small_query();
  query.workload = "grpo-7b-1k";
  query.fixed = {"actor.tp=2"};
  session.ask(query);
  ASSERT_TRUE(wait_for([&] { return session.document().valid(); }));
  const Plan before = *session.plan();
  ASSERT_TRUE(session.openPlan(file));
  const PlanQuery& asked = session.document().question;
  EXPECT_EQ(asked.model, "qwen2.5-0.5b");
  EXPECT_EQ(asked.cluster, "h100-8");
  EXPECT_EQ(asked.workload, "ppo-7b-1k");
  EXPECT_TRUE(asked.fixed.empty());
  EXPECT_TRUE(session.document().valid());
  EXPECT_FALSE(session.document().dirty());
  session.undo();
  EXPECT_EQ(session.document().question, query);
  ASSERT_TRUE(wait_for([&] { return session.document().valid(); }));
  EXPECT_EQ(session.plan()->roles, before.roles);
  session.redo();
  EXPECT_EQ(*session.plan(), free_plan());
}

TEST(PlanQuery, OfAnOpenedPlanOfNoPresetAsksWhatItWasAskedWith) {
  PlanRequest request = request_for("h100-8");
  request.cluster.name = "ours";
  request.cluster.oversubscription = 3;
  request.lora.emplace(Role::actor, Lora{.rank = 32});
  request.lora.emplace(Role::rollout, Lora{.rank = 32});
  Problems problems;
  const Plan plan = std::get<Plan>(*make_plan(request, problems));
  const PlanQuery query = query_of(std::make_shared<const Plan>(plan));
  EXPECT_TRUE(query.cluster.empty());
  const PlanAnswer again = answer(query);
  ASSERT_TRUE(std::holds_alternative<SharedPlan>(again.result));
  EXPECT_EQ(std::get<SharedPlan>(again.result)->roles, plan.roles);
  EXPECT_EQ(std::get<SharedPlan>(again.result)->cluster, plan.cluster);
}

TEST(PlanQuery, ASizeThatNoClusterFileMayHaveIsRefusedAtOnce) {
  PlanQuery query = small_query();
  for (const auto& [nodes, gpus] : {std::pair{1, 2000}, std::pair{100000, 4000}}) {
    query.nodes = nodes;
    query.gpus_per_node = gpus;
    const PlanAnswer found = answer(query);
    ASSERT_TRUE(std::holds_alternative<Problems>(found.result));
    EXPECT_FALSE(std::get<Problems>(found.result).empty());
  }
}

TEST(Session, ASavedPlanOpensEqual) {
  QTemporaryDir folder;
  const QString file = folder.filePath("plan.json");
  Session session;
  EXPECT_FALSE(session.savePlan(file));  // there is none
  session.ask(small_query());
  ASSERT_TRUE(wait_for([&] { return session.plan() != nullptr; }));
  ASSERT_TRUE(session.savePlan(file));
  Session other;
  ASSERT_TRUE(other.openPlan(file));
  EXPECT_EQ(*other.plan(), *session.plan());
}

TEST(Session, AFileThatIsNoPlanIsRefusedAndTheOldPlanStays) {
  QTemporaryDir folder;
  const QString file = folder.filePath("plan.json");
  std::ofstream(file.toStdString()) << "{\"tessera_plan\": 2}\n";
  Session session;
  EXPECT_FALSE(session.openPlan(file));
  EXPECT_TRUE(session.document().file_problems.contains("plan.json"));
  EXPECT_FALSE(session.plan() != nullptr);
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QCoreApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
