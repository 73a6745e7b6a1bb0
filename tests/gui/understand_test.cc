// SPDX-License-Identifier: GPL-3.0-or-later
// The page to understand a plan, by keys and mouse.
#include "gui/pages/understand_page.h"

#include <gtest/gtest.h>

#include <QApplication>
#include <QFile>
#include <QLabel>
#include <QScrollBar>
#include <QStatusBar>
#include <QTabBar>
#include <QTabWidget>
#include <QTableView>
#include <QTemporaryDir>
#include <QWheelEvent>
#include <cmath>
#include <optional>
#include <set>
#include <string>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/strict_json.h"
#include "gui/mesh/flow_mesh.h"
#include "gui/mesh/mesh_canvas.h"
#include "gui/pages/export_views.h"
#include "gui/pages/main_window.h"
#include "gui/reshard/flow_matrix_model.h"
#include "gui/step_views/time_canvas.h"
#include "gui/step_views/timeline_area.h"
#include "gui/step_views/timeline_canvas.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/span_totals_model.h"
#include "gui/views/chart.h"
#include "tests/gui/window_flow.h"

namespace tessera::gui {
namespace {

const QString kPlan = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run/plan.json";
constexpr int kNames = TimelinePicture::kNames, kRuler = TimelinePicture::kRuler,
              kRow = TimelinePicture::kRow;

/// The window with a plan and its timeline, which `Ctrl+2` has asked for.
struct Understand : testing::Test {
  MainWindow window;
  TimelineCanvas* canvas = nullptr;

