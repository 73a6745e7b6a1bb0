// SPDX-License-Identifier: GPL-3.0-or-later
// The report: says what the models say, in pictures that are to scale, and runs nothing.
#include "gui/report/report.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QXmlStreamReader>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "gui/document/headline.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/explore/shown_answer.h"
#include "gui/pages/export_views.h"
#include "gui/report/figure.h"
#include "gui/report/style.h"
#include "planner/explain/report.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

const QString kRunFolder = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run";
const QString kHostile = "<script>alert(1)</script>&amp;\"'<b onload=x>";

/// A report as an XML parser reads it: names and texts, and what every rectangle says and spans.
struct PageRead {
  QString error;
  QStringList texts, cells, headings;
  std::map<QString, double> widths;  // of rectangles, by what they say
  int pictures = 0;
};

PageRead read_page(const QString& page) {
  PageRead read;
  QXmlStreamReader reader(page);
  double width = 0;
  QStringList open;
  QString text;  // since the last tag
  const auto take = [&] {
    if (text.isEmpty()) return;
    read.texts << text;
    if (open.contains("td")) read.cells.back() += text;
    if (open.back() == "h1" || open.back() == "h2") read.headings << text;
    if (open.size() > 1 && open[open.size() - 2] == "rect") read.widths[text] = width;
    text.clear();
  };
  while (!reader.atEnd()) {
    const auto token = reader.readNext();
    if (token == QXmlStreamReader::Characters) {
      text += reader.text();
    } else if (token == QXmlStreamReader::StartElement) {
      take();
      open << reader.name().toString();
      if (open.back() == "svg") ++read.pictures;
      if (open.back() == "rect") width = reader.attributes().value("width").toDouble();
      if (open.back() == "td") read.cells << QString();
    } else if (token == QXmlStreamReader::EndElement) {
      take();
      open.pop_back();
    }
  }
  if (reader.hasError()) read.error = reader.errorString();
  return read;
}

/// What Python's parser of HTML finds wrong with a file; empty = nothing.
std::string wrong_as_html(const QString& file) {
  const QString said = file + ".said";
  const std::string command = "python3 '" TESSERA_SOURCE_DIR "/tests/gui/page_check.py' '" +
                              file.toStdString() + "' > '" + said.toStdString() + "' 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream in(said.toStdString());
  const std::string text(std::istreambuf_iterator<char>(in), {});
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::string() : "wrong: " + text;
}

void expect_cells(const PageRead& page, const QAbstractItemModel& model) {
  ASSERT_GT(model.rowCount(), 0);
  for (int row = 0; row < model.rowCount(); ++row) {
    for (int column = 0; column < model.columnCount(); ++column) {
      const QString cell = model.index(row, column).data().toString();
      EXPECT_TRUE(page.cells.contains(cell)) << cell.toStdString();
    }
  }
}

struct Report : Explore {
  Session& session() { return window.session(); }
  PageRead page() { return read_page(report_of(session(), "2026-01-02T03:04:05Z")); }
  QString saved() {
    const QString file = folder.filePath("saved.html");
    write_report(session(), file);
    return file;
  }
  /// The page that the key saves.
  void read_saved_by_key(const QString& name, PageRead& read) {
    const QString file = folder.filePath(name);
    answer_file_dialog(&window, file);
    QTest::keyClick(&window, Qt::Key_E, Qt::ControlModifier | Qt::ShiftModifier);
    ASSERT_TRUE(wait_for([&] { return QFileInfo::exists(file); }));
    QFile written(file);
    ASSERT_TRUE(written.open(QFile::ReadOnly));
    read = read_page(QString::fromUtf8(written.readAll()));
  }
};

TEST_F(Report, OfAPlanSaysWhatItsModelsSay) {
  ask(small_query());
  const PageRead read = page();
  EXPECT_EQ(read.error, "");
  const Plan& plan = *session().plan();
  EXPECT_EQ(read.headings.value(0), "qwen2.5-0.5b on " + QString::fromStdString(plan.cluster.name));
  EXPECT_TRUE(read.texts.contains(headline_of(plan, session().calibration(), {}).text()));
  expect_cells(read, *session().plans());
  expect_cells(read, *session().phases());
  MemoryModel fullest;
  fullest.setPlan(session().plan(), session().calibration());
  expect_cells(read, fullest);
  const QString why = QString::fromStdString(describe(plan, &*session().calibration()));
  EXPECT_TRUE(read.texts.contains(why));
  EXPECT_EQ(read.pictures, 3);  // step, memory, mesh
  EXPECT_EQ(wrong_as_html(saved()), "");
}

