// SPDX-License-Identifier: GPL-3.0-or-later
// The mesh coloured by what planner, simulator and heartbeats say of every rank.
#include <gtest/gtest.h>

#include <QComboBox>
#include <QLabel>
#include <QTemporaryDir>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "gui/mesh/mesh_canvas.h"
#include "gui/timeline/link_steps.h"
#include "gui/views/mesh_view.h"
#include "planner/plan/plan_json.h"
#include "simulator/timeline/rank_status.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

class Measures : public Explore {
 protected:
  void SetUp() override {
    Explore::SetUp();
    view = window.findChild<MeshView*>();
    ASSERT_NE(view, nullptr);
    canvas = view->findChild<MeshCanvas*>();
  }
  void TearDown() override { QApplication::setPalette(palette); }
  Session& session() { return window.session(); }
  MeshModel& mesh() { return *session().mesh(); }
  QComboBox* choice() { return named<QComboBox>(window, "Meaning of the mesh's colours"); }
  /// As a person does: the box by keys.
  void choose(const QString& text) {
    choice()->setFocus();
    QTest::keyClick(choice(), Qt::Key_Home);
    for (int i = 0; i < choice()->count() && choice()->currentText() != text; ++i) {
      QTest::keyClick(choice(), Qt::Key_Down);
    }
    EXPECT_EQ(choice()->currentText(), text);
  }
  QString legend() {
    QString text;
    for (const QLabel* label : view->findChildren<QLabel*>()) {
      if (label->text().contains("fill:")) text = label->text();
    }
    return text;
  }
  QColor middleOf(int rank) {
    const QImage image = canvas->grab().toImage();
    // Above the number, below the upper edge.
    const QRectF cell = canvas->sight().pixels(canvas->layout().gpu(rank));
    const QPoint at = canvas->placeOf(rank) - QPoint(static_cast<int>(cell.width() / 2) - 4,
                                                     static_cast<int>(cell.height() / 2) - 4);
    return image.pixelColor(at * image.devicePixelRatio());
  }
  const QPalette palette = QApplication::palette();  // other tests look at colours, too
  MeshView* view = nullptr;
  MeshCanvas* canvas = nullptr;
};

PlanQuery split_query() {
  return {.model = "qwen2.5-7b",
          .cluster = "h100-64",
          .workload = "ppo-7b-1k",
          .nodes = 2,
          .fixed = {"placement=actor+reference | critic", "actor.tp=4"}};
}

TEST_F(Measures, MemoryIsTheShareOfTheLimitThatThePlannerCountsForEachRank) {
  ask(split_query());
  choose("memory at the peak, of the limit");
  ASSERT_TRUE(wait_for([&] { return mesh().hasColours(); }));
  Problems problems;
  const auto peaks = rank_peaks(*session().plan(), *session().calibration(), problems);
  for (const Theme theme : {Theme::light, Theme::dark}) {
    for (int rank = 0; rank < mesh().ranks(); ++rank) {
      const RankPeak& peak = peaks[static_cast<std::size_t>(rank)];
      const double share =
          static_cast<double>(peak.peak.value) / static_cast<double>(peak.limit.value);
      EXPECT_EQ(mesh().colour(rank, theme), colourOfShare(share, theme)) << rank;
    }
  }
  EXPECT_EQ(middleOf(3), mesh().colour(3, Theme::light));
  window.setTheme(Theme::dark);
  QCoreApplication::processEvents();
  EXPECT_EQ(middleOf(3), mesh().colour(3, Theme::dark));
  EXPECT_TRUE(legend().contains("of what plans may use")) << legend().toStdString();
  EXPECT_TRUE(mesh().describe(3).contains("memory at its peak"));
}

TEST_F(Measures, LoadIsThatOfTheRanksBusiestLink) {
  ask(split_query());
  choose("load of the busiest link");
  ASSERT_TRUE(wait_for([&] { return mesh().hasColours(); }));
  const Simulation simulation = simulate(*session().plan(), *session().calibration());
  const std::vector<RankLink> links = busiest_links(simulation);
  double most = 0;
  for (const RankLink& link : links) most = std::max(most, link.mean_load);
  ASSERT_GT(most, 0);
  std::map<QRgb, int> colours;
  for (int rank = 0; rank < mesh().ranks(); ++rank) {
    const double share = links[static_cast<std::size_t>(rank)].mean_load / most;
    EXPECT_EQ(mesh().colour(rank), colourOfShare(share, Theme::light)) << rank;
    ++colours[mesh().colour(rank).rgb()];
  }
  EXPECT_GT(colours.size(), 1u);
  EXPECT_TRUE(legend().contains(QString::number(100 * most, 'f', 1) + " %"))
      << legend().toStdString();
}

TEST_F(Measures, PhasesAreThoseOfTheHeartbeats) {
  const QString plan = folder.filePath("plan.json");
  write_plan(digits_plan(), plan.toStdString());
  ASSERT_TRUE(window.openPlan(plan));
  choose("phase in the run that is followed");
  EXPECT_FALSE(mesh().hasColours());
  EXPECT_TRUE(legend().contains("no run is followed")) << legend().toStdString();

  const std::filesystem::path run = folder.filePath("run").toStdString();
  std::filesystem::create_directories(run / "ranks");
  std::vector<std::unique_ptr<RankStatusFile>> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(std::make_unique<RankStatusFile>(run, rank, RankLife{.marks_end = false}));
    ranks.back()->enter(rank < 3 ? "gen" : "update_actor", 2);
  }
  ranks[2]->finish(3);
  ASSERT_TRUE(window.openRun(QString::fromStdString(run.string()), false));
  ASSERT_TRUE(mesh().hasColours());
  EXPECT_EQ(mesh().colour(0), colourOf(Phase::gen));
  EXPECT_EQ(mesh().colour(1), colourOf(Phase::gen));
  EXPECT_EQ(mesh().colour(2), colourOfBad());
  EXPECT_EQ(mesh().colour(3), colourOf(Phase::update_actor));
  EXPECT_TRUE(mesh().describe(3).contains("update_actor of step 2"));
  EXPECT_TRUE(legend().contains("gen (2)")) << legend().toStdString();
  EXPECT_TRUE(legend().contains("lost or failed (1)")) << legend().toStdString();
  ranks[0]->enter("reshard", 3);
  session().run()->poll();
  EXPECT_EQ(mesh().colour(0), colourOf(Phase::reshard));

  ask(small_query());  // eight ranks
  EXPECT_FALSE(mesh().hasColours());
  EXPECT_TRUE(legend().contains("the run has 4 ranks, this plan 8")) << legend().toStdString();
}

TEST_F(Measures, TheKeyCGoesRoundTheMeanings) {
  ask(small_query());
  canvas->setFocus();
  const int before = choice()->currentIndex(), count = choice()->count();
  std::set<int> seen;
  for (int i = 0; i < count; ++i) {
    seen.insert(choice()->currentIndex());
    EXPECT_EQ(choice()->currentData().value<MeshColouring>(), mesh().colouring());
    QTest::keyClick(canvas, Qt::Key_C);
  }
  EXPECT_EQ(static_cast<int>(seen.size()), count);
  EXPECT_EQ(choice()->currentIndex(), before);
  QTest::keyClick(canvas, Qt::Key_C, Qt::ShiftModifier);
  EXPECT_EQ(mesh().colouring().by, MeshBy::phase);
}

}  // namespace
}  // namespace tessera::gui
