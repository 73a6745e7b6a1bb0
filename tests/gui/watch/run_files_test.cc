// SPDX-License-Identifier: GPL-3.0-or-later
// Files of a followed run that are missing, broken or emptied, and what is said once they are good
// again.
#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "gui/document/project.h"
#include "gui/models/run_follower.h"
#include "planner/plan/plan_json.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

class RunFiles : public ::testing::Test {
 protected:
  void append(const std::string& text) {
    std::ofstream(path() / "metrics.jsonl", std::ios::app) << text;
  }
  std::filesystem::path path() const { return folder_.path().toStdString(); }

  QTemporaryDir folder_;
};

// One run is drawn once, by its own name.
TEST_F(RunFiles, ARunThatIsReachedThroughALinkIsThatRun) {
  namespace fs = std::filesystem;
  const fs::path run = path() / "first", link = path() / "newest", other = path() / "second";
  const std::string data = std::string(TESSERA_SOURCE_DIR) + "/tests/gui/data/run";
  for (const fs::path& folder : {run, other}) {
    fs::create_directory(folder);
    fs::copy(data + "/metrics.jsonl", folder / "metrics.jsonl");
  }
  fs::create_directory_symlink(run, link);
  RunFollower follower;
  follower.follow(link, false);
  EXPECT_EQ(follower.folder(), run);
  EXPECT_EQ(follower.name(), "first");
  follower.addOther(run, false);
  follower.addOther(link / ".." / "first" / "", false);
  EXPECT_TRUE(follower.others().empty());
  follower.addOther(other, false);
  // Who follows something else has it beside that under one name, too.
  follower.follow(other, false);
  EXPECT_TRUE(follower.others().empty());
  follower.addOther(link, false);
  follower.addOther(run, false);
  ASSERT_EQ(follower.others().size(), 1U);
  EXPECT_EQ(follower.others().front().folder, run);
  // A project that names it by the link has it once.
  fs::create_directory_symlink(path(), path() / "here");
  std::ofstream(path() / "here/study.json")
      << "{\"tessera_project\": 1, \"runs\": [\"newest\", \"first\"]}";
  Problems problems;
  const auto project = read_project(path() / "here/study.json", problems);
  ASSERT_TRUE(project);
  EXPECT_EQ(project->runs, std::vector<RunPlace>{run});
  write_project(*project, path() / "here/study.json");
  std::ifstream written(path() / "study.json");
  const std::string text{std::istreambuf_iterator<char>(written), {}};
  EXPECT_NE(text.find("\"first\""), std::string::npos) << "so that both can be moved: " << text;
}

// As `tessera compare` reads it: verl's console log in a folder of its own, or in place of one.
TEST_F(RunFiles, ALogOfVerlIsFollowedAsARun) {
  const std::string logs = std::string(TESSERA_SOURCE_DIR) + "/tests/fixtures/verl_logs";
  RunFollower lines, console;
  lines.follow(logs, false);
  std::ifstream whole(logs + "/console.log");
  const std::string text{std::istreambuf_iterator<char>(whole), {}};
  const std::size_t half = text.find('\n', text.find("step:2 ")) + 10;
  const std::filesystem::path log = path() / "console.log";
  std::ofstream(log) << text.substr(0, half);
  console.follow(log, false);
  EXPECT_EQ(console.name(), "console.log");
  const int before = console.steps()->rowCount();
  EXPECT_GT(before, 0);
  EXPECT_LT(before, lines.steps()->rowCount());
  std::ofstream(log, std::ios::app) << text.substr(half);
  console.poll();
  EXPECT_EQ(console.steps()->steps(), lines.steps()->steps());
  EXPECT_EQ(console.steps()->series("timing_s/gen"), lines.steps()->series("timing_s/gen"));
  EXPECT_EQ(console.ranks()->running(), 0);
  EXPECT_EQ(console.summary().text, lines.summary().text);
  EXPECT_TRUE(console.log().contains("step:2 ")) << console.log().toStdString();
  // The steps of a folder are that folder.
  console.follow(logs + "/metrics.jsonl", false);
  EXPECT_EQ(console.folder(), lines.folder());
  console.addOther(log, false);
  ASSERT_EQ(console.others().size(), 1U);
  EXPECT_EQ(console.others().front().steps->rowCount(), lines.steps()->rowCount());
}

