// SPDX-License-Identifier: GPL-3.0-or-later
// The rollout's active sequences: that they are the simulator's, and what the window does with
// them.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QFile>
#include <QLabel>
#include <QPainter>
#include <QSortFilterProxyModel>
#include <algorithm>
#include <cmath>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/fit/derived_calibration.h"
#include "gui/models/colours.h"
#include "gui/pages/export_views.h"
#include "gui/step/replica_model.h"
#include "gui/step_views/tail_canvas.h"
#include "gui/step_views/timeline_canvas.h"
#include "simulator/engine/report.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

const TimelineIndex& split_index() {
  static const TimelineIndex index = [] {
    Problems problems;
    const Plan& plan = split_plan();
    return simulated(plan, *calibration_named(plan.provenance.calibration, plan.cluster, problems));
  }();
  return index;
}

TEST(RolloutSteps, AMomentIsWhatTheSamplesSayThen) {
  const RolloutSteps steps = rollout_steps_of(split_index());
  ASSERT_GT(steps.replicas.size(), 1u);
  const auto& rollout = split_index().simulation.rollout;
  for (const std::int64_t change : changes_of(steps)) {
    for (const std::int64_t ns : {change, change + 1}) {
      std::int64_t active = 0, ended = 0;
      for (std::size_t replica = 0; replica < rollout.size(); ++replica) {
        ActiveSample last;
        for (const ActiveSample& sample : rollout[replica].samples) {
          if (sample.time_ns - steps.tail.start_ns <= ns) last = sample;
        }
        EXPECT_EQ(active_at(steps, replica, static_cast<double>(ns)), last);
        active += last.active;
        ended += last.ended;
      }
      EXPECT_EQ(active_at(steps, static_cast<double>(ns)).active, active);
      EXPECT_EQ(active_at(steps, static_cast<double>(ns)).ended, ended);
    }
  }
}

TEST(RolloutSteps, EveryPixelShowsTheMostThatIsActiveInIt) {
  const RolloutSteps steps = rollout_steps_of(split_index());
  const auto& samples = steps.replicas[0].rollout->samples;
  const auto length = static_cast<double>(steps.length_ns());
  for (const double part : {1.0, 0.1, 0.005}) {
    constexpr int kWidth = 120;
    const TimeAxis axis = fitted(0.6 * length * (1 - part), (0.6 + 0.4 * part) * length, kWidth);
    std::vector<std::int64_t> drawn;
    for (const ActiveColumn& column : columns_of(steps, 0, axis, kWidth)) {
      EXPECT_EQ(column.from, static_cast<int>(drawn.size()));
      drawn.resize(static_cast<std::size_t>(column.to), column.active);
    }
    ASSERT_EQ(drawn.size(), static_cast<std::size_t>(kWidth));
    for (int x = 0; x < kWidth; ++x) {
      std::int64_t most = 0;
      for (std::size_t i = 0; i < samples.size(); ++i) {
        const double from = static_cast<double>(steps.since(samples[i].time_ns));
        const double to = i + 1 < samples.size()
                              ? static_cast<double>(steps.since(samples[i + 1].time_ns))
                              : 2 * length;
        if (from < axis.time_at(x + 1) && to > axis.time_at(x)) {
          most = std::max(most, samples[i].active);
        }
      }
      EXPECT_EQ(drawn[static_cast<std::size_t>(x)], most) << part << " " << x;
    }
  }
}