/// Bytes from the plan's reshard, lengths from the simulation's own spans.
TEST_F(Report, HasTheSimulatedStepAndTheWayOfTheWeights) {
  PlanQuery query = small_query();
  query.fixed = {"actor.tp=2", "rollout.tp=1"};
  ask(query);
  session().timeline()->want();
  session().reshard()->want();
  ASSERT_TRUE(wait_for([&] { return !session().isWorking(); }));
  const TimelineIndex& index = *session().timeline()->facts();
  const PageRead read = page();
  EXPECT_EQ(read.error, "");
  EXPECT_EQ(read.pictures, 5);
  EXPECT_TRUE(read.headings.contains("The simulated step"));
  EXPECT_EQ(read.texts.filter("This is one draw of the response lengths").size(), 1);
  std::map<std::pair<int, int>, std::int64_t> bytes;
  const PlannedReshard& pair = session().plan()->reshard.front();
  const ReshardPlan exact = reshard_plan_of(*session().plan(), pair);
  for (const Transfer& transfer : exact.transfers) {
    bytes[{transfer.source, transfer.destination}] += volume(transfer.box) * 2;  // of bf16
  }
  ASSERT_GT(bytes.size(), 8u);
  for (const auto& [ends, sum] : bytes) {
    const QString says =
        ends.first == ends.second
            ? QString("%1 stay on %2").arg(bytesText(sum)).arg(ends.first)
            : QString("%1 from %2 to %3").arg(bytesText(sum)).arg(ends.first).arg(ends.second);
    EXPECT_TRUE(read.widths.contains(says)) << says.toStdString();
  }
  const Span* longest = nullptr;
  for (const Span& span : index.simulation.timeline.spans) {
    if (span.rank != 0 || span.stream != Stream::phases) continue;
    const bool longer =
        longest == nullptr || span.end_ns - span.start_ns > longest->end_ns - longest->start_ns;
    if (longer) longest = &span;
  }
  ASSERT_NE(longest, nullptr);
  const auto length = static_cast<double>(longest->end_ns - longest->start_ns);
  const QString says = QString("%1, %2: %3")
                           .arg(toText(name_of(longest->phase)),
                                QString::fromStdString(longest->name), secondsText(length * 1e-9));
  ASSERT_TRUE(read.widths.contains(says)) << says.toStdString();
  constexpr double kPlot = 770;  // pixels of the whole step
  EXPECT_NEAR(read.widths.at(says), kPlot * length / static_cast<double>(index.end_ns), 2);
  EXPECT_EQ(wrong_as_html(saved()), "");
}

TEST_F(Report, ItsPicturesAreToScale) {
  ask(small_query());
  const PageRead read = page();
  double step = 0, drawn = 0;
  for (const PhaseModel::Row& row : session().phases()->rows()) step = std::max(step, row.seconds);
  for (const auto& [says, width] : read.widths) {
    if (says.contains(", " + secondsText(step) + " from ")) drawn = width;
  }
  ASSERT_GT(drawn, 0);
  const double per_second = drawn / step;
  for (const PhaseModel::Row& row : session().phases()->rows()) {
    const QString says =
        QString("%1, %2 from %3 on")
            .arg(toText(name_of(row.phase)), secondsText(row.seconds), secondsText(row.start_s));
    ASSERT_TRUE(read.widths.contains(says)) << says.toStdString();
    EXPECT_NEAR(read.widths.at(says), per_second * row.seconds, 0.02) << says.toStdString();
  }
  // A cell of the mesh for every rank, and bars as long as their bytes.
  EXPECT_TRUE(read.widths.contains(
      "rank 7, " + session().mesh()->indexOf(7).data(MeshModel::CoordinateRole).toString()));
  MemoryModel fullest;
  fullest.setPlan(session().plan(), session().calibration());
  double per_byte = 0;
  for (const MemoryModel::Series& series : fullest.series()) {
    const auto bytes = series.bytes.front();
    if (bytes < (1 << 30)) continue;
    const QString says = series.name + ", " + fullest.phases().front() + ": " + bytesText(bytes);
    ASSERT_TRUE(read.widths.contains(says)) << says.toStdString();
    if (per_byte == 0) per_byte = read.widths.at(says) / static_cast<double>(bytes);
    EXPECT_NEAR(read.widths.at(says), per_byte * static_cast<double>(bytes), 0.02);
  }
  EXPECT_GT(per_byte, 0);
}

