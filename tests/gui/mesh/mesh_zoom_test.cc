// SPDX-License-Identifier: GPL-3.0-or-later
// The mesh as a picture that is zoomed: every GPU has a place of its own, and 16,384 of them are
// seen at once.
#include <gtest/gtest.h>

#include <QApplication>
#include <QHelpEvent>
#include <QLabel>
#include <QToolTip>
#include <QWheelEvent>
#include <map>
#include <random>
#include <set>

#include "cost_models/spec/node_groups.h"
#include "gui/document/plan_answer.h"
#include "gui/document/text.h"
#include "gui/mesh/mesh_canvas.h"
#include "planner/plan/plan.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

TEST(MeshLayout, EveryGpuHasAPlaceOfItsOwn) {
  for (const auto& [ranks, per_node] : std::vector<std::pair<int, int>>{
           {1, 1}, {4, 4}, {8, 8}, {64, 8}, {72, 8}, {130, 2}, {250, 5}, {1024, 16}, {16384, 8}}) {
    for (const double aspect : {0.4, 1.0, 2.5}) {
      const MeshLayout layout(ranks, per_node, aspect);
      const QRectF all(QPointF(0, 0), layout.size());
      std::set<std::pair<double, double>> places;
      for (int rank = 0; rank < ranks; ++rank) {
        const QRectF cell = layout.gpu(rank);
        ASSERT_TRUE(places.emplace(cell.x(), cell.y()).second) << rank;
        ASSERT_TRUE(layout.node(rank / per_node).contains(cell)) << rank;
        ASSERT_TRUE(all.contains(cell)) << ranks << " " << rank;
        ASSERT_EQ(layout.rankAt(cell.center()), rank);
        ASSERT_EQ(layout.nodeAt(cell.center()), rank / per_node);
      }
      // Nodes and pods lie beside one another.
      for (int node = 1; node < layout.nodes(); ++node) {
        ASSERT_FALSE(layout.node(node).intersects(layout.node(node - 1))) << node;
        ASSERT_TRUE(layout.pod(layout.podOf(node)).contains(layout.node(node))) << node;
      }
      // Whatever lies at a place, as a look at all cells finds it.
      std::mt19937 random(static_cast<unsigned>(ranks));
      for (int i = 0; i < 200; ++i) {
        const QPointF place(layout.size().width() * (random() % 1000) / 1000,
                            layout.size().height() * (random() % 1000) / 1000);
        int found = -1;
        for (int rank = 0; rank < ranks; ++rank) {
          if (layout.gpu(rank).contains(place)) found = rank;
        }
        ASSERT_EQ(layout.rankAt(place), found) << ranks;
      }
    }
  }
}

TEST(MeshLayout, PodsAreTheNodesOfALeafWhereTheClusterStatesThem) {
  for (const int leaf : {2, 5, 48, 384, 5000}) {
    const MeshLayout layout(8192, 8, 1.6, leaf);
    EXPECT_EQ(layout.pods(), (1024 + leaf - 1) / leaf);
    for (int rank = 0; rank < 8192; rank += 7) {
      const int node = rank / 8;
      EXPECT_EQ(layout.podOf(node), node / leaf);
      ASSERT_TRUE(layout.pod(node / leaf).contains(layout.gpu(rank))) << leaf << " " << rank;
      ASSERT_EQ(layout.rankAt(layout.gpu(rank).center()), rank);
      for (const int other : {node / leaf - 1, node / leaf + 1}) {
        if (other < 0 || other >= layout.pods()) continue;
        ASSERT_FALSE(layout.pod(other).intersects(layout.gpu(rank))) << leaf << " " << rank;
      }
    }
  }
  EXPECT_EQ(MeshLayout(8192, 8, 1.6).pods(), 32);
  EXPECT_EQ(MeshLayout(128, 8, 1.6, 2).pods(), 1);  // few nodes have a row each
}

// The shipped cluster of pods of 384 nodes: 8,192 GPUs lie in three of them.
TEST(MeshModel, KnowsTheLeavesOfItsCluster) {
  Plan plan;
  Problems problems;
  plan.cluster = *read_cluster_spec(
      std::string(TESSERA_SOURCE_DIR) + "/configs/clusters/h100-8192-roce-7to1.yaml", problems);
  MeshModel model;
  EXPECT_EQ(model.nodesPerLeaf(), 1);
  model.setPlan(std::make_shared<const Plan>(plan));
  EXPECT_EQ(model.nodesPerLeaf(), 384);
}