  void SetUp() override {
    window.resize(1280, 800);
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
    ASSERT_TRUE(window.openPlan(kPlan));
    EXPECT_EQ(window.session().timeline()->facts(), nullptr);  // nobody has looked
    QTest::keyClick(&window, Qt::Key_2, Qt::ControlModifier);
    ASSERT_TRUE(wait_for([&] { return window.session().timeline()->facts() != nullptr; }));
    canvas = window.findChild<TimelineCanvas*>();
    ASSERT_NE(canvas, nullptr);
    QCoreApplication::processEvents();
  }
  const TimelinePicture& picture() const { return canvas->picture(); }
  QTableView* table(const QString& name) const {
    for (QTableView* table : window.findChildren<QTableView*>()) {
      if (table->accessibleName() == name) return table;
    }
    return nullptr;
  }
  /// The middle of the longest span of a row, in the viewport.
  QPoint middleOf(int row) const {
    const auto slabs =
        slabs_of(*picture().index, picture().rows[static_cast<std::size_t>(row)].lane,
                 picture().axis, picture().width());
    const auto widest = std::max_element(
        slabs.begin(), slabs.end(),
        [](const Slab& a, const Slab& b) { return a.to - a.from < b.to - b.from; });
    return {kNames + (widest->from + widest->to) / 2, picture().topOf(row) + kRow / 2};
  }
  void press(int key, int times = 1) {
    for (int i = 0; i < times; ++i) QTest::keyClick(canvas, static_cast<Qt::Key>(key));
  }
};

TEST_F(Understand, KeysZoomMoveAndFit) {
  const TimeAxis whole = picture().axis;
  EXPECT_NEAR(whole.ns_per_pixel * picture().width(), static_cast<double>(picture().index->end_ns),
              1);
  press(Qt::Key_W, 4);
  const TimeAxis near = picture().axis;
  EXPECT_NEAR(near.ns_per_pixel, whole.ns_per_pixel / std::pow(1.25, 4), 1e-6);
  press(Qt::Key_D);
  EXPECT_GT(picture().axis.start_ns, near.start_ns);
  press(Qt::Key_A);
  EXPECT_NEAR(picture().axis.start_ns, near.start_ns, 1);
  press(Qt::Key_S);
  EXPECT_NEAR(picture().axis.ns_per_pixel, near.ns_per_pixel * 1.25, 1e-6);
  press(Qt::Key_Home);
  EXPECT_EQ(picture().axis, whole);
}

TEST_F(Understand, TheWheelZoomsWhereTheCursorIs) {
  const QPoint at(kNames + 300, kRuler + 10);
  const double time = picture().axis.time_at(300);
  const double before = picture().axis.ns_per_pixel;
  QWheelEvent turn(at, canvas->viewport()->mapToGlobal(at), {}, {0, 240}, Qt::NoButton,
                   Qt::NoModifier, Qt::NoScrollPhase, false);
  QCoreApplication::sendEvent(canvas->viewport(), &turn);
  EXPECT_LT(picture().axis.ns_per_pixel, before / 1.5);
  EXPECT_NEAR(picture().axis.time_at(300), time, 1);
}

TEST_F(Understand, AClickChoosesASpanAndTheOtherViewsFollow) {
  QTest::mouseClick(canvas->viewport(), Qt::LeftButton, {}, middleOf(0));
  ASSERT_TRUE(picture().span);
  const Span& span = picture().index->span(*picture().span);
  EXPECT_EQ(window.session().view(), (ViewState{span.rank, span.phase}));
  EXPECT_EQ(window.session().mesh()->chosenRank(), span.rank);
  EXPECT_EQ(window.session().memory()->rank(), span.rank);
  // F shows that span, and a comma goes to the one before.
  press(Qt::Key_F);
  EXPECT_LE(picture().axis.start_ns, static_cast<double>(span.start_ns));
  EXPECT_LT(picture().axis.ns_per_pixel * picture().width(),
            1.3 * static_cast<double>(span.end_ns - span.start_ns));
  const std::size_t first = *picture().span;
  press(Qt::Key_Comma);
  EXPECT_EQ(picture().span, first - 1);
  press(Qt::Key_Period);
  EXPECT_EQ(picture().span, first);
}

TEST_F(Understand, ARankThatTheMeshChoosesIsMarkedHere) {
  auto* mesh = window.findChild<MeshCanvas*>();
  QTest::mouseClick(mesh, Qt::LeftButton, {}, mesh->placeOf(2));
  EXPECT_EQ(picture().view.rank, 2);
}

TEST_F(Understand, APhaseThatTheIterationChoosesIsMarkedHere) {
  QTest::keyClick(&window, Qt::Key_1, Qt::ControlModifier);
  QCoreApplication::processEvents();
  auto* chart = window.findChild<Chart*>("phases");
  ASSERT_NE(chart, nullptr);
  const auto& rows = window.session().phases()->rows();
  const auto longest = std::max_element(
      rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  const QPoint middle(
      static_cast<int>(chart->xAxis->coordToPixel(longest->start_s + longest->seconds / 2)),
      static_cast<int>(chart->yAxis->coordToPixel(longest->block)));
  QTest::mouseClick(chart, Qt::LeftButton, {}, middle);
  EXPECT_EQ(picture().view.phase, longest->phase);
  EXPECT_EQ(window.session().view().phase, longest->phase);
}

TEST_F(Understand, EqualRanksFoldAndAClickUnfoldsThem) {
  const auto& groups = picture().index->groups;
  const auto several = std::find_if(groups.begin(), groups.end(),
                                    [](const RankGroup& group) { return group.ranks.size() > 1; });
  ASSERT_NE(several, groups.end()) << "TP ranks of the sample plan do the same";
  const int group = static_cast<int>(several - groups.begin());
  const auto row = std::find_if(picture().rows.begin(), picture().rows.end(),
                                [&](const TimelineRow& at) { return at.group == group; });
  ASSERT_TRUE(row->folded);
  const std::size_t folded = picture().rows.size();
  const std::size_t lanes = lanes_of(*picture().index, several->ranks[0]).size();
  const QPoint name(20, picture().topOf(static_cast<int>(row - picture().rows.begin())) + 8);
  QTest::mouseClick(canvas->viewport(), Qt::LeftButton, {}, name);
  EXPECT_EQ(picture().rows.size(), folded + lanes * (several->ranks.size() - 1));
  QTest::mouseClick(canvas->viewport(), Qt::LeftButton, {}, name);
  EXPECT_EQ(picture().rows.size(), folded);
}

TEST_F(Understand, AnAreaIsSummedByName) {
  const QPoint from(kNames + 100, kRuler + 5), to(kNames + 500, kRuler + 3 * kRow + 5);
  QTest::mousePress(canvas->viewport(), Qt::LeftButton, {}, from);
  QTest::mouseMove(canvas->viewport(), (from + to) / 2);
  QTest::mouseMove(canvas->viewport(), to);
  QTest::mouseRelease(canvas->viewport(), Qt::LeftButton, {}, to);
  ASSERT_TRUE(picture().area);
  EXPECT_EQ(picture().area->first_row, 0);
  EXPECT_EQ(picture().area->last_row, 3);
  EXPECT_NEAR(static_cast<double>(picture().area->from_ns), picture().axis.time_at(100), 2);
  EXPECT_NEAR(static_cast<double>(picture().area->to_ns), picture().axis.time_at(500), 2);
  const AreaSums wanted = sums_of(*picture().index, summed_area(picture()));
  ASSERT_FALSE(wanted.totals.empty());
  auto* sums = table("Totals of the area by name");
  ASSERT_NE(sums, nullptr);
  const int rows = static_cast<int>(wanted.totals.size()) + 1;  // and idle time
  EXPECT_TRUE(wait_for([&] { return sums->model()->rowCount() == rows; }));
  std::set<std::string> names;
  for (int row = 0; row < rows; ++row) {
    names.insert(sums->model()->index(row, 0).data().toString().toStdString());
  }
  EXPECT_TRUE(names.contains(wanted.totals[0].name));
  EXPECT_TRUE(names.contains("idle"));
  // A click elsewhere ends it.
  QTest::mouseClick(canvas->viewport(), Qt::LeftButton, {}, {kNames + 10, kRuler + 2});
  EXPECT_FALSE(picture().area);
}

TEST_F(Understand, AGapSaysWhatItWaitsFor) {
  // The widest gap of a row that has one.
  std::optional<LaneGap> widest;
  int row = -1;
  for (std::size_t r = 0; r < picture().rows.size(); ++r) {
    const Lane& lane = picture().rows[r].lane;
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      const auto before = static_cast<double>(picture().index->span(i).start_ns) - 1;
      const auto gap = gap_at(*picture().index, lane, before);
      if (!gap || (widest && gap->to_ns - gap->from_ns <= widest->to_ns - widest->from_ns))
        continue;
      widest = gap;
      row = static_cast<int>(r);
    }
  }
  ASSERT_TRUE(widest);
  const double middle =
      picture().axis.x_of(static_cast<double>(widest->from_ns + widest->to_ns) / 2);
  QTest::mouseClick(canvas->viewport(), Qt::LeftButton, {},
                    {kNames + static_cast<int>(middle), picture().topOf(row) + kRow / 2});
  EXPECT_EQ(picture().gap, widest);
  EXPECT_FALSE(picture().span);
  QString says;
  for (const QLabel* label : window.findChildren<QLabel*>()) {
    if (label->accessibleName() == "The span that is chosen") says = label->text();
  }
  EXPECT_TRUE(says.contains("idle") && says.contains("waits for")) << says.toStdString();
  press(Qt::Key_F);  // fits it
  EXPECT_LT(picture().axis.ns_per_pixel * picture().width(),
            1.3 * static_cast<double>(widest->to_ns - widest->from_ns));
}

TEST_F(Understand, ASearchFindsSpansByNameAndGoesThroughThem) {
  QLineEdit* search = nullptr;
  for (QLineEdit* line : window.findChildren<QLineEdit*>()) {
    if (line->accessibleName() == "Search of spans") search = line;
  }
  ASSERT_NE(search, nullptr);
  QTest::keyClicks(search, "f1");
  std::size_t wanted = 0;
  for (const TimelineRow& row : picture().rows) {
    for (std::size_t i = row.lane.first; i < row.lane.last; ++i) {
      wanted += picture().index->span(i).name.find("F1") != std::string::npos ? 1 : 0;
    }
  }
  ASSERT_GT(wanted, 2u);
  EXPECT_EQ(canvas->matches(), wanted);
  QTest::keyClick(search, Qt::Key_Return);
  ASSERT_TRUE(picture().span);
  const std::size_t first = *picture().span;
  EXPECT_NE(picture().index->span(first).name.find("F1"), std::string::npos);
  press(Qt::Key_N);
  EXPECT_NE(*picture().span, first);
  EXPECT_GE(picture().index->span(*picture().span).start_ns, picture().index->span(first).start_ns);
  QTest::keyClick(canvas, Qt::Key_N, Qt::ShiftModifier);
  EXPECT_EQ(*picture().span, first);
}

TEST_F(Understand, WeightsThatTravelAreShownAndLinked) {
  auto* tabs = window.understand().findChild<QTabWidget*>();
  tabs->setCurrentIndex(1);
  ASSERT_TRUE(wait_for([&] { return window.session().reshard()->facts() != nullptr; }));
  QTableView* matrix = table("Bytes from sender to receiver");
  ASSERT_NE(matrix, nullptr);
  const auto* flows = qobject_cast<FlowMatrixModel*>(matrix->model());
  ASSERT_FALSE(flows->travelling().empty());
  const Flow largest = flows->travelling().front();
  matrix->setCurrentIndex(flows->index(largest.from, largest.to));
  EXPECT_EQ(window.session().view().rank, largest.to);
  EXPECT_EQ(window.session().mesh()->chosenRank(), largest.to);
  // A click on a cell of the arrows' mesh moves the matrix's column.
  auto* mesh = window.findChild<FlowMesh*>();
  bool clicked = false;
  for (int x = 4; x < mesh->width() && !clicked; x += 8) {
    for (int y = 4; y < mesh->height() && !clicked; y += 8) {
      QTest::mouseClick(mesh, Qt::LeftButton, {}, {x, y});
      clicked = window.session().view().rank == 0;
    }
  }
  ASSERT_TRUE(clicked);
  EXPECT_EQ(matrix->currentIndex().column(), 0);
  EXPECT_GE(table("Methods to reshard")->model()->rowCount(), 11);
}

std::string text_of(const QString& file) {
  QFile in(file);
  return in.open(QIODevice::ReadOnly) ? in.readAll().toStdString() : std::string();
}

TEST(Export, ViewsLeaveTheirDataBesideTheirPictures) {
  MainWindow window;
  window.resize(1280, 800);
  ASSERT_TRUE(window.openPlan(kPlan));
  QTemporaryDir folder;
  const QStringList files = exportViews(window, folder.path(), kAllFormats);
  EXPECT_TRUE(window.statusBar()->currentMessage().isEmpty());
  for (const char* name : {"timeline.png", "timeline.svg", "timeline.csv", "timeline.json",
                           "reshard.png", "reshard.svg", "reshard.csv", "reshard.json", "plans.csv",
                           "memory.csv", "phases.csv", "report.json"}) {
    EXPECT_TRUE(files.contains(folder.filePath(name))) << name;
  }
  Problems problems;
  const auto spans = parse_csv(text_of(folder.filePath("timeline.csv")), "timeline.csv", problems);
  ASSERT_TRUE(spans) << to_string(problems.front());
  EXPECT_EQ(spans->rows.size(), window.session().timeline()->facts()->name_of.size());
  EXPECT_TRUE(parse_json(text_of(folder.filePath("timeline.json")), "timeline.json", problems));
  EXPECT_TRUE(parse_json(text_of(folder.filePath("report.json")), "report.json", problems));
  const auto methods = parse_csv(text_of(folder.filePath("reshard.csv")), "reshard.csv", problems);
  ASSERT_TRUE(methods);
  EXPECT_EQ(methods->rows.size(), kReshardMethods.size());
  const auto memory = parse_csv(text_of(folder.filePath("memory.csv")), "memory.csv", problems);
  ASSERT_TRUE(memory);
  const PlanTableModel& shown = *window.session().plans();
  const auto plans = parse_csv(text_of(folder.filePath("plans.csv")), "plans.csv", problems);
  ASSERT_TRUE(plans);
  EXPECT_EQ(plans->header, (std::vector<std::string>{
                               "Placement", "GPUs", "Step, s", "Against row 1, %", "Tokens/s/GPU",
                               "Cost of a step, GPU s", "Peak memory, GiB", "Layouts"}));
  const std::vector<std::string>& best = plans->rows.front().cells;
  EXPECT_NEAR(std::stod(best[2]), shown.row(0).summary.step_s.value, 1e-9 * std::stod(best[2]));
  EXPECT_EQ(std::stod(best[3]), 0);
  EXPECT_NEAR(std::stod(best[6]) * (1 << 30),
              static_cast<double>(shown.row(0).plan->prediction.peak_bytes.value), 1);
  const auto steps = parse_csv(text_of(folder.filePath("phases.csv")), "phases.csv", problems);
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->header, (std::vector<std::string>{"Phase", "Role", "Ranks", "Start, s",
                                                     "Time, s", "Share, %"}));
  EXPECT_EQ(std::stod(steps->rows.front().cells[3]), 0);
  EXPECT_EQ(memory->header.back(), "total, GiB");
  EXPECT_GT(std::stod(memory->rows.front().cells.back()), 0);
  std::set<std::string> phases;
  for (const CsvRow& row : memory->rows) phases.insert(row.cells.front());
  EXPECT_TRUE(phases.contains("update_actor")) << "rows have names";
  EXPECT_EQ(phases.size(), memory->rows.size());
  EXPECT_TRUE(problems.empty());
  // A drawing, and not a picture in a drawing.
  const std::string drawing = text_of(folder.filePath("timeline.svg"));
  EXPECT_NE(drawing.find("<svg"), std::string::npos);
  EXPECT_NE(drawing.find("update_actor"), std::string::npos);
}

TEST(Export, FormatsAreReadWordByWord) {
  const auto some = formats_of("csv,svg");
  ASSERT_TRUE(some);
  EXPECT_TRUE(some->csv && some->svg && !some->png && !some->json && !some->whole);
  EXPECT_FALSE(formats_of("png,gif"));
  EXPECT_FALSE(formats_of(""));
}

// The line above a picture promises them: no field takes them first.
TEST_F(Understand, KeysAreThePicturesOnceItsTabIsClicked) {
  window.showPage(&window.explore());
  window.explore().setFocus();
  window.showPage(&window.understand());
  auto* tabs = window.understand().findChild<QTabWidget*>("understand_tabs");
  for (const char* name : {"memory_over_time", "rollout_tail", "link_load", "timeline"}) {
    QWidget* view = window.understand().findChild<QWidget*>(name);
    ASSERT_NE(view, nullptr) << name;
    QTest::mouseClick(tabs->tabBar(), Qt::LeftButton, {},
                      tabs->tabBar()->tabRect(tabs->indexOf(view)).center());
    QWidget* focus = QApplication::focusWidget();
    ASSERT_NE(focus, nullptr) << name;
    EXPECT_TRUE(qobject_cast<TimeCanvas*>(focus) != nullptr ||
                qobject_cast<TimelineCanvas*>(focus) != nullptr)
        << name << ": " << focus->metaObject()->className();
  }
  // Who goes through the tabs by keys goes on.
  tabs->tabBar()->setFocus();
  QTest::keyClick(tabs->tabBar(), Qt::Key_Right);
  EXPECT_EQ(QApplication::focusWidget(), tabs->tabBar());
}

// And where the pointer comes to it, or a button beside it was used; but not from who types.
TEST_F(Understand, KeysAreTheTimelinesWhereThePointerIs) {
  QWidget* view = window.understand().findChild<QWidget*>("timeline");
  ASSERT_NE(view, nullptr);
  const auto enter = [&] {
    QEnterEvent event(QPointF(9, 9), QPointF(9, 9), QPointF(9, 9));
    QCoreApplication::sendEvent(view, &event);
  };
  auto* tabs = window.understand().findChild<QTabWidget*>("understand_tabs");
  tabs->tabBar()->setFocus();
  enter();
  EXPECT_EQ(QApplication::focusWidget(), canvas);
  auto* search = view->findChild<QLineEdit*>();
  search->setFocus();
  enter();
  EXPECT_EQ(QApplication::focusWidget(), search);
  for (QPushButton* button : view->findChildren<QPushButton*>()) {
    if (button->text().remove('&') == "Show all") QTest::mouseClick(button, Qt::LeftButton);
  }
  EXPECT_EQ(QApplication::focusWidget(), canvas);
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