// All that the others left is that they ended well.
TEST_F(RunFiles, ARankWithoutAFileThatCanBeReadIsNotLeftOut) {
  RankStatusFile file(path(), 1);
  RunFollower follower;
  follower.follow(path(), false);
  EXPECT_EQ(follower.summary().text, "1 ranks are loading") << "rank 0 may be about to start";
  file.enter("gen", 7);
  follower.poll();
  EXPECT_EQ(follower.summary().text,
            "1 ranks are running; of rank 0 nothing is known: its file is missing");
  file.finish(0);
  follower.poll();
  EXPECT_EQ(follower.summary().state, RunState::unseen);
  EXPECT_EQ(follower.summary().text,
            "1 of 2 ranks ended well; of rank 0 nothing is known: its file is missing");
  std::ofstream(path() / "ranks/0") << "half a file";
  follower.poll();
  EXPECT_NE(follower.summary().state, RunState::finished);
  EXPECT_TRUE(follower.summary().text.contains("its file cannot be read: 11 bytes instead of "));
  RankStateModel* const ranks = follower.ranks();
  ASSERT_EQ(ranks->rowCount(), 2);
  const QModelIndex state = ranks->index(0, RankStateModel::State);
  EXPECT_EQ(ranks->index(0, RankStateModel::Rank).data().toInt(), 0);
  EXPECT_TRUE(state.data().toString().startsWith("its file cannot be read")) << "the worst first";
  EXPECT_TRUE(state.data(RankStateModel::BadRole).toBool());
}

// Of two ranks that a plan places.
TEST_F(RunFiles, TheRanksOfItsPlanAreAllAskedFor) {
  write_plan(digits_plan(), path() / "plan.json");
  std::vector<std::unique_ptr<RankStatusFile>> files;
  RunFollower follower;
  for (int rank = 0; rank < digits_plan().world_size(); ++rank) {
    files.push_back(std::make_unique<RankStatusFile>(path(), rank, RankLife{.marks_end = false}));
    files.back()->finish(0);
    follower.follow(path(), false);
    const bool all = rank + 1 == digits_plan().world_size();
    EXPECT_EQ(follower.summary().state == RunState::finished, all) << rank;
  }
}

TEST_F(RunFiles, WhatWasWrongWithAFileIsGoneOnceItIsGoodAgain) {
  RunFollower follower;
  QStringList found, gone;
  QObject::connect(&follower, &RunFollower::problemsFound,
                   [&](const QString& text) { found << text; });
  QObject::connect(&follower, &RunFollower::problemsGone,
                   [&](const QString& text) { gone << text; });
  const auto write = [&](const char* name, const std::string& text) {
    const auto file = path() / name;
    std::ofstream(file) << text;
    static int second = 0;  // so that it is seen that somebody wrote it anew
    std::filesystem::last_write_time(
        file, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(++second));
  };
  write("metrics.jsonl", "{\"step\": 1, \"data\": {\"timing_s/step\": 2}}\nbroken\n");
  follower.follow(path(), false);
  follower.poll();
  ASSERT_EQ(found.size(), 1);
  EXPECT_TRUE(gone.empty()) << "the line stands there";
  write("metrics.jsonl", "{\"step\": 1, \"data\": {}}\n");
  follower.poll();
  EXPECT_EQ(gone, found);
  // A plan that is mended is the run's from then on.
  write("plan.json", "{");
  follower.poll();
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(follower.plan(), nullptr);
  write("plan.json", to_json(digits_plan()));
  follower.poll();
  EXPECT_EQ(gone.size(), 2);
  ASSERT_NE(follower.plan(), nullptr);
  EXPECT_EQ(*follower.plan(), digits_plan());
}

TEST_F(RunFiles, AFolderInPlaceOfTheMetricsIsForgottenWithIt) {
  std::filesystem::create_directory(path() / "metrics.jsonl");
  RunFollower follower;
  QStringList gone;
  QObject::connect(&follower, &RunFollower::problemsGone,
                   [&](const QString& text) { gone << text; });
  follower.follow(path(), false);
  follower.poll();
  EXPECT_TRUE(gone.empty());
  std::filesystem::remove(path() / "metrics.jsonl");
  append("{\"step\": 1, \"data\": {}}\n");
  follower.poll();
  EXPECT_EQ(gone.size(), 1);
  EXPECT_EQ(follower.steps()->rowCount(), 1);
}

