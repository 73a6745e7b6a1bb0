// SPDX-License-Identifier: GPL-3.0-or-later
// Memory over time in the window, by keys and mouse, and what it exports.
#include <gtest/gtest.h>

#include <QApplication>
#include <QFile>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QSplitter>
#include <QToolTip>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/strict_json.h"
#include "gui/mesh/mesh_canvas.h"
#include "gui/pages/export_views.h"
#include "gui/step/memory_moment_model.h"
#include "gui/step_views/memory_canvas.h"
#include "gui/step_views/timeline_canvas.h"
#include "planner/plan/plan.h"
#include "simulator/engine/report.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

const QString kRunPlan = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run/plan.json";

class MemoryTime : public Explore {
 protected:
  void SetUp() override {
    Explore::SetUp();
    ASSERT_TRUE(window.openPlan(kRunPlan));
    QTest::keyClick(&window, Qt::Key_2, Qt::ControlModifier);
    showTab("Memory over time");
    canvas = window.findChild<MemoryCanvas*>();
    ASSERT_NE(canvas, nullptr);
    ASSERT_TRUE(canvas->isVisible());
    ASSERT_TRUE(wait_for([&] { return !canvas->steps().empty(); }));
    QCoreApplication::processEvents();
  }
  Session& session() { return window.session(); }
  const MemorySteps& steps() { return canvas->steps(); }
  QTableView* classes() { return named<QTableView>(window, "Classes of memory then"); }
  QString peak() { return named<QLabel>(window, "Where the rank holds most")->text(); }
  /// Of a time, in the middle of the plot's height.
  QPoint placeOf(double ns) {
    return {MemoryPicture::kScale + static_cast<int>(canvas->axis().x_of(ns)),
            canvas->picture().plot().center().y()};
  }
  const Span& longest() {
    return *std::max_element(
        steps().phases.begin(), steps().phases.end(),
        [](const Span& a, const Span& b) { return a.end_ns - a.start_ns < b.end_ns - b.start_ns; });
  }
  std::int64_t shownTotal() {
    const auto* model = qobject_cast<MemoryMomentModel*>(classes()->model());
    return model->index(model->rowCount() - 2, MemoryMomentModel::Now)
        .data(MemoryMomentModel::BytesRole)
        .toLongLong();
  }

  MemoryCanvas* canvas = nullptr;
};

TEST_F(MemoryTime, BeginsWithTheFullestRankAtItsPeak) {
  EXPECT_EQ(steps().rank, session().memory()->rank());
  EXPECT_EQ(canvas->limits().usable, session().memory()->limit());
  EXPECT_EQ(shownTotal(), simulate(*session().plan(), *session().calibration()).peak_bytes());
  EXPECT_TRUE(peak().contains("that plans may use in")) << peak().toStdString();
}

// However little is left beside the picture, no number is out of sight.
TEST_F(MemoryTime, EveryColumnOfTheClassesIsInSight) {
  window.findChild<QSplitter*>("memory_time")->setSizes({5000, 1});
  QCoreApplication::processEvents();
  const QHeaderView& header = *classes()->horizontalHeader();
  int wanted = 0;
  for (int column = 0; column < header.count(); ++column) wanted += header.sectionSizeHint(column);
  EXPECT_GT(wanted, 100);
  EXPECT_LE(wanted, header.length());
  EXPECT_LE(header.length(), classes()->viewport()->width());
}

TEST_F(MemoryTime, ARankAndAPhaseThatOthersChooseAreShownHere) {
  session().look({3, Phase::gen});  // as the mesh and the iteration do
  EXPECT_EQ(steps().rank, 3);
  EXPECT_EQ(named<QSpinBox>(window, "Rank whose memory is shown")->value(), 3);
  ASSERT_TRUE(canvas->moment());
  EXPECT_EQ(phase_at(steps(), *canvas->moment()), Phase::gen);
  EXPECT_EQ(shownTotal(), steps().total(*fullest_in(steps(), Phase::gen)));
  auto* mesh = window.findChild<MeshCanvas*>();
  QTest::mouseClick(mesh, Qt::LeftButton, {}, mesh->placeOf(1));
  EXPECT_EQ(steps().rank, 1);
}

TEST_F(MemoryTime, AClickHereChoosesRankAndPhaseEverywhere) {
  const Span span = longest();
  const auto middle = static_cast<double>(span.start_ns + span.end_ns) / 2;
  QTest::mouseClick(canvas, Qt::LeftButton, {}, placeOf(middle));
  EXPECT_EQ(session().view(), (ViewState{steps().rank, span.phase}));
  EXPECT_EQ(window.findChild<TimelineCanvas*>()->picture().view, session().view());
  // F shows that phase, Home all again.
  QTest::keyClick(canvas, Qt::Key_F);
  EXPECT_LT(canvas->axis().ns_per_pixel * canvas->timeWidth(),
            1.2 * static_cast<double>(span.end_ns - span.start_ns));
  QTest::keyClick(canvas, Qt::Key_Home);
  EXPECT_NEAR(canvas->axis().ns_per_pixel * canvas->timeWidth(),
              static_cast<double>(steps().end_ns), 1);
}

