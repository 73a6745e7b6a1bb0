// SPDX-License-Identifier: GPL-3.0-or-later
// What ranks hold: the mesh of groups and their memory.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QTemporaryDir>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <set>
#include <thread>

#include "cost_models/documents/problem.h"
#include "gui/models/memory_model.h"
#include "gui/models/mesh_model.h"
#include "gui/models/run_reader.h"
#include "gui/models/run_state.h"
#include "planner/explain/memory_account.h"
#include "planner/plan/plan_json.h"
#include "planner/pricing/memory_limit.h"
#include "simulator/remote/heart_watch.h"
#include "simulator/remote/mirror_state.h"
#include "tests/gui/model_tester.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

TEST(MeshModel, HasARowPerNodeAndEveryRankOnce) {
  MeshModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  const Plan& plan = split_plan();
  model.setPlan(shared(plan));
  EXPECT_EQ(model.columnCount(), 8);
  EXPECT_EQ(model.rowCount(), (plan.world_size() + 7) / 8);
  std::set<int> ranks;
  for (int row = 0; row < model.rowCount(); ++row) {
    for (int column = 0; column < model.columnCount(); ++column) {
      const int rank = model.rankAt(model.index(row, column));
      if (rank < 0) continue;
      ranks.insert(rank);
      EXPECT_EQ(model.indexOf(rank), model.index(row, column));
    }
  }
  EXPECT_EQ(ranks.size(), static_cast<std::size_t>(plan.world_size()));
}

// GPUs behind the plan's last rank are the cluster's as well.
TEST(MeshModel, GpusThatThePlanDoesNotUseAreIdle) {
  Plan plan = free_plan();
  const int used = plan.world_size();
  plan.cluster.nodes = 3;
  MeshModel model;
  model.setPlan(shared(plan));
  EXPECT_EQ(model.planRanks(), used);
  ASSERT_EQ(model.ranks(), 24);
  EXPECT_EQ(model.rowCount(), 3);
  EXPECT_EQ(model.coordinate(23), "idle");
  EXPECT_EQ(model.colour(23), colourOfIdle());
  EXPECT_NE(model.colour(0), colourOfIdle());
  model.setMemory(std::vector<RankMemory>(static_cast<std::size_t>(used), {1, 2}));
  model.setColouring({.by = MeshBy::memory});
  EXPECT_EQ(model.colour(23), colourOfIdle());
  EXPECT_NE(model.colour(0), colourOfIdle());
  EXPECT_FALSE(model.describe(23).contains("memory")) << "nothing is known of it";
}

TEST(MeshModel, RanksOfOneGroupShareAColourAndNoOtherRankHasIt) {
  MeshModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  const Plan& plan = split_plan();
  model.setPlan(shared(plan));
  for (const RolePlan& role : plan.roles) {
    const RankMap map = rank_map_of(plan, role.role);
    for (const Axis axis : {Axis::tp, Axis::pp, Axis::dp, Axis::model}) {
      model.setColouring({role.role, axis});
      const auto groups = groups_along(map, axis);
      EXPECT_EQ(model.groupCount(), static_cast<int>(groups.size()));
      std::set<QRgb> colours;
      for (const auto& group : groups) {
        const QRgb first = model.indexOf(group[0]).data(Qt::BackgroundRole).value<QColor>().rgb();
        for (const int rank : group) {
          EXPECT_EQ(model.indexOf(rank).data(Qt::BackgroundRole).value<QColor>().rgb(), first);
        }
        colours.insert(first);
      }
      EXPECT_EQ(colours.size(), groups.size());
    }
  }
}

TEST(MeshModel, PeersAreTheGroupOfTheChosenRank) {
  MeshModel model;
  const Plan& plan = split_plan();
  model.setPlan(shared(plan));
  model.setColouring({Role::actor, Axis::tp});
  const RankMap map = rank_map_of(plan, Role::actor);
  const int chosen = map.ranks[1];
  model.setChosenRank(chosen);
  const std::vector<int> group = group_of(map, Axis::tp, chosen);
  for (int rank = 0; rank < plan.world_size(); ++rank) {
    const bool peer = std::find(group.begin(), group.end(), rank) != group.end();
    EXPECT_EQ(model.indexOf(rank).data(MeshModel::PeerRole).toBool(), peer) << rank;
  }
  model.setChosenRank(-1);
  EXPECT_FALSE(model.indexOf(chosen).data(MeshModel::PeerRole).toBool());
}

