// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>
#include <unistd.h>

#include <QAbstractItemModelTester>
#include <QTemporaryDir>
#include <fstream>

#include "gui/models/run_follower.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

constexpr auto kFatal = QAbstractItemModelTester::FailureReportingMode::Fatal;

StepNumbers step_of(std::int64_t step, double reward) {
  return {step, {{"critic/score/mean", reward}, {"timing_s/gen", 0.5}, {"timing_s/step", 1.0}}};
}

TEST(RunModel, AStepIsARowAndANameASeries) {
  RunModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  model.append({step_of(1, 0.1), step_of(2, 0.2)});
  model.append({step_of(3, 0.4)});
  EXPECT_EQ(model.rowCount(), 3);
  const std::vector<QPointF> expected{{1, 0.1}, {2, 0.2}, {3, 0.4}};
  EXPECT_EQ(model.series("critic/score/mean"), expected);
  EXPECT_TRUE(model.series("actor/kl_loss").empty());
  EXPECT_EQ(model.phases(), std::vector<Phase>{Phase::gen});
  EXPECT_EQ(model.index(2, 1).data().toString(), "0.4");
}

TEST(RunModel, AResumedRunReplacesTheStepsFromItsFirstOn) {
  RunModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  model.append({step_of(1, 0.1), step_of(2, 0.2), step_of(3, 0.3)});
  model.append({step_of(2, 0.9)});
  const std::vector<QPointF> expected{{1, 0.1}, {2, 0.9}};
  EXPECT_EQ(model.series("critic/score/mean"), expected);
}

TEST(RankStateModel, ARankThatStoppedWithoutAWordHasDied) {
  RankStateModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  RankStateModel::Row running{
      {.rank = 0, .phase = "gen", .step = 4, .phase_since_ns = 1'000'000'000}, true};
  RankStateModel::Row died{{.rank = 1, .phase = "update_actor"}, false};
  RankStateModel::Row finished{{.rank = 2, .state = RankState::finished}, false};
  RankStateModel::Row terminated{{.rank = 3, .state = RankState::terminated}, false};
  model.setStates({running, died, finished, terminated}, 3'000'000'000);
  const char* const expected[] = {"running", "died", "finished (0)", "terminated"};
  for (int row = 0; row < 4; ++row) {
    EXPECT_EQ(model.index(row, RankStateModel::State).data().toString(), expected[row]);
  }
  EXPECT_EQ(model.index(0, RankStateModel::Since).data().toString(), "2.00 s");
  EXPECT_EQ(model.running(), 1);
}

class RunFolder : public ::testing::Test {
 protected:
  void append(const std::string& text) {
    std::ofstream(path() / "metrics.jsonl", std::ios::app) << text;
  }
  std::filesystem::path path() const { return folder_.path().toStdString(); }

  QTemporaryDir folder_;
};

TEST_F(RunFolder, AGrowingFileIsFollowedLineByLine) {
  RunFollower follower;
  QAbstractItemModelTester steps(follower.steps(), kFatal), ranks(follower.ranks(), kFatal),
      comparison(follower.comparison(), kFatal);
  follower.follow(path(), false);
  EXPECT_EQ(follower.steps()->rowCount(), 0);
  append("{\"step\": 1, \"data\": {\"critic/score/mean\": 0.5}}\n{\"step\": 2, \"da");
  follower.poll();
  EXPECT_EQ(follower.steps()->rowCount(), 1);
  append("ta\": {\"critic/score/mean\": 0.75}}\n");
  follower.poll();
  const std::vector<QPointF> expected{{1, 0.5}, {2, 0.75}};
  EXPECT_EQ(follower.steps()->series("critic/score/mean"), expected);
}

TEST_F(RunFolder, AMalformedLineIsNamedOnceAndPassedOver) {
  RunFollower follower;
  QStringList said;
  QObject::connect(&follower, &RunFollower::problemsFound,
                   [&](const QString& text) { said << text; });
  append("{\"step\": 1, \"data\": {}}\nbroken\n{\"step\": 3, \"data\": {}}\n");
  follower.follow(path(), false);
  follower.poll();
  EXPECT_EQ(follower.steps()->rowCount(), 2);
  ASSERT_EQ(said.size(), 1);
  EXPECT_TRUE(said[0].contains("metrics.jsonl:2:"));
}

TEST_F(RunFolder, RanksAreReadFromTheirFiles) {
  RankStatusFile file(path(), 3);
  file.enter("update_actor", 7);
  RunFollower follower;
  follower.follow(path(), false);
  ASSERT_EQ(follower.ranks()->rowCount(), 1);
  const RankStateModel::Row& row = follower.ranks()->rows()[0];
  EXPECT_EQ(row.status.rank, 3);
  EXPECT_EQ(row.status.phase, "update_actor");
  EXPECT_EQ(row.status.step, 7);
  EXPECT_EQ(row.status.pid, getpid());
  EXPECT_EQ(follower.ranks()->running(), 1);
  file.finish(0);
  follower.poll();
  EXPECT_EQ(follower.ranks()->running(), 0);
}

TEST_F(RunFolder, AStopThatIsAskedForReachesTheRanks) {
  RunFollower follower;
  follower.follow(path(), false);
  EXPECT_FALSE(follower.stopRequested());
  follower.requestStop();
  EXPECT_TRUE(stop_requested(path()));
  EXPECT_TRUE(follower.stopRequested());
}

TEST_F(RunFolder, PredictionStandsBesideTheMeans) {
  RunFollower follower;
  follower.setPlan(digits_plan());
  for (int step = 1; step <= 4; ++step) {
    append("{\"step\": " + std::to_string(step) +
           ", \"data\": {\"timing_s/gen\": 0.5, \"timing_s/step\": 2, \"reshard/bytes\": 1}}\n");
  }
  follower.follow(path(), false);
  const Comparison& shown = follower.comparison()->comparison();
  EXPECT_EQ(shown.steps, 2);
  ASSERT_FALSE(shown.phases.empty());
  EXPECT_EQ(shown.phases.back().phase, "step");
  EXPECT_DOUBLE_EQ(shown.phases.back().measured_s, 2);
  EXPECT_DOUBLE_EQ(shown.phases.back().predicted_s, digits_plan().prediction.step_s);
  ASSERT_EQ(shown.bytes.size(), 1u);
  EXPECT_FALSE(shown.bytes[0].agrees());
  const int last = follower.comparison()->rowCount() - 1;
  EXPECT_EQ(follower.comparison()->index(last, ComparisonModel::RelativeError).data().toString(),
            "NOT EQUAL in 2 steps");
}

}  // namespace
}  // namespace tessera::gui