TEST_F(MemoryTime, ThePointerShowsTheClassesOfItsTime) {
  const Span span = longest();
  const QPoint place = placeOf(static_cast<double>(span.start_ns + span.end_ns) / 2);
  QTest::mouseMove(canvas, place);
  ASSERT_TRUE(wait_for([&] { return canvas->moment().has_value(); }));
  const std::size_t sample = sample_at(steps(), *canvas->moment());
  EXPECT_EQ(shownTotal(), steps().total(sample));
  QHelpEvent help(QEvent::ToolTip, place, canvas->mapToGlobal(place));
  QCoreApplication::sendEvent(canvas, &help);
  EXPECT_TRUE(QToolTip::text().contains("in " + QString::fromStdString(span.name)))
      << QToolTip::text().toStdString();
  EXPECT_EQ(canvas->accessibleDescription(), QToolTip::text());
  EXPECT_EQ(session().view(), ViewState{});  // to point is not to choose
}

TEST_F(MemoryTime, KeysGoFromChangeToChangeAndEnterChooses) {
  canvas->setFocus();
  QTest::keyClick(canvas, Qt::Key_Period);
  ASSERT_TRUE(canvas->moment());
  std::size_t at = sample_at(steps(), *canvas->moment());
  for (int i = 0; i < 5; ++i) {
    QTest::keyClick(canvas, Qt::Key_Period);
    EXPECT_EQ(sample_at(steps(), *canvas->moment()), ++at);
    EXPECT_EQ(shownTotal(), steps().total(at));
  }
  QTest::keyClick(canvas, Qt::Key_Comma);
  EXPECT_EQ(sample_at(steps(), *canvas->moment()), at - 1);
  const double before = canvas->axis().ns_per_pixel;
  QTest::keyClick(canvas, Qt::Key_W);
  EXPECT_LT(canvas->axis().ns_per_pixel, before);
  const auto phase = phase_at(steps(), *canvas->moment());
  QTest::keyClick(canvas, Qt::Key_Return);
  EXPECT_EQ(session().view(), (ViewState{steps().rank, phase}));
}

TEST_F(MemoryTime, TheNumberChoosesARankAndTheButtonTheFullest) {
  auto* rank = named<QSpinBox>(window, "Rank whose memory is shown");
  const int fullest = steps().rank, other = (fullest + 1) % 4;
  rank->setFocus();
  rank->selectAll();
  QTest::keyClicks(rank, QString::number(other));
  QTest::keyClick(rank, Qt::Key_Return);
  EXPECT_EQ(session().view().rank, other);
  EXPECT_EQ(session().mesh()->chosenRank(), other);
  EXPECT_EQ(steps().rank, other);
  for (QPushButton* button : window.findChildren<QPushButton*>()) {
    if (button->text() == "F&ullest") QTest::mouseClick(button, Qt::LeftButton);
  }
  EXPECT_EQ(session().view().rank, -1);
  EXPECT_EQ(steps().rank, fullest);
}

std::string all_of(const QString& file) {
  QFile in(file);
  return in.open(QIODevice::ReadOnly) ? in.readAll().toStdString() : std::string();
}

TEST_F(MemoryTime, IsExportedInEveryFormatWithTheSimulatorsNumbers) {
  session().look({1, std::nullopt});
  const QStringList files = exportViews(window, folder.path(), kAllFormats);
  for (const char* end : {".png", ".svg", ".csv", ".json"}) {
    EXPECT_TRUE(files.contains(folder.filePath(QString("memory_over_time") + end))) << end;
  }
  Problems problems;
  const auto file = [&](const char* end) {
    return all_of(folder.filePath(QString("memory_over_time") + end));
  };
  const auto json = parse_json(file(".json"), "json", problems);
  const auto csv = parse_csv(file(".csv"), "csv", problems);
  ASSERT_TRUE(json && csv);
  const Plan& plan = *session().plan();
  const auto report =
      parse_json(to_json(simulate(plan, *session().calibration()), plan, *session().calibration()),
                 "simulate", problems);
  const Node& rank = report->root.find("ranks")->items[1];
  EXPECT_EQ(json->root.find("peak_bytes")->integer, rank.find("peak_bytes")->integer);
  EXPECT_EQ(json->root.find("limit_bytes")->integer, rank.find("limit_bytes")->integer);
  EXPECT_EQ(json->root.find("peak_phase")->text, rank.find("peak_phase")->text);
  EXPECT_EQ(json->root.find("samples")->items.size(), csv->rows.size());
  const std::string drawing = file(".svg");
  EXPECT_NE(drawing.find("plans may use"), std::string::npos);  // a drawing, not pixels
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