// What was wrong with the run before is neither gone nor known of the next one.
TEST_F(RunFiles, FaultsOfOneRunAreNotThoseOfTheNext) {
  QTemporaryDir other;
  const std::filesystem::path next = other.path().toStdString();
  append("no json\n");
  std::ofstream(next / "metrics.jsonl") << "{\"step\": 1, \"data\": {}}\n";
  RunFollower follower;
  QStringList found, gone;
  QObject::connect(&follower, &RunFollower::problemsFound,
                   [&](const QString& text) { found << text; });
  QObject::connect(&follower, &RunFollower::problemsGone,
                   [&](const QString& text) { gone << text; });
  follower.follow(path(), false);
  ASSERT_EQ(found.size(), 1);
  follower.follow(next, false);
  EXPECT_TRUE(gone.empty());
  follower.follow(path(), false);
  EXPECT_EQ(found.size(), 2) << "told again";
}

// What they judged is not there any more.
TEST_F(RunFiles, RulesForgetTheLastStepWhenTheMetricsAreEmptied) {
  append("{\"step\": 1, \"data\": {\"training/not_finite\": 1}}\n");
  RunFollower follower;
  follower.follow(path(), false);
  ASSERT_GT(follower.rules()->violated(), 0);
  std::ofstream(path() / "metrics.jsonl", std::ios::trunc).flush();
  follower.poll();
  EXPECT_EQ(follower.steps()->rowCount(), 0);
  EXPECT_EQ(follower.rules()->violated(), 0);
  EXPECT_TRUE(follower.rules()->banner().isEmpty());
}

TEST_F(RunFiles, APredictionHasItsErrorBarBeforeTheFirstStep) {
  const Plan& plan = free_plan();
  ASSERT_GT(plan.prediction.step_error_s.value, 0);
  RunFollower follower;
  follower.follow(path(), false);
  follower.choosePlan(shared(plan));
  const Comparison& shown = follower.comparison()->comparison();
  ASSERT_FALSE(shown.phases.empty());
  EXPECT_EQ(shown.steps, 0);
  EXPECT_NEAR(shown.phases.back().predicted_deviation_s / plan.prediction.step_error_s.value, 1,
              1e-6);
  EXPECT_GT(shown.phases.front().predicted_deviation_s, 0);
  EXPECT_TRUE(follower.comparison()->gaps().isEmpty());
}

// A folder that was deleted or unmounted is no run that has not begun.
TEST_F(RunFiles, AFolderThatIsGoneIsSaidToBe) {
  const std::filesystem::path run = path() / "run";
  std::filesystem::create_directories(run);
  RankStatusFile(run, 0).enter("gen", 7);
  RunFollower follower;
  follower.follow(run, false);
  EXPECT_EQ(follower.summary().text, "1 ranks are running");
  std::filesystem::rename(run, path() / "elsewhere");
  follower.poll();
  EXPECT_EQ(follower.summary().state, RunState::unseen);
  EXPECT_TRUE(follower.summary().text.startsWith("the folder of the run is gone: "))
      << follower.summary().text.toStdString();
  std::filesystem::rename(path() / "elsewhere", run);
  follower.poll();
  EXPECT_FALSE(follower.summary().text.contains("gone"));
}

// Steps may take minutes, and the pause begins between two of them.
TEST_F(RunFiles, APauseThatIsAskedForIsSaidBeforeItBegins) {
  RankStatusFile rank(path(), 0, RankLife{.marks_end = false});
  rank.enter("gen", 3);
  RunFollower follower;
  follower.follow(path(), false);
  ASSERT_EQ(follower.summary().state, RunState::running);
  const QString before = follower.summary().text;
  request_pause(path(), "a test");
  follower.poll();
  EXPECT_EQ(follower.summary().text,
            before + "; it was asked to pause, and does once this step has ended");
  rank.enter("paused", 3);
  follower.poll();
  EXPECT_EQ(follower.summary().text, "paused after step 3");
}

}  // namespace
}  // namespace tessera::gui