TEST(RolloutSteps, TheTextSaysTheSimulatorsTimes) {
  ReplicaRollout one{.ranks = {0, 1}, .samples = {{1'000'000'000, 0, 0}}};
  for (std::int64_t ended = 0; ended <= 10; ++ended) {  // the last takes ten times as long
    one.samples.push_back({(2 + ended + (ended == 10 ? 9 : 0)) * 1'000'000'000, 10 - ended, ended});
  }
  TimelineIndex index;
  index.simulation.rollout = {one};
  const QString text = tailText(rollout_steps_of(index));
  EXPECT_TRUE(
      text.startsWith("Half of the 10 responses have ended after 6.00 s, nine tenths after "
                      "10.00 s. The others take another 10.00 s: <b>the tail is 50 %"))
      << text.toStdString();
  one.samples = {{0, 0, 0}, {5, 4, 0}, {2'000'000'000, 0, 4}};
  index.simulation.rollout = {one};
  EXPECT_EQ(tailText(rollout_steps_of(index)),
            "All 4 responses end together, after 2.00 s: there is no tail.");
}

/// Replicas with 320 sequences each until half of the time, and one each from there to its end.
TimelineIndex long_tails(int count) {
  TimelineIndex index;
  for (int i = 0; i < count; ++i) {
    const std::int64_t end = 900 + (37 * i) % 100;
    index.simulation.rollout.push_back(
        {.replica = i, .ranks = {i}, .samples = {{0, 320, 0}, {500, 1, 319}, {end, 0, 320}}});
  }
  return index;
}

TailPicture picture_of(const RolloutSteps& steps, int height) {
  TailPicture picture;
  picture.steps = steps;
  picture.palette = paletteOf(Theme::light);
  picture.width = 400;
  picture.size = {TailPicture::kNames + picture.width, height};
  picture.axis = fitted(0, static_cast<double>(steps.length_ns()), picture.width);
  return picture;
}

TEST(TailPicture, OneSequenceIsSeenToItsEndWhateverTheHeight) {
  const TimelineIndex index = long_tails(16);
  const RolloutSteps steps = rollout_steps_of(index);
  const QRgb colour = colourOf(Phase::gen).rgb();
  for (const int height : {130, 200, 330, 420, 1200}) {
    const TailPicture picture = picture_of(steps, height);
    QImage image(picture.size, QImage::Format_RGB32);
    QPainter painter(&image);
    paint(painter, picture);
    painter.end();
    const std::vector<std::size_t> lanes = picture.lanes();
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const auto end = steps.since(steps.replicas[lanes[lane]].tail.end_ns);
      const int last =
          TailPicture::kNames + static_cast<int>(picture.axis.x_of(static_cast<double>(end))) - 1;
      const int top = picture.top() + static_cast<int>(lane) * picture.lane();
      int pixels = 0;
      for (int y = top; y < top + picture.lane(); ++y) pixels += image.pixel(last, y) == colour;
      EXPECT_GE(pixels, 1) << height << " lane " << lane;
      // A lane does not reach into the one above it.
      EXPECT_NE(image.pixel(TailPicture::kNames + 20, top - 1), colour) << height << " " << lane;
    }
  }
}

TEST(TailPicture, LanesStandInOneOrderWhateverTheHeight) {
  const TimelineIndex index = long_tails(60);
  const RolloutSteps steps = rollout_steps_of(index);
  for (const int height : {120, 200, 280, 400}) {
    const std::vector<std::size_t> lanes = picture_of(steps, height).lanes();
    EXPECT_TRUE(std::is_sorted(lanes.begin(), lanes.end())) << height;
    std::int64_t first_shown = steps.tail.end_ns;
    for (const std::size_t lane : lanes) {
      first_shown = std::min(first_shown, steps.replicas[lane].tail.end_ns);
    }
    for (std::size_t i = 0; i < steps.replicas.size(); ++i) {
      if (std::find(lanes.begin(), lanes.end(), i) != lanes.end()) continue;
      EXPECT_LE(steps.replicas[i].tail.end_ns, first_shown) << height;
    }
  }
  EXPECT_EQ(picture_of(steps, 400).lanes().size(), 60u);
}

TEST(ReplicaModel, KeepsTheContract) {
  ReplicaModel model;
  QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
  const RolloutSteps steps = rollout_steps_of(split_index());
  model.setRollout(steps);
  ASSERT_EQ(model.rowCount(), static_cast<int>(steps.replicas.size()));
  EXPECT_FALSE(model.index(0, ReplicaModel::Active).data().isValid());
  model.setMoment(static_cast<double>(steps.length_ns()));
  qlonglong ended = 0;
  for (int row = 0; row < model.rowCount(); ++row) {
    EXPECT_EQ(model.index(row, ReplicaModel::Active).data(), "0");
    ended += model.index(row, ReplicaModel::Ended).data(ReplicaModel::SortRole).toLongLong();
    for (int column = 0; column < model.columnCount(); ++column) {
      EXPECT_FALSE(model.index(row, column).data().toString().isEmpty());
    }
  }
  EXPECT_EQ(ended, split_plan().workload.sequences());
  model.setRollout({});
  EXPECT_EQ(model.rowCount(), 0);
}

class Tail : public Explore {
 protected:
  void SetUp() override {
    Explore::SetUp();
    ask(PlanQuery{.model = "qwen2.5-7b",
                  .cluster = "h100-8",
                  .workload = "grpo-7b-1k",
                  .fixed = {"rollout.tp=2"}});
    QTest::keyClick(&window, Qt::Key_2, Qt::ControlModifier);
    showTab("Rollout's tail");
    canvas = window.findChild<TailCanvas*>();
    ASSERT_NE(canvas, nullptr);
    ASSERT_TRUE(wait_for([&] { return !canvas->steps().empty(); }));
    QCoreApplication::processEvents();
  }
  Session& session() { return window.session(); }
  QPoint placeOf(int replica, double part) {
    const TailPicture& picture = canvas->picture();
    return {TailPicture::kNames + static_cast<int>(part * canvas->timeWidth()),
            picture.top() + replica * picture.lane() + picture.lane() / 2};
  }
  TailCanvas* canvas = nullptr;
};

TEST_F(Tail, AClickOnALaneChoosesItsRanksAndOthersChooseLanes) {
  ASSERT_EQ(canvas->steps().replicas.size(), 4u);
  QTest::mouseClick(canvas, Qt::LeftButton, {}, placeOf(2, 0.5));
  EXPECT_EQ(session().view(),
            (ViewState{canvas->steps().replicas[2].rollout->ranks.front(), Phase::gen}));
  EXPECT_EQ(canvas->picture().replica, 2);
  EXPECT_EQ(window.findChild<TimelineCanvas*>()->picture().view, session().view());
  session().look({canvas->steps().replicas[1].rollout->ranks.back(), std::nullopt});
  EXPECT_EQ(canvas->picture().replica, 1);
}

TEST_F(Tail, KeysFitTheTailAndGoFromChangeToChange) {
  canvas->setFocus();
  const RolloutTail& tail = canvas->steps().tail;
  QTest::keyClick(canvas, Qt::Key_F);
  EXPECT_NEAR(canvas->axis().ns_per_pixel * canvas->timeWidth(),
              1.08 * static_cast<double>(tail.end_ns - tail.most_ns),
              0.08 * static_cast<double>(tail.end_ns - tail.most_ns));
  QTest::keyClick(canvas, Qt::Key_Home);
  QTest::keyClick(canvas, Qt::Key_Period);
  const auto changes = changes_of(canvas->steps());
  for (std::size_t i = 1; i < 6; ++i) {
    ASSERT_TRUE(canvas->moment());
    EXPECT_EQ(*canvas->moment(), static_cast<double>(changes[i]));
    EXPECT_TRUE(canvas->accessibleDescription().contains("active"));
    QTest::keyClick(canvas, Qt::Key_Period);
  }
  QTest::keyClick(canvas, Qt::Key_Comma);
  EXPECT_EQ(*canvas->moment(), static_cast<double>(changes[5]));
}

TEST_F(Tail, ARowOfTheTableChoosesItsReplica) {
  auto* table = named<QTableView>(window, "Replicas of the rollout");
  ASSERT_EQ(table->model()->rowCount(), 4);
  // The one that ends last stands first.
  const auto& replicas = canvas->steps().replicas;
  const auto last = std::max_element(replicas.begin(), replicas.end(), [](auto& a, auto& b) {
    return a.tail.end_ns < b.tail.end_ns;
  });
  table->setFocus();
  table->setCurrentIndex(table->model()->index(0, 0));
  QTest::keyClick(table, Qt::Key_Return);
  EXPECT_EQ(session().view().rank, last->rollout->ranks.front());
}

std::string content_of(const QString& file) {
  QFile in(file);
  return in.open(QIODevice::ReadOnly) ? in.readAll().toStdString() : std::string();
}

TEST_F(Tail, IsExportedInEveryFormatWithTheSimulatorsNumbers) {
  const QStringList files = exportViews(window, folder.path(), kAllFormats);
  for (const char* end : {".png", ".svg", ".csv", ".json"}) {
    EXPECT_TRUE(files.contains(folder.filePath(QString("rollout_tail") + end))) << end;
  }
  Problems problems;
  const auto file = [&](const char* end) {
    return content_of(folder.filePath(QString("rollout_tail") + end));
  };
  const auto json = parse_json(file(".json"), "json", problems);
  const auto csv = parse_csv(file(".csv"), "csv", problems);
  ASSERT_TRUE(json && csv);
  const Plan& plan = *session().plan();
  const auto report =
      parse_json(to_json(simulate(plan, *session().calibration()), plan, *session().calibration()),
                 "simulate", problems);
  const Node& rollout = report->root.find("rollout")->items.front();
  for (const char* key :
       {"sequences", "start_ns", "half_ended_ns", "nine_tenths_ended_ns", "end_ns"}) {
    EXPECT_EQ(json->root.find(key)->integer, rollout.find(key)->integer) << key;
  }
  EXPECT_EQ(json->root.find("tail_share")->number, rollout.find("tail_share")->number);
  EXPECT_EQ(json->root.find("replicas")->items.size(), rollout.find("replicas")->items.size());
  EXPECT_GT(csv->rows.size(), 100u);
  EXPECT_NE(file(".svg").find("half have ended"), std::string::npos);
}

}  // namespace
}  // namespace tessera::gui