TEST(MeshLayout, WhatIsPointedToStaysWhereItIsWhileOneZooms) {
  const MeshLayout layout(16384, 8, 1.6);
  const QSizeF picture(640, 400);
  MeshSight sight = sightOfAll(layout, picture);
  EXPECT_TRUE(QRectF(QPointF(-1e-6, -1e-6), picture + QSizeF(2e-6, 2e-6))
                  .contains(sight.pixels(QRectF(QPointF(0, 0), layout.size()))));
  const QPointF pixel(311, 207);
  const QPointF place = sight.cells(pixel);
  for (int i = 0; i < 12; ++i) {
    sight = zoomed(sight, layout, 1.4, pixel, picture);
    const QPointF now = sight.cells(pixel);
    EXPECT_NEAR(now.x(), place.x(), 1e-6);
    EXPECT_NEAR(now.y(), place.y(), 1e-6);
  }
  EXPECT_EQ(levelOf(sight, layout), MeshLevel::gpus);
  for (int i = 0; i < 40; ++i) sight = zoomed(sight, layout, 1 / 1.4, pixel, picture);
  EXPECT_EQ(sight, sightOfAll(layout, picture));
}

// Of few nodes, which have a row each.
TEST(MeshCanvas, NamesOfNodesDoNotStandOverOneAnother) {
  Plan plan = *std::get<SharedPlan>(answer(PlanQuery{.model = "qwen2.5-7b",
                                                     .cluster = "h100-64",
                                                     .workload = "grpo-7b-1k",
                                                     .nodes = 16})
                                        .result);
  MeshModel model;
  model.setPlan(std::make_shared<const Plan>(std::move(plan)));
  MeshCanvas canvas(model);
  canvas.show();
  for (const int height : {1200, 600, 300, 200, 150}) {
    canvas.resize(700, height);
    const std::vector<int> named = canvas.namedNodes();
    ASSERT_FALSE(named.empty());
    EXPECT_EQ(named.front(), 0);
    const double row = canvas.sight().scale * canvas.layout().node(0).height();
    const double letters = canvas.fontMetrics().height();
    if (row > letters + 2) {
      EXPECT_EQ(named.size(), 16u) << height;
    }
    for (std::size_t i = 1; i < named.size(); ++i) {
      const auto middle = [&](int node) {
        return canvas.sight().pixels(canvas.layout().node(node)).center().y();
      };
      EXPECT_GE(middle(named[i]) - middle(named[i - 1]), letters - 1) << height;
    }
  }
}

// A plan on 2,048 nodes, which the canvas shows without a window around it.
class LargeMesh : public ::testing::Test {
 protected:
  static constexpr int kRanks = 16384;
  static void SetUpTestSuite() {
    PlanAnswer found = answer(PlanQuery{.model = "llama3.1-70b",
                                        .cluster = "meta-h100-24k",
                                        .workload = "grpo-7b-1k",
                                        .nodes = 2048});
    ASSERT_TRUE(std::holds_alternative<SharedPlan>(found.result));
    plan_ = std::get<SharedPlan>(found.result);
  }
  static void TearDownTestSuite() { plan_.reset(); }
  void SetUp() override {
    model.setPlan(plan_);
    canvas = std::make_unique<MeshCanvas>(model);
    canvas->resize(600, 320);
    QObject::connect(canvas.get(), &MeshCanvas::chosen, [this](int rank) {
      chosen = rank;
      model.setChosenRank(rank);
    });
    canvas->show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(canvas.get()));
  }
  void press(Qt::Key key) { QTest::keyClick(canvas.get(), key); }
  void wheel(QPointF at, int turned) {
    QWheelEvent event(at, canvas->mapToGlobal(at), {}, {0, turned}, Qt::NoButton, {},
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(canvas.get(), &event);
  }
  QString hover(QPoint at) {
    QHelpEvent event(QEvent::ToolTip, at, canvas->mapToGlobal(at));
    QApplication::sendEvent(canvas.get(), &event);
    return QToolTip::text();
  }

  static inline SharedPlan plan_;
  MeshModel model;
  std::unique_ptr<MeshCanvas> canvas;
  int chosen = -1;
};

TEST_F(LargeMesh, AllGpusAreSeenAtOnceByNodesAndOneIsFoundByTheWheel) {
  ASSERT_EQ(model.ranks(), kRanks);
  EXPECT_NE(canvas->level(), MeshLevel::gpus);
  EXPECT_TRUE(canvas->minimap().isEmpty());
  const QRect whole = canvas->rect();
  for (const int rank : {0, 5000, kRanks - 1}) EXPECT_TRUE(whole.contains(canvas->placeOf(rank)));
  // Hovering says what lies there, of a node or a pod; its numbers are those of the plan.
  const QString seen = hover(canvas->placeOf(8 * 100));
  EXPECT_TRUE(seen.contains("100")) << seen.toStdString();
  EXPECT_TRUE(seen.contains(toText(plan_->cluster.device.name))) << seen.toStdString();
  const QPoint there = canvas->placeOf(8191);
  for (int i = 0; i < 30 && canvas->level() != MeshLevel::gpus; ++i) wheel(there, 120);
  ASSERT_EQ(canvas->level(), MeshLevel::gpus);
  QTest::mouseClick(canvas.get(), Qt::LeftButton, {}, there);
  EXPECT_EQ(chosen, 8191);
  EXPECT_TRUE(hover(there).contains("rank 8191"));
  EXPECT_TRUE(hover(there).contains("layers "));
  // The picture has its colour there.
  const QColor drawn = canvas->grab().toImage().pixelColor(there);
  std::set<QRgb> known{model.colour(8191).rgb(), textOn(model.colour(8191)).rgb()};
  for (const Role role : model.rolesOn(8191)) known.insert(colourOf(role).rgb());
  EXPECT_EQ(known.count(drawn.rgb()), 1U) << drawn.name().toStdString();
}