TEST(MeshModel, TheToolTipNamesRolesCoordinatesAndPeers) {
  MeshModel model;
  model.setPlan(shared(digits_plan()));
  const QString tip = model.indexOf(3).data(Qt::ToolTipRole).toString();
  EXPECT_TRUE(tip.contains("rank 3"));
  EXPECT_TRUE(tip.contains("<b>actor</b> tp1 pp1 dp0"));
  EXPECT_TRUE(tip.contains("tp group: 2-3"));
  EXPECT_TRUE(tip.contains("pp group: 1, 3"));
}

TEST(MemoryModel, ColumnsSumToWhatThePlannerCountsForTheRank) {
  MemoryModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  for (const Plan* plan : {&digits_plan(), &split_plan()}) {
    const auto calibration = calibration_of(*plan);
    model.setPlan(shared(*plan), calibration);
    for (int rank = 0; rank < plan->world_size(); rank += 3) {
      model.setRank(rank);
      Problems problems;
      const auto account = memory_account(*plan, *calibration, {.rank = rank}, problems);
      for (const auto stacking : {MemoryModel::Stacking::classes, MemoryModel::Stacking::roles}) {
        model.setStacking(stacking);
        ASSERT_EQ(model.rowCount(), static_cast<int>(plan->schedule.size()));
        for (int row = 0; row < model.rowCount(); ++row) {
          std::int64_t shown = 0;
          const int last = model.columnCount() - 1;
          for (int column = 0; column < last; ++column) {
            shown += model.index(row, column).data(MemoryModel::BytesRole).toLongLong();
          }
          EXPECT_EQ(shown, account->phases[static_cast<std::size_t>(row)].sum.value);
          EXPECT_EQ(model.index(row, last).data(MemoryModel::BytesRole).toLongLong(), shown);
        }
      }
    }
  }
}

TEST(MemoryModel, BeginsWithTheFullestRankUnderTheLimitThatThePlannerHas) {
  const Plan& plan = split_plan();
  const auto calibration = calibration_of(plan);
  MemoryModel model;
  model.setPlan(shared(plan), calibration);
  const auto peak = [&] {
    std::int64_t most = 0;
    for (int row = 0; row < model.rowCount(); ++row) most = std::max(most, model.total(row));
    return most;
  };
  const std::int64_t fullest = peak();
  EXPECT_TRUE(model.isFullest());
  EXPECT_EQ(fullest, plan.prediction.peak_bytes.value);
  EXPECT_EQ(model.limit(), usable_memory(plan, *calibration).value);
  EXPECT_LT(model.limit(), model.device());
  for (int rank = 0; rank < plan.world_size(); ++rank) {
    model.setRank(rank);
    EXPECT_LE(peak(), fullest);
  }
}

TEST(MemoryModel, HasTheLimitOfTheRanksOwnType) {
  const PlanAnswer found =
      answer(PlanQuery{.model = "qwen2.5-7b",
                       .cluster = "h800-h20-64",
                       .workload = "grpo-7b-1k",
                       .fixed = {"placement=actor+reference | rollout", "actor.gpu=H800-SXM-80GB",
                                 "rollout.gpu=H20-96GB"}});
  const Plan& plan = *std::get<SharedPlan>(found.result);
  const auto calibration = calibration_of(plan);
  MemoryModel model;
  model.setPlan(shared(plan), calibration);
  std::set<std::int64_t> limits;
  for (int rank = 0; rank < plan.world_size(); ++rank) {
    model.setRank(rank);
    if (!model.problem().isEmpty()) continue;  // nothing runs there
    EXPECT_EQ(model.limit(), usable_memory_of_rank(plan, *calibration, rank).value) << rank;
    limits.insert(model.limit());
  }
  EXPECT_GT(limits.size(), 1u);
}

TEST(MemoryModel, WithoutConstantsSaysWhyItIsEmpty) {
  MemoryModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  model.setPlan(shared(digits_plan()), std::nullopt);
  EXPECT_EQ(model.rowCount(), 0);
  EXPECT_FALSE(model.problem().isEmpty());
}

