// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QTemporaryDir>
#include <algorithm>
#include <ctime>
#include <fstream>
#include <map>
#include <set>

#include "gui/document/headline.h"
#include "gui/document/text.h"
#include "gui/kept/workspace.h"
#include "gui/models/colours.h"
#include "gui/models/phase_model.h"
#include "gui/models/pinned_model.h"
#include "gui/models/plan_table_model.h"
#include "planner/explain/infeasible.h"
#include "planner/plan/certified.h"
#include "planner/request/describe.h"
#include "tests/gui/model_tester.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

TEST(Colours, AThousandGroupsHaveAThousandColours) {
  for (const int count : {1, 2, 7, 24, 25, 64, 256, 1000}) {
    std::set<QRgb> seen;
    for (int index = 0; index < count; ++index) seen.insert(colourOfGroup(index, count).rgb());
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(count));
  }
}

TEST(Colours, TextHasTheContrastThatWcagAsksFor) {
  for (int index = 0; index < 64; ++index) {
    const QColor background = colourOfGroup(index, 64);
    EXPECT_GE(contrast(background, textOn(background)), 4.5) << index;
  }
  EXPECT_NEAR(contrast(Qt::black, Qt::white), 21, 1e-9);
  for (const Theme theme : {Theme::light, Theme::dark}) {
    const QPalette palette = paletteOf(theme);
    EXPECT_EQ(themeOf(palette), theme);
    const auto apart = [&](QPalette::ColorRole text, QPalette::ColorRole on,
                           QPalette::ColorGroup group = QPalette::Active) {
      return contrast(palette.color(group, text), palette.color(group, on));
    };
    for (const auto on : {QPalette::Base, QPalette::AlternateBase, QPalette::Window,
                          QPalette::Button, QPalette::ToolTipBase}) {
      EXPECT_GE(apart(QPalette::Text, on), 4.5);
      EXPECT_GE(apart(QPalette::Text, on, QPalette::Disabled), 4.5);
    }
    EXPECT_GE(apart(QPalette::WindowText, QPalette::Window), 4.5);
    EXPECT_GE(apart(QPalette::ButtonText, QPalette::Button), 4.5);
    EXPECT_GE(apart(QPalette::ToolTipText, QPalette::ToolTipBase), 4.5);
    EXPECT_GE(apart(QPalette::HighlightedText, QPalette::Highlight), 4.5);
    EXPECT_GE(apart(QPalette::PlaceholderText, QPalette::Base), 4.5);
    EXPECT_GE(apart(QPalette::Link, QPalette::Base), 4.5);
    for (const Tone tone : {Tone::calm, Tone::warning, Tone::bad}) {
      const MessageColours colours = coloursOf(tone, theme);
      EXPECT_GE(contrast(colours.text, colours.background), 4.5);
      EXPECT_GE(contrast(colours.text, palette.color(QPalette::Base)), 4.5);
    }
  }
}

TEST(Colours, OneColourMeansOneThing) {
  std::set<QRgb> seen;
  for (const Role role : kEveryRole) EXPECT_TRUE(seen.insert(colourOf(role).rgb()).second);
  for (const Phase phase : kEveryPhase) EXPECT_TRUE(seen.insert(colourOf(phase).rgb()).second);
  for (const auto& [name, bytes] : memory_classes({})) {
    const QColor colour = colourOfMemory(QString::fromUtf8(name.data(), qsizetype(name.size())));
    EXPECT_TRUE(seen.insert(colour.rgb()).second) << name;
  }
}

TEST(PlanQuery, FewerGpusKeepTheirShareOfNetworkCards) {
  ClusterSpec cluster{.gpus_per_node = 8, .nodes = 4, .nics_per_node = 8};
  cluster = resized(cluster, 2, 4);
  EXPECT_EQ(cluster.nodes, 2);
  EXPECT_EQ(cluster.gpus_per_node, 4);
  EXPECT_EQ(cluster.nics_per_node, 4);
  EXPECT_EQ(resized(cluster, 0, 0), cluster);
}

TEST(PlanQuery, UnknownNamesAreProblemsOfAllFilesAtOnce) {
  const PlanAnswer found = answer(PlanQuery{"qwen2.5-7x", "h100-65", "ppo-8b"});
  const auto& problems = std::get<Problems>(found.result);
  EXPECT_GE(problems.size(), 3u);
}

TEST(PlanQuery, WhatDoesNotFitComesBackWithReasonsAndAFix) {
  const PlanAnswer found = answer(
      PlanQuery{.model = "llama3.1-70b", .cluster = "l40s-8", .workload = "ppo-7b-1k", .nodes = 1});
  const auto& infeasible = std::get<Infeasible>(found.result);
  EXPECT_FALSE(infeasible.reasons.empty());
}