TEST_F(LargeMesh, KeysChangeTheLevelAndGoFromGpuToGpu) {
  const MeshSight all = canvas->sight();  // as it comes
  press(Qt::Key_Right);
  EXPECT_EQ(chosen, 0);
  press(Qt::Key_Right);
  EXPECT_EQ(chosen, 1);
  press(Qt::Key_F);
  EXPECT_EQ(canvas->level(), MeshLevel::gpus);
  EXPECT_TRUE(canvas->rect().contains(canvas->placeOf(1)));
  // Arrows reach whatever lies there, and keep it in sight.
  for (int i = 0; i < 200; ++i) press(i % 2 == 0 ? Qt::Key_Right : Qt::Key_Down);
  EXPECT_GT(chosen, 100);
  EXPECT_TRUE(canvas->rect().contains(canvas->placeOf(chosen)));
  press(Qt::Key_PageUp);
  EXPECT_EQ(canvas->level(), MeshLevel::nodes);
  press(Qt::Key_PageUp);
  EXPECT_TRUE(canvas->minimap().isEmpty());  // all is in sight
  press(Qt::Key_PageDown);
  press(Qt::Key_PageDown);
  EXPECT_EQ(canvas->level(), MeshLevel::gpus);
  press(Qt::Key_Home);
  EXPECT_EQ(canvas->sight(), all);
}

TEST_F(LargeMesh, TheSmallMapLeadsToWhereItIsClicked) {
  press(Qt::Key_F);  // nothing is chosen: nothing happens
  EXPECT_TRUE(canvas->minimap().isEmpty());
  for (int i = 0; i < 12; ++i) press(Qt::Key_Plus);
  const QRectF map = canvas->minimap();
  ASSERT_FALSE(map.isEmpty());
  QTest::mouseClick(canvas.get(), Qt::LeftButton, {}, map.topLeft().toPoint() + QPoint(1, 1));
  EXPECT_TRUE(canvas->rect().contains(canvas->placeOf(0)));
  QTest::mouseClick(canvas.get(), Qt::LeftButton, {}, map.bottomRight().toPoint() - QPoint(1, 1));
  EXPECT_FALSE(canvas->rect().contains(canvas->placeOf(0)));
  EXPECT_EQ(chosen, -1);  // a click there chooses nothing
}

// From far away a node's bars are as wide as its GPUs of each colour are many.
TEST_F(LargeMesh, SharesAreThoseOfTheRanks) {
  constexpr int kNodes = 5;
  std::map<QRgb, int> counted;
  for (int rank = 0; rank < 8 * kNodes; ++rank) ++counted[model.colour(rank).rgb()];
  int all = 0;
  for (const auto& [colour, count] : shares_of(model, 0, 8 * kNodes)) {
    EXPECT_EQ(count, counted[colour]);
    all += count;
  }
  EXPECT_EQ(all, 8 * kNodes);
}

TEST_F(Explore, GpuTypesAndIdleGpusAreToldWhereOneIsSmall) {
  ask({.model = "qwen2.5-0.5b",
       .cluster = "a100-h100-64",
       .workload = "ppo-7b-1k",
       .fixed = {"actor.gpus=8", "placement=colocated"}});
  ASSERT_TRUE(window.session().plan());
  const Plan& shown = *window.session().plan();
  const MeshModel& mesh = *window.session().mesh();
  int idle = 0;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    idle += mesh.rolesOn(rank).empty() ? 1 : 0;
    EXPECT_EQ(mesh.typeName(mesh.typeOf(rank)), toText(device_of(shown.cluster, rank).name));
    EXPECT_TRUE(mesh.describe(rank).contains(mesh.typeName(mesh.typeOf(rank))));
  }
  ASSERT_GT(idle, 0);
  const auto* canvas = window.findChild<MeshCanvas*>();
  EXPECT_EQ(canvas->level(), MeshLevel::gpus);  // few nodes: a row each
  bool told = false;
  for (const QLabel* label : window.findChildren<QLabel*>()) {
    told |= label->text().contains("line below") && label->text().contains(mesh.typeName(1));
  }
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