// A copy of a run elsewhere: heartbeats count, by the other host's clock, and processes do not.
TEST(RunReader, JudgesACopyByHeartbeatsAndSaysSinceWhenNobodyIsReached) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  RankStatus rank{.rank = 0, .pid = 1, .phase = "gen", .step = 4, .phase_since_ns = 5 * kSecond};
  HeartWatch watch;
  EXPECT_EQ(lives_by(watch.look({rank}, 10 * kSecond)), std::vector{Life::elsewhere});
  rank.beats = 5;
  std::vector<Life> lives = lives_by(watch.look({rank}, 11 * kSecond));
  EXPECT_EQ(lives, std::vector{Life::beating});
  EXPECT_EQ(summary_of({rank}, lives, StopReason::none, 1, 0, 11 * kSecond).state,
            RunState::running);
  lives = lives_by(watch.look({rank}, 131 * kSecond));
  EXPECT_EQ(lives, std::vector{Life::beating});
  lives = lives_by(watch.look({rank}, 132 * kSecond));
  EXPECT_EQ(lives, std::vector{Life::silent});
  EXPECT_EQ(summary_of({rank}, lives, StopReason::none, 1, 0, 132 * kSecond).state, RunState::lost);

  QTemporaryDir folder;
  const std::filesystem::path run = folder.path().toStdString();
  const RankStatusFile file(run, 0, {.marks_end = false});
  MirrorState state{.name = {7070, "RUN"}, .as_of_ns = 5 * kSecond, .reached_ns = 0};
  write_mirror_state(state, run);
  RunReader reader(run);
  EXPECT_EQ(reader.read(nullptr).summary.state, RunState::unreached);
  state.reached_ns =
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  write_mirror_state(state, run);
  const RunNews news = reader.read(nullptr);
  EXPECT_NE(news.summary.state, RunState::unreached);
  EXPECT_TRUE(news.copied);
  EXPECT_EQ(news.now_ns, 5 * kSecond);
  state.fault = "Connection refused";
  write_mirror_state(state, run);
  const QString text = reader.read(nullptr).summary.text;
  EXPECT_TRUE(text.startsWith("not reached since ")) << text.toStdString();
  EXPECT_TRUE(text.contains("Connection refused"));
}

// Rules that judge a run by what another plan promises tell its user to stop it.
TEST(RunReader, HoldsARunWithoutAPlanAgainstTheOneThatItsStepsName) {
  const SharedPlan shown = shared(split_plan());
  const double predicted = shown->prediction.step_s.value;
  for (const double named : {predicted, 2 * predicted}) {
    QTemporaryDir folder;
    const std::filesystem::path run = folder.path().toStdString();
    std::ofstream(run / "metrics.jsonl")
        << std::setprecision(17) << R"({"step":1,"data":{"plan/predicted_step_s":)" << named
        << "}}\n";
    RunReader reader(run);
    RunNews news = reader.read(shown);
    const bool held = news.expectation && !news.expectation->predicted.empty();
    EXPECT_EQ(held, named == predicted);
    EXPECT_EQ(news.problems.size(), named == predicted ? 0U : 1U);
    write_plan(*shown, run / "plan.json");
    RunReader own(run);
    news = own.read(nullptr);
    EXPECT_TRUE(news.plan);
    EXPECT_TRUE(news.problems.empty());
  }
}

// Its last line and its end may come while a reading is under way.
TEST(RunReader, HasEveryStepOfARunThatItCallsFinished) {
  for (int delay_us = 0; delay_us < 400; delay_us += 4) {
    QTemporaryDir folder;
    const std::filesystem::path run = folder.path().toStdString();
    std::ofstream metrics(run / "metrics.jsonl");
    const auto step = [&](int number) {
      metrics << R"({"step":)" << number << R"(,"data":{"training/global_step":)" << number << "}}"
              << std::endl;
    };
    RankStatusFile file(run, 0, {.marks_end = false});
    step(1);
    RunReader reader(run);
    std::size_t steps = reader.read(nullptr).steps.steps.size();
    std::thread rank([&] {
      const auto then = std::chrono::steady_clock::now() + std::chrono::microseconds(delay_us);
      while (std::chrono::steady_clock::now() < then) std::this_thread::yield();
      step(2);
      file.finish(0);
    });
    RunState state = RunState::running;
    while (state != RunState::finished) {
      const RunNews news = reader.read(nullptr);
      steps += news.steps.steps.size();
      state = news.summary.state;
    }
    rank.join();
    ASSERT_EQ(steps, 2u) << delay_us;
  }
}

}  // namespace
}  // namespace tessera::gui