// What a user changes one after the other, back again at the end.
TEST(KeptPlanner, AnswersEverySettingAsAPlanFromScratchInLessTime) {
  PlanQuery query{.model = "qwen2.5-7b", .cluster = "h100-64", .workload = "grpo-7b-1k"};
  KeptPlanner kept;
  EXPECT_TRUE(std::holds_alternative<SharedPlan>(kept.answer(query).result));
  const std::vector<std::vector<std::string>> settings{{"rollout.tp=2"},
                                                       {"actor.tp=4"},
                                                       {"actor.tp=4", "rollout.tp=4"},
                                                       {"placement=colocated"},
                                                       {"actor.cp=2"},
                                                       {"actor.zero=3"},
                                                       {"actor.tp=64"},
                                                       {}};
  const auto cpu_seconds = [](const auto& work) {
    const std::clock_t before = std::clock();
    auto made = work();
    return std::pair(std::move(made), static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
  };
  double kept_s = 0, anew_s = 0;
  for (const std::vector<std::string>& fixed : settings) {
    query.fixed = fixed;
    SCOPED_TRACE(fixed.empty() ? "nothing fixed" : fixed[0]);
    const auto [again, again_s] = cpu_seconds([&] { return kept.answer(query); });
    const auto [anew, scratch_s] = cpu_seconds([&] { return answer(query); });
    kept_s += again_s;
    anew_s += scratch_s;
    ASSERT_EQ(again.result.index(), anew.result.index());
    const auto* const plan = std::get_if<SharedPlan>(&again.result);
    if (plan == nullptr) continue;
    const Plan &kept_plan = **plan, &other = *std::get<SharedPlan>(anew.result);
    EXPECT_EQ(kept_plan.roles, other.roles);
    EXPECT_EQ(kept_plan.prediction, other.prediction);
    EXPECT_EQ(kept_plan.certificate.value, other.certificate.value);
  }
  EXPECT_LT(kept_s, anew_s);
  RecordProperty("kept_ms", static_cast<int>(1000 * kept_s));
  RecordProperty("from_scratch_ms", static_cast<int>(1000 * anew_s));
  query.workload = "ppo-7b-1k";
  EXPECT_EQ(std::get<SharedPlan>(kept.answer(query).result)->roles,
            std::get<SharedPlan>(answer(query).result)->roles);
}

TEST(PlanQuery, ARunnerUpPlannedInFullTakesTheTimeThatTheCertificateSays) {
  const Plan& plan = free_plan();
  ASSERT_FALSE(plan.certificate.runner_up.empty());
  for (const RunnerUp& other : plan.certificate.runner_up) {
    SCOPED_TRACE(other.placement + ": " + other.description);
    const PlanAnswer found = answer(plan, other);
    const auto* const answered = std::get_if<SharedPlan>(&found.result);
    ASSERT_NE(answered, nullptr);
    const Plan& full = **answered;
    EXPECT_NEAR(full.prediction.step_s, other.step_s, 1e-9 * other.step_s);
    EXPECT_EQ(describe_placement(full), other.placement.substr(0, other.placement.find(',')));
    EXPECT_EQ(describe_layouts(full), other.description);
  }
}

TEST(PlanTableModel, ListsTheWinnerThenEveryRunnerUp) {
  PlanTableModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  const Plan& plan = free_plan();
  model.setWinner(shared(plan));
  ASSERT_GT(model.rowCount(), 1);
  ASSERT_EQ(model.rowCount(), 1 + static_cast<int>(plan.certificate.runner_up.size()));
  EXPECT_TRUE(model.index(0, 0).data(PlanTableModel::HasPlanRole).toBool());
  double before = 0;
  for (int row = 0; row < model.rowCount(); ++row) {
    const double step =
        model.index(row, PlanTableModel::Step).data(PlanTableModel::SortRole).toDouble();
    EXPECT_GE(step, before);
    before = step;
  }
  EXPECT_FALSE(model.index(1, 0).data(PlanTableModel::HasPlanRole).toBool());
  EXPECT_TRUE(model.index(1, PlanTableModel::Peak).data().toString().isEmpty());
  // What the step's tokens and GPUs say needs no search.
  const PlanAnswer second = answer(plan, plan.certificate.runner_up.front());
  EXPECT_EQ(model.index(1, PlanTableModel::Throughput).data().toString(),
            countText(std::get<SharedPlan>(second.result)->prediction.tokens_per_s_per_gpu));
  model.setPlan(1, shared(plan));
  EXPECT_FALSE(model.index(1, PlanTableModel::Peak).data().toString().isEmpty());
  model.clear();
  EXPECT_EQ(model.rowCount(), 0);
}

// What is as good is not "+0.0 %", and what is hardly worse has the digits that say so.
TEST(PlanTableModel, ADifferenceIsNeverPlusZero) {
  Plan plan = free_plan();
  ASSERT_GE(plan.certificate.runner_up.size(), 2u);
  plan.certificate.runner_up[0].step_s = plan.prediction.step_s;
  plan.certificate.runner_up[1].step_s = plan.prediction.step_s * 1.0004;
  PlanTableModel model;
  model.setWinner(std::make_shared<const Plan>(plan));
  EXPECT_EQ(model.index(1, PlanTableModel::Worse).data().toString(), "as good");
  EXPECT_EQ(model.index(2, PlanTableModel::Worse).data().toString(), "+0.04 %");
  plan.certificate.margin_deviations = 2;
  plan.certificate.digest = certified_digest(plan);
  EXPECT_EQ(headline_of(plan, std::nullopt, {}).rivals, "tied with row 2");
  plan.certificate.runner_up.erase(plan.certificate.runner_up.begin());
  plan.certificate.digest = certified_digest(plan);
  EXPECT_EQ(headline_of(plan, std::nullopt, {}).rivals, "row 2: +0.04 %");
}

TEST(PinnedModel, SaysThatPlansHaveOtherWork) {
  PinnedModel model;
  Plan more = free_plan();
  more.workload.samples_per_prompt = 5;
  more.prediction.step_s = 5 * more.prediction.step_s;
  model.pin(shared(free_plan()));
  model.pin(shared(more));
  QStringList work;
  for (int row = 0; row < model.rowCount(); ++row) {
    if (model.headerData(row, Qt::Vertical).toString() != "Workload") continue;
    work = {model.index(row, 0).data().toString(), model.index(row, 1).data().toString()};
  }
  EXPECT_EQ(work, QStringList({"ppo: 1,024 x 1 sequences of 1,024 + 1,024 tokens",
                               "ppo: 1,024 x 5 sequences of 1,024 + 1,024 tokens"}));
}

TEST(PinnedModel, ShowsOnlyInWhatPlansDifferAndWhyOneIsSlower) {
  PinnedModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  const Plan& best = free_plan();
  model.pin(shared(best));
  EXPECT_GT(model.rowCount(), 5);
  model.pin(shared(best));
  EXPECT_EQ(model.count(), 1);
  ASSERT_FALSE(best.certificate.runner_up.empty());
  const PlanAnswer found = answer(best, best.certificate.runner_up.back());
  model.pin(std::get<SharedPlan>(found.result));
  ASSERT_EQ(model.count(), 2);
  ASSERT_GT(model.rowCount(), 0);
  for (int row = 0; row < model.rowCount(); ++row) {
    EXPECT_NE(model.index(row, 0).data().toString(), model.index(row, 1).data().toString());
  }
  EXPECT_TRUE(model.sentence().startsWith("B takes ")) << model.sentence().toStdString();
  // Once it is known what their steps are made of, the cause is named, and has rows.
  StepParts quick, slow;
  quick[StepPart::computation] = slow[StepPart::computation] = Seconds{100};
  quick[StepPart::communication] = Seconds{15.8};
  slow[StepPart::communication] = Seconds{23.1};
  slow[StepPart::bubble] = Seconds{2.5};
  model.setParts({{model.plans()[0], {.parts = quick}}, {model.plans()[1], {.parts = slow}}});
  EXPECT_TRUE(model.sentence().contains(
      " longer than A: communication +7.30 s, pipeline bubble +2.50 s (by phase: "))
      << model.sentence().toStdString();
  std::map<QString, QStringList> rows;
  for (int row = 0; row < model.rowCount(); ++row) {
    rows[model.headerData(row, Qt::Vertical).toString()] = {model.index(row, 0).data().toString(),
                                                            model.index(row, 1).data().toString()};
  }
  EXPECT_EQ(rows["Exposed communication"], QStringList({"15.80 s", "23.10 s (+7.30 s)"}));
  EXPECT_EQ(rows["Pipeline bubble"], QStringList({"0 s", "2.50 s (+2.50 s)"}));
  EXPECT_FALSE(rows.contains("Computation")) << "they do not differ in it";
  model.unpin(0);
  EXPECT_EQ(model.count(), 1);
  EXPECT_TRUE(model.sentence().isEmpty());
}

TEST(Headline, SaysWhatThePlanComesDownTo) {
  const Plan& plan = free_plan();
  const Headline line = headline_of(plan, calibration_of(plan), {});
  EXPECT_TRUE(line.step.contains("+-")) << line.step.toStdString();
  EXPECT_TRUE(line.throughput.endsWith("tok/s/GPU"));
  EXPECT_TRUE(line.fits.startsWith("fits with ")) << line.fits.toStdString();
  EXPECT_TRUE(line.largest.contains(" % in ")) << line.largest.toStdString();
  EXPECT_TRUE(line.rivals.contains("row 2")) << line.rivals.toStdString();
  EXPECT_FALSE(line.text().contains("branches"));
  EXPECT_TRUE(line.text().startsWith(line.step + " \u00b7 " + line.throughput));  // numbers apart
  Plan tied = plan;
  tied.certificate.margin_deviations = 0.5;
  tied.certificate.digest = certified_digest(tied);
  EXPECT_EQ(headline_of(tied, std::nullopt, {}).rivals, "tied with row 2");
  EXPECT_TRUE(headline_of(tied, std::nullopt, {}).fits.contains("not known"));
}

// What is fixed narrows the question, and its proof.
TEST(Headline, AProofSaysAmongWhatByWhatMarginAndWhatIsLeftOpen) {
  Plan plan = free_plan();
  const QString proof = proof_text(plan, 0, {}, {});
  EXPECT_TRUE(proof.startsWith("Proven best of the space"));
  EXPECT_TRUE(proof.contains("another plan would win if it took " +
                             differenceText(plan.certificate.margin)))
      << proof.toStdString();
  EXPECT_TRUE(proof.contains("\nLeft open: token limits")) << proof.toStdString();
  EXPECT_FALSE(proof.contains("Only plans with"));
  const std::vector<std::string> fixed = {"actor.tp=2", "rollout.tp=1"};
  EXPECT_TRUE(proof_text(plan, 0, fixed, {})
                  .contains("\nOnly plans with actor.tp=2 rollout.tp=1 were searched.\n"));
  EXPECT_TRUE(proof_text(plan, 0, fixed, fixed)
                  .contains("rollout.tp=1 were searched; without that another may be better.\n"));
  EXPECT_TRUE(
      proof_text(plan, 0, fixed, {"rollout.tp=1"})
          .contains("rollout.tp=1 were searched; without rollout.tp=1 another may be better.\n"));
  plan.certificate.runner_up.clear();
  plan.certificate.digest = certified_digest(plan);
  EXPECT_EQ(headline_of(plan, std::nullopt, {}).rivals, "no other plan was found");
  EXPECT_EQ(headline_of(plan, std::nullopt, {"actor.tp=2"}).rivals,
            "no other plan with what is fixed");
  EXPECT_FALSE(proof_text(plan, 0, {}, {}).contains("Margin"));
}

TEST(Workspace, ComesBackAsItWasWritten) {
  QTemporaryDir folder;
  const std::filesystem::path file = folder.filePath("deep/window.json").toStdString();
  Problems problems;
  EXPECT_EQ(read_workspace(file, problems), Workspace{});
  Workspace workspace;
  workspace.question = {"qwen2.5-7b", "h100-8", "ppo-7b-1k", 1, 4, {"actor.tp=4", "actor.zero=3"}};
  workspace.question.engine = "verl";
  workspace.question.risk = 0.001;
  workspace.dark = true;
  workspace.metrics = QStringList{"actor/entropy", "critic/score/mean"};
  workspace.smoothing = 60;
  for (const char* path : {"/a", "/b", "/a"}) remember(workspace.recent_plans, path);
  EXPECT_EQ(workspace.recent_plans, (QStringList{"/a", "/b"}));
  write_workspace(workspace, file);
  EXPECT_EQ(read_workspace(file, problems), workspace);
  EXPECT_TRUE(problems.empty());
  for (const char* broken :
       {"", "{", "[]", "{\"tessera_window\": 2}", R"({"tessera_window": 1, "fixed": 3})"}) {
    std::ofstream(file) << broken;
    Problems found;
    EXPECT_EQ(read_workspace(file, found), Workspace{}) << broken;
    EXPECT_FALSE(found.empty()) << broken;
  }
}

TEST(PhaseModel, TheLastPhaseEndsWithThePredictedStep) {
  PhaseModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  for (const Plan* plan : {&digits_plan(), &split_plan()}) {
    model.setPlan(*plan);
    double end = 0;
    for (const PhaseModel::Row& row : model.rows()) end = std::max(end, row.start_s + row.seconds);
    EXPECT_NEAR(end, plan->prediction.step_s, 1e-9 * end);
  }
}

TEST(PhaseModel, PhasesOfOneBlockDoNotOverlapAndWaitForTheirInputs) {
  PhaseModel model;
  const Plan& plan = split_plan();
  model.setPlan(plan);
  const auto& rows = model.rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double end = rows[j].start_s + rows[j].seconds;
      if (rows[j].block == rows[i].block) {
        EXPECT_GE(rows[i].start_s, end - 1e-12);
      }
      const auto& after = plan.schedule[i].after;
      if (std::find(after.begin(), after.end(), rows[j].phase) != after.end()) {
        EXPECT_GE(rows[i].start_s, end - 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::gui