TEST_F(Report, OfARunHasItsMetricsItsPredictionAndItsRanks) {
  ASSERT_TRUE(window.openRun(kRunFolder, false));
  RunFollower& run = *session().run();
  const PageRead read = page();
  EXPECT_EQ(read.error, "");
  EXPECT_TRUE(read.headings.contains("The run run"));
  EXPECT_TRUE(read.texts.contains(run.summary().text));
  for (const QString& gap : run.comparison()->gaps()) EXPECT_TRUE(read.texts.contains(gap));
  expect_cells(read, *run.comparison());
  EXPECT_EQ(read.texts.filter("of the mean over the measured steps").size(), 1);
  expect_cells(read, *run.rules());
  expect_cells(read, *run.ranks());
  for (const std::string& name : run.steps()->names()) {
    bool main = false;
    for (const RunModel::Figure& figure : RunModel::figures()) {
      for (const std::string& shown : figure.names) main |= shown == name;
    }
    if (main) continue;
    EXPECT_TRUE(read.texts.contains(QString::fromStdString(name))) << name;
  }
  for (const PhaseComparison& row : run.comparison()->comparison().phases) {
    if (row.phase != "update_actor") continue;
    const auto says = [&](const QString& side, double value, double error) {
      const QString sure = error > 0 ? " +- " + secondsText(error) : QString();
      return side + ", update_actor: " + secondsText(value) + sure;
    };
    const QString predicted = says("predicted", row.predicted_s, row.predicted_deviation_s);
    const QString measured = says("measured", row.measured_s, row.measured_deviation_s);
    ASSERT_TRUE(read.widths.contains(predicted)) << predicted.toStdString();
    ASSERT_TRUE(read.widths.contains(measured)) << measured.toStdString();
    EXPECT_NEAR(read.widths.at(measured) / read.widths.at(predicted),
                row.measured_s / row.predicted_s, 0.02 * row.measured_s / row.predicted_s);
  }
  EXPECT_EQ(wrong_as_html(saved()), "");
}

/// Names of a stranger in every place that has some.
TEST_F(Report, ANameWithTagsStaysAName) {
  Plan plan = free_plan();
  plan.cluster.name = kHostile.toStdString();
  plan.cluster.intra_link = kHostile.toStdString();
  plan.models.at("actor").path = "models/" + kHostile.toStdString();
  plan.provenance.created = kHostile.toStdString();
  const QString run = folder.filePath("<i>run");
  QDir().mkpath(run);
  write_plan(plan, (run + "/plan.json").toStdString());
  std::ofstream metrics((run + "/metrics.jsonl").toStdString());
  const std::string name = "x<script>alert(2)</script>&\\\"'\\ud83d\\ude00";
  for (int step = 1; step < 4; ++step) {
    metrics << "{\"step\": " << step << ", \"data\": {\"" << name << "\": " << step
            << ", \"timing_s/gen\": 5, \"critic/score/mean\": 1e-320, \"y\": -1e308}}\n";
  }
  metrics.close();
  ASSERT_TRUE(window.openRun(run, false));
  // What XML cannot hold no reader lets in; the page would not hold it either.
  const QString html = report_of(session(), kHostile + QChar(1) + QChar(0xd800));
  EXPECT_FALSE(html.contains("<script"));
  EXPECT_FALSE(html.contains("<i>run"));
  EXPECT_FALSE(html.contains(QChar(1)));
  const PageRead read = read_page(html);
  EXPECT_EQ(read.error, "");
  EXPECT_TRUE(read.headings.value(0).endsWith(" on " + kHostile)) << qPrintable(read.headings[0]);
  EXPECT_TRUE(read.headings.contains("The run <i>run"));
  EXPECT_TRUE(read.texts.contains(u"x<script>alert(2)</script>&\"'\U0001F600"_qs));
  EXPECT_TRUE(read.texts.last(2).join("").contains("Written " + kHostile + "\ufffd\ufffd;"));
  EXPECT_EQ(wrong_as_html(saved()), "");
}

TEST_F(Report, OfWhatFitsNowhereSaysWhy) {
  ask(infeasible_query(folder.path().toStdString()));
  ASSERT_TRUE(document().none_fits.has_value());
  const PageRead read = page();
  EXPECT_EQ(read.error, "");
  EXPECT_TRUE(read.texts.contains(headline_of(*document().none_fits)));
  EXPECT_TRUE(read.texts.contains(QString::fromStdString(describe(*document().none_fits))));
  EXPECT_EQ(wrong_as_html(saved()), "");
}

TEST_F(Report, ThePinnedPlansAreComparedInIt) {
  ask(small_query());
  session().pin();
  PlanQuery other = small_query();
  other.fixed = {"actor.tp=4"};
  ask(other);
  session().pin();
  const PageRead read = page();
  EXPECT_TRUE(read.texts.contains(session().pinned()->sentence()));
  expect_cells(read, *session().pinned());
}

