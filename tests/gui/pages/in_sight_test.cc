// SPDX-License-Identifier: GPL-3.0-or-later
// What one looks for first is in sight, whole, on a small screen.
#include <gtest/gtest.h>

#include <QAction>
#include <QComboBox>
#include <QHeaderView>
#include <QImage>
#include <QScrollArea>
#include <QScrollBar>
#include <QTableView>
#include <algorithm>

#include "gui/mesh/mesh_canvas.h"
#include "gui/models/plan_table_model.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

// The page scrolls where its tables have no room for their first rows.
TEST(RunTables, HaveThePhasesOfTheStepInSightOnASmallScreen) {
  MainWindow window;
  window.resize(1280, 720);
  window.show();
  ASSERT_TRUE(window.openRun(QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run", false));
  window.showPage(&window.run());
  QCoreApplication::processEvents();
  EXPECT_EQ(window.size(), QSize(1280, 720));
  for (const auto& [name, least] : {std::pair("comparison", 7), std::pair("ranks", 4)}) {
    auto* view = window.run().findChild<QWidget*>(name);
    auto* table = qobject_cast<QTableView*>(view);
    ASSERT_NE(table, nullptr) << name;
    ASSERT_GE(table->model()->rowCount(), least) << name;
    EXPECT_LE(table->rowViewportPosition(least - 1) + table->rowHeight(least - 1),
              table->viewport()->height())
        << name;
  }
}

// An edit is answered by the plan alone.
TEST_F(Explore, PagesThatNobodySeesComputeNothing) {
  PlanQuery query = small_query();
  for (const char* fixed : {"actor.tp=2", "actor.tp=4"}) {
    query.fixed = {fixed};
    ask(query);
    QCoreApplication::processEvents();
    Session& session = window.session();
    for (const PlanWatch* hidden : std::initializer_list<const PlanWatch*>{
             session.timeline(), session.reshard(), session.peaks()}) {
      EXPECT_FALSE(hidden->isBusy());
    }
    EXPECT_EQ(session.timeline()->facts(), nullptr);
    EXPECT_EQ(session.reshard()->facts(), nullptr);
    EXPECT_EQ(session.peaks()->facts(), nullptr);
    EXPECT_FALSE(session.front().isLooking());
  }
}

// Who goes to the question sees the field that is typed into.
TEST_F(Explore, TheFieldThatGetsTheKeysIsInSight) {
  window.resize(1280, 720);
  auto* model = window.explore().form()->findChild<QComboBox*>();
  auto* area = window.explore().findChild<QScrollArea*>();
  ASSERT_NE(area, nullptr);
  ASSERT_EQ(area->widget(), window.explore().form());
  QCoreApplication::processEvents();
  area->verticalScrollBar()->setValue(area->verticalScrollBar()->maximum());
  ASSERT_LT(model->mapTo(area->viewport(), QPoint()).y(), 0);
  for (QAction* action : window.findChildren<QAction*>()) {
    if (action->shortcut() == QKeySequence("Ctrl+L")) action->trigger();
  }
  EXPECT_GE(model->mapTo(area->viewport(), QPoint()).y(), 0);
}

// The layouts of a plan are read to their end, wherever the window's edge is.
TEST_F(Explore, TheLayoutsOfAPlanAreWhole) {
  window.resize(1280, 720);
  ask(small_query());
  QCoreApplication::processEvents();
  auto* table = window.findChild<QWidget*>("plans")->findChild<QTableView*>();
  const int needed =
      static_cast<QAbstractItemView*>(table)->sizeHintForColumn(PlanTableModel::Layouts);
  EXPECT_GE(table->columnWidth(PlanTableModel::Layouts), needed);
  EXPECT_EQ(
      table->horizontalHeader()->length(),
      std::max(table->viewport()->width(), table->columnViewportPosition(PlanTableModel::Layouts) +
                                               table->horizontalScrollBar()->value() + needed));
}

// Of eight nodes as of any number: nothing touches the edge.
TEST_F(Explore, TheLastNodeOfTheMeshIsWhole) {
  PlanQuery query = small_query();
  query.cluster = "h800-64";
  ask(query);
  auto* mesh = window.findChild<QWidget*>("mesh")->findChild<MeshCanvas*>();
  ASSERT_NE(mesh, nullptr);
  QCoreApplication::processEvents();
  const QImage picture = mesh->grab().toImage();
  const QRgb ground = mesh->palette().color(QPalette::Base).rgb();
  for (int x = 0; x < picture.width(); ++x) {
    for (int y = picture.height() - 3; y < picture.height(); ++y) {
      ASSERT_EQ(picture.pixel(x, y), ground) << x << " " << y;
    }
  }
}

}  // namespace
}  // namespace tessera::gui
