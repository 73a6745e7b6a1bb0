// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QAbstractItemModelTester>
#include <QCoreApplication>
#include <QElapsedTimer>
#include <QTemporaryDir>
#include <fstream>

#include "gui/models/run_follower.h"
#include "tests/gui/model_tester.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

StepNumbers step_of(std::int64_t step, double reward) {
  return {step, {{"critic/score/mean", reward}, {"timing_s/gen", 0.5}, {"timing_s/step", 1.0}}};
}

TEST(RunModel, AStepIsARowAndANameASeries) {
  RunModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  model.append(columns_of({step_of(1, 0.1), step_of(2, 0.2)}));
  model.append(columns_of({step_of(3, 0.4)}));
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
  model.append(columns_of({step_of(1, 0.1), step_of(2, 0.2), step_of(3, 0.3)}));
  model.append(columns_of({step_of(2, 0.9)}));
  const std::vector<QPointF> expected{{1, 0.1}, {2, 0.9}};
  EXPECT_EQ(model.series("critic/score/mean"), expected);
}

TEST(RankStateModel, ARankThatStoppedWithoutAWordIsLostAndItsClockStands) {
  RankStateModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  RankStateModel::Row running{
      {.rank = 0, .phase = "gen", .step = 4, .phase_since_ns = 1'000'000'000}, Life::here};
  RankStateModel::Row lost{{.rank = 1, .phase = "update_actor", .phase_since_ns = 1'000'000'000},
                           Life::gone};
  RankStateModel::Row finished{{.rank = 2, .state = RankState::finished}, Life::gone};
  RankStateModel::Row terminated{{.rank = 3, .state = RankState::terminated}, Life::gone};
  RankStateModel::Row unseen{{.rank = 4, .phase = "gen"}, Life::elsewhere};
  RankStateModel::Row asked{{.rank = 5, .state = RankState::finished, .exit_code = 130},
                            Life::gone};
  const std::vector<RankStateModel::Row> rows{running, lost, finished, terminated, unseen, asked};
  model.setStates(rows, 3'000'000'000);
  // The worst first; of those that run the one that is behind.
  const char* const expected[] = {"lost",         "on another host", "running",
                                  "finished (0)", "terminated",      "stopped (130)"};
  for (int row = 0; row < 6; ++row) {
    const QModelIndex state = model.index(row, RankStateModel::State);
    EXPECT_EQ(state.data().toString(), expected[row]);
    EXPECT_EQ(state.data(RankStateModel::BadRole).toBool(), row == 0);
  }
  const auto since = [&](int row) {
    return model.index(row, RankStateModel::Since).data().toString();
  };
  EXPECT_EQ(since(2), "2.00 s");
  const QString stands = since(0);
  model.setStates(rows, 9'000'000'000);
  EXPECT_EQ(since(2), "8.00 s");
  EXPECT_EQ(since(0), stands);
  EXPECT_EQ(model.running(), 2);
}

TEST(RankStateModel, ARankThatPausesDoesNotRun) {
  const RankStatus status{.rank = 0, .phase = "paused", .step = 4};
  EXPECT_EQ(stateText({status, Life::here}), "paused");
  EXPECT_EQ(stateText({status, Life::beating}), "paused");
  EXPECT_EQ(stateText({status, Life::gone}), "lost");
  EXPECT_EQ(ranks_now({{status, Life::here}}, 1).at(0).text, "paused after step 4");
}

TEST(RunState, AProcessIsJudgedWhereItRuns) {
  const std::vector<RankStatus> ranks{{.rank = 0, .phase = "gen"}, {.rank = 1, .phase = "gen"}};
  using Lives = std::vector<Life>;
  const std::vector<bool> none{false, false}, one{true, false};
  EXPECT_EQ(lives_of(ranks, one, {"here", true}, "here", 0), (Lives{Life::here, Life::gone}));
  EXPECT_EQ(lives_of(ranks, none, {"here", false}, "here", 0), (Lives{Life::gone, Life::gone}));
  // Another host, even where a process of that number is here; another namespace of this host.
  EXPECT_EQ(lives_of(ranks, one, {"there", false}, "here", 0),
            (Lives{Life::elsewhere, Life::elsewhere}));
  EXPECT_EQ(lives_of(ranks, none, {"here", true}, "here", 0),
            (Lives{Life::elsewhere, Life::elsewhere}));
  // The second of two hosts.
  EXPECT_EQ(lives_of(ranks, one, {"here", true}, "here", 1), (Lives{Life::here, Life::elsewhere}));
}

TEST(RunState, IsToldApart) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t now = 1000 * kSecond;
  std::vector<RankStatus> ranks{
      {.rank = 0, .phase = "gen", .step = 3, .phase_since_ns = 995 * kSecond},
      {.rank = 2, .phase = "old_log_prob", .step = 67, .phase_since_ns = 996 * kSecond}};
  std::vector<Life> lives{Life::here, Life::here};
  const auto state = [&](StopReason stopped = StopReason::none) {
    return summary_of(ranks, lives, stopped, 2, 0, now);
  };
  EXPECT_EQ(state().state, RunState::running);
  lives[1] = Life::gone;
  EXPECT_EQ(state().state, RunState::lost);
  EXPECT_EQ(state().text, "rank 2 was lost in old_log_prob of step 67");
  lives = {Life::elsewhere, Life::elsewhere};
  EXPECT_EQ(state().state, RunState::unseen);
  lives = {Life::here, Life::here};
  ranks[0].phase_since_ns = ranks[1].phase_since_ns = 900 * kSecond;
  EXPECT_EQ(state().state, RunState::stalled);
  ranks[1].phase_since_ns -= kSecond;  // in its phase for longest
  EXPECT_EQ(state().stalled_rank, 2);
  // The rank that the line names is the first of the table.
  RankStateModel model;
  model.setStates({{ranks[0], Life::here}, {ranks[1], Life::here, {}, true}}, now);
  EXPECT_EQ(model.index(0, RankStateModel::Rank).data(), 2);
  EXPECT_EQ(model.index(0, RankStateModel::State).data(), "stalled");
  EXPECT_TRUE(model.index(0, RankStateModel::State).data(RankStateModel::BadRole).toBool());
  EXPECT_FALSE(model.index(1, RankStateModel::State).data(RankStateModel::BadRole).toBool());
  for (RankStatus& rank : ranks) rank.phase = "load";
  EXPECT_EQ(summary_of(ranks, lives, StopReason::none, 0, 0, now).state, RunState::loading);
  for (RankStatus& rank : ranks) rank.phase = "paused";  // for however long
  EXPECT_EQ(state().state, RunState::paused);
  EXPECT_NE(state(StopReason::stop).state, RunState::paused);
  for (RankStatus& rank : ranks) rank.state = RankState::finished;
  EXPECT_EQ(state().state, RunState::finished);
  EXPECT_EQ(state(StopReason::stop).state, RunState::finished);  // it was done before it heard
  ranks[1].exit_code = 130;  // as `tessera run` ends where it is asked to
  EXPECT_EQ(state(StopReason::stop).text, "stopped as it was asked to");
  EXPECT_EQ(state().text, "stopped by a rule");
  ranks[1].exit_code = 138;
  EXPECT_EQ(state(StopReason::requeue).text, "saved, to be queued again");
  ranks[1].exit_code = 71;
  EXPECT_EQ(state().state, RunState::failed);
  EXPECT_EQ(summary_of({}, {}, StopReason::none, 0, 0, now).state, RunState::none);
}

// As `tessera run` and `tessera doctor` judge: the cause is not the first rank that noticed.
TEST(RunState, NamesTheRankThatWasLostAndNotOneThatWaitedForIt) {
  const std::vector<RankStatus> ranks{
      {.rank = 0, .phase = "gen", .step = 3, .state = RankState::finished, .exit_code = 75},
      {.rank = 1, .phase = "gen", .step = 3}};
  const auto summary = [&](Life second, StopReason stopped = StopReason::none) {
    return summary_of(ranks, {Life::gone, second}, stopped, 2, 0, 0);
  };
  EXPECT_EQ(summary(Life::gone).state, RunState::lost);
  EXPECT_EQ(summary(Life::gone).text, "rank 1 was lost in gen of step 3");
  EXPECT_EQ(summary(Life::silent).text,
            "rank 1 has no heartbeat any more, its last was in gen of step 3");
  EXPECT_EQ(summary(Life::here).text, "rank 0 waited for another in vain in gen of step 3");
  EXPECT_EQ(summary(Life::gone, StopReason::stop).state, RunState::stopped);
}

TEST(RunModel, ManyStepsComeInAsOneBlockOfRows) {
  RunModel model;
  int inserted = 0;
  QObject::connect(&model, &QAbstractItemModel::rowsInserted, [&] { ++inserted; });
  std::vector<StepNumbers> steps;
  for (int step = 1; step <= 20000; ++step) steps.push_back(step_of(step, step));
  model.append(columns_of(steps));
  EXPECT_EQ(inserted, 1);
  EXPECT_EQ(model.rowCount(), 20000);
  EXPECT_EQ(model.series("critic/score/mean").back(), QPointF(20000, 20000));
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

TEST_F(RunFolder, AHundredBrokenLinesAreToldWithTheirPlace) {
  std::ifstream sample(std::string(TESSERA_SOURCE_DIR) + "/tests/gui/data/run/metrics.jsonl");
  std::string lines[3];
  for (std::string& line : lines) std::getline(sample, line);
  int refused = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    std::string broken = lines[1];
    const std::size_t at = i * broken.size() / 100;
    switch (i % 3) {
      case 0:
        broken.resize(std::max<std::size_t>(1, at));
        break;
      case 1:
        broken[at] = '\x01';
        break;
      default:
        broken.insert(at, "\"");
        break;
    }
    std::ofstream(path() / "metrics.jsonl") << lines[0] << "\n"
                                            << broken << "\n"
                                            << lines[2] << "\n";
    RunFollower follower;
    QString said;
    QObject::connect(&follower, &RunFollower::problemsFound,
                     [&](const QString& text) { said = text; });
    follower.follow(path(), false);
    if (follower.steps()->rowCount() == 3) continue;  // it is a step all the same
    ++refused;
    EXPECT_EQ(follower.steps()->rowCount(), 2) << i;  // the others are there
    EXPECT_TRUE(said.contains("metrics.jsonl:2:")) << i << ": " << said.toStdString();
  }
  EXPECT_GE(refused, 90);
}

TEST_F(RunFolder, RanksAreReadFromTheirFiles) {
  RankStatusFile file(path(), 0);
  file.enter("update_actor", 7);
  RunFollower follower;
  follower.follow(path(), false);
  ASSERT_EQ(follower.ranks()->rowCount(), 1);
  const RankStateModel::Row& row = follower.ranks()->rows()[0];
  EXPECT_EQ(row.status.rank, 0);
  EXPECT_EQ(row.status.phase, "update_actor");
  EXPECT_EQ(row.status.step, 7);
  EXPECT_EQ(row.status.pid, getpid());
  EXPECT_EQ(follower.ranks()->running(), 1);
  file.finish(0);
  follower.poll();
  EXPECT_EQ(follower.ranks()->running(), 0);
  EXPECT_EQ(follower.summary().state, RunState::finished);
}

/// A rank that ended without a word, of a process that is gone for certain.
void leave_a_lost_rank(const std::filesystem::path& run) {
  const pid_t child = ::fork();
  if (child == 0) {
    RankStatusFile file(run, 0);
    file.enter("old_log_prob", 5);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

TEST_F(RunFolder, ARankOfAnotherHostIsNotLost) {
  leave_a_lost_rank(path());
  RunFollower follower;
  follower.follow(path(), false);
  EXPECT_EQ(follower.summary().state, RunState::lost);
  std::ofstream(path() / "lock") << "process 17 on a-host-that-is-not-this-one\n";
  follower.poll();
  EXPECT_EQ(follower.summary().state, RunState::unseen);
  EXPECT_EQ(follower.ranks()->rows().at(0).life, Life::elsewhere);
}

TEST_F(RunFolder, ALiveRunIsReadInTheBackground) {
  for (int step = 1; step <= 500; ++step) {
    append("{\"step\": " + std::to_string(step) + ", \"data\": {\"timing_s/step\": 2}}\n");
  }
  RunFollower follower;
  follower.follow(path(), true);
  EXPECT_TRUE(follower.isLoading());
  EXPECT_EQ(follower.steps()->rowCount(), 0);
  QElapsedTimer timer;
  timer.start();
  while (follower.isLoading() && timer.elapsed() < 30000) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
  }
  EXPECT_EQ(follower.steps()->rowCount(), 500);
}

TEST_F(RunFolder, AStopThatIsAskedForReachesTheRanks) {
  RankStatusFile rank(path(), 0);
  RunFollower follower;
  follower.follow(path(), false);
  EXPECT_FALSE(follower.stopRequested());
  follower.tell(RunSignal::stop);
  EXPECT_TRUE(follower.isTelling());
  QElapsedTimer timer;
  timer.start();
  while (follower.isTelling() && timer.elapsed() < 30000) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
  }
  EXPECT_TRUE(stop_requested(path()));
  EXPECT_TRUE(follower.stopRequested());
}

TEST_F(RunFolder, PredictionStandsBesideTheMeans) {
  RunFollower follower;
  const auto plan = shared(digits_plan());
  follower.setPlan(plan);
  for (int step = 1; step <= 4; ++step) {
    append("{\"step\": " + std::to_string(step) +
           ", \"data\": {\"timing_s/gen\": 0.5, \"timing_s/step\": 2, \"reshard/bytes\": 1}}\n");
  }
  follower.follow(path(), false);
  const Comparison& shown = follower.comparison()->comparison();
  EXPECT_TRUE(shown.phases.empty());  // nobody said that it ran the plan that is shown
  EXPECT_EQ(follower.plan(), nullptr);
  EXPECT_TRUE(follower.lacksPlan());
  follower.choosePlan(plan);
  EXPECT_EQ(follower.plan(), plan.get());
  EXPECT_TRUE(follower.whoseTimes().startsWith("held against the plan "));
  EXPECT_EQ(shown.steps, 3);  // the first is warm-up
  ASSERT_FALSE(shown.phases.empty());
  EXPECT_EQ(shown.phases.back().phase, "step");
  EXPECT_DOUBLE_EQ(shown.phases.back().measured_s, 2);
  EXPECT_DOUBLE_EQ(shown.phases.back().predicted_s, digits_plan().prediction.step_s);
  ASSERT_EQ(shown.bytes.size(), 1u);
  EXPECT_FALSE(shown.bytes[0].agrees());
  const int last = follower.comparison()->rowCount() - 1;
  EXPECT_EQ(follower.comparison()->index(last, ComparisonModel::RelativeError).data().toString(),
            "NOT EQUAL in 3 steps");
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QCoreApplication application(argc, argv);  // what is read in the background arrives by it
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