/// What a fixed choice costs, and why, goes with the report.
TEST_F(Report, SaysWhatAFixedChoiceCostsAndWhy) {
  ask(small_query());
  PlanQuery fixed = small_query();
  fixed.fixed = {"actor.tp=8"};
  ask(fixed);
  ASSERT_TRUE(wait_for([&] { return !session().isWorking(); }));
  const ShownAnswer shown = shown_answer(session());
  ASSERT_TRUE(shown.apart.contains("the plan without actor.tp=8: ")) << shown.apart.toStdString();
  const PageRead read = page();
  EXPECT_TRUE(read.headings.contains("Compared with the plan without actor.tp=8"));
  EXPECT_TRUE(read.texts.contains(shown.apart));
  EXPECT_TRUE(read.texts.contains(shown.line.text()));
  EXPECT_TRUE(read.texts.contains("Exposed communication"));
}

/// What is fixed to what the best plan has anyway differs in nothing.
TEST_F(Report, OfAChoiceThatCostsNothingHasNoEmptyTable) {
  ask(small_query());
  PlanQuery fixed = small_query();
  fixed.fixed = {"actor.tp=" + std::to_string(session().plan()->find(Role::actor)->layout.tp)};
  ask(fixed);
  ASSERT_TRUE(wait_for([&] { return !session().isWorking(); }));
  const auto pair = session().compared();
  ASSERT_TRUE(pair && pair->other.plan->roles == pair->shown.plan->roles);
  const PageRead read = page();
  ASSERT_TRUE(read.headings.contains(Words::tr("Compared with %1").arg(pair->other.name)));
  EXPECT_TRUE(read.texts.contains(apart_text(pair->other, pair->shown)));
  EXPECT_FALSE(read.texts.contains("row 1")) << "a column's header";
}

/// Nobody waited before the key: what a choice costs is looked for now.
TEST_F(Report, ThatIsSavedAtOnceWaitsForWhatAFixedChoiceCosts) {
  PlanQuery fixed = small_query();
  fixed.fixed = {"actor.tp=8"};
  ask(fixed);
  PageRead read;
  ASSERT_NO_FATAL_FAILURE(read_saved_by_key("at_once.html", read));
  EXPECT_TRUE(read.headings.contains("Compared with the plan without actor.tp=8"));
  EXPECT_TRUE(read.texts.contains("Exposed communication"));
}

/// Lines of the planner's report are wrapped, however narrow the page is.
TEST_F(Report, ItsLongLinesAreWrapped) {
  EXPECT_TRUE(report_style().contains("pre{white-space:pre-wrap;"));
}

TEST_F(Report, IsSavedByItsKeyAndAFileThatCannotBeWrittenIsTold) {
  ask(small_query());
  PageRead read;
  ASSERT_NO_FATAL_FAILURE(read_saved_by_key("by_key.html", read));
  EXPECT_EQ(read.error, "");
  EXPECT_TRUE(read.headings.contains("The simulated step"));
  EXPECT_TRUE(document().file_problems.isEmpty());
  window.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  answer_file_dialog(&window, "/proc/report.html");
  QTest::keyClick(&window, Qt::Key_E, Qt::ControlModifier | Qt::ShiftModifier);
  ASSERT_TRUE(wait_for([&] { return !document().file_problems.isEmpty(); }));
  EXPECT_TRUE(document().file_problems.contains("/proc/report.html"))
      << document().file_problems.toStdString();
}

TEST(ReportFile, IsMadeWithoutADisplay) {
  QTemporaryDir folder;
  const std::string into = folder.filePath("out").toStdString();
  const std::string command = std::string(TESSERA_BINARY_DIR) +
                              "/gui/tessera-gui --model qwen2.5-0.5b --cluster h100-8 --workload "
                              "ppo-7b-1k --export '" +
                              into + "' --formats html > /dev/null 2>&1";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const QStringList files = QDir(QString::fromStdString(into)).entryList(QDir::Files);
  EXPECT_EQ(files, QStringList{"report.html"});
  EXPECT_EQ(wrong_as_html(QString::fromStdString(into) + "/report.html"), "");
}

TEST(ReportFigure, TicksAreRoundAndFew) {
  EXPECT_EQ(round_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(-0.3, 0.31, 4), (std::vector<double>{-0.2, 0, 0.2}));
  EXPECT_TRUE(round_ticks(1, 1, 5).empty());
  EXPECT_LE(round_ticks(-1e300, 1e300, 5).size(), 6u);
  EXPECT_LE(round_ticks(1e16, 1e16 + 2, 5).size(), 6u);
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
  QApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
