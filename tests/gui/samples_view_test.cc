// SPDX-License-Identifier: GPL-3.0-or-later
// Samples of a run in the window: found, filtered, shown whole, exported.
#include <gtest/gtest.h>

#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QSpinBox>
#include <algorithm>
#include <cmath>
#include <fstream>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "gui/pages/export_views.h"
#include "gui/samples/sample_model.h"
#include "gui/samples/token_model.h"
#include "tests/gui/explore_flow.h"
#include "tests/gui/sample_lines.h"

namespace tessera::gui {
namespace {

class SamplesView : public Explore {
 protected:
  void SetUp() override {
    Explore::SetUp();
    ASSERT_TRUE(window.openRun(QString::fromStdString(kSampled.string()), false));
  }
  /// By the page's tab, as a person does.
  void open() {
    showTab("Samples");
    ASSERT_TRUE(wait_for([&] { return table()->model()->rowCount() == 128; }));
  }
  QTableView* table() { return named<QTableView>(window, "Samples of the run"); }
  QString whole(const QString& part) {
    return named<QPlainTextEdit>(window, part + " of the sample")->toPlainText();
  }
  void clickHeader(int column) {
    QHeaderView* header = table()->horizontalHeader();
    QTest::mouseClick(header->viewport(), Qt::LeftButton, {},
                      {header->sectionViewportPosition(column) + 12, header->height() / 2});
  }
  QString cell(int row, int column) {
    return table()->model()->index(row, column).data().toString();
  }
};

TEST_F(SamplesView, AreReadOnceSomebodyLooks) {
  rest(100);
  EXPECT_EQ(window.session().samples()->model()->rowCount(), 0);
  open();
  EXPECT_TRUE(named<QLabel>(window, "Which samples are shown")
                  ->text()
                  .startsWith("128 samples of steps 1 to 4"));
}

TEST_F(SamplesView, TheNewestStandsFirst) {
  open();
  EXPECT_EQ(cell(0, SampleModel::Step), "4");
  EXPECT_EQ(cell(127, SampleModel::Step), "1");
  EXPECT_EQ(table()->currentIndex().row(), 0) << "its first sample is the one below";
}

TEST_F(SamplesView, TheBestOneIsFoundByAClickAndReadWhole) {
  open();
  clickHeader(SampleModel::Reward);
  clickHeader(SampleModel::Reward);
  const SampleModel& model = *window.session().samples()->model();
  const Sample& best = *std::max_element(
      model.samples().begin(), model.samples().end(),
      [](const Sample& a, const Sample& b) { return a.reward.value() < b.reward.value(); });
  EXPECT_DOUBLE_EQ(cell(0, SampleModel::Reward).toDouble(),
                   QString::number(*best.reward, 'g', 4).toDouble());
  QTest::mouseClick(table()->viewport(), Qt::LeftButton, {},
                    table()->visualRect(table()->model()->index(0, 0)).center());
  EXPECT_EQ(whole("Prompt"), cell(0, SampleModel::Prompt));
  QTest::keyClick(table(), Qt::Key_Down);
  EXPECT_EQ(whole("Prompt"), cell(1, SampleModel::Prompt));
  EXPECT_EQ(whole("Response"), cell(1, SampleModel::Response));
  EXPECT_EQ(whole("Expected"), cell(1, SampleModel::Truth));
}

TEST_F(SamplesView, AreFilteredByKeysAndBoundedByAStep) {
  open();
  const QString prompt = cell(0, SampleModel::Prompt);
  QTest::keyClick(&window, Qt::Key_F, Qt::ControlModifier);
  auto* filter = named<QLineEdit>(window, "Filter of the samples");
  ASSERT_TRUE(filter->hasFocus());
  QTest::keyClicks(filter, prompt);
  ASSERT_TRUE(wait_for([&] { return table()->model()->rowCount() < 128; }));
  EXPECT_GE(table()->model()->rowCount(), 4);
  for (int row = 0; row < table()->model()->rowCount(); ++row) {
    EXPECT_TRUE(
        (cell(row, SampleModel::Prompt) + cell(row, SampleModel::Response)).contains(prompt));
  }
  QTest::keyClick(filter, Qt::Key_A, Qt::ControlModifier);
  QTest::keyClick(filter, Qt::Key_Delete);
  ASSERT_TRUE(wait_for([&] { return table()->model()->rowCount() == 128; }));
  auto* last = named<QSpinBox>(window, "Last step whose samples are shown");
  last->setFocus();
  last->selectAll();
  QTest::keyClicks(last, "2");
  QTest::keyClick(last, Qt::Key_Return);
  ASSERT_TRUE(wait_for([&] { return table()->model()->rowCount() == 64; }));
  EXPECT_EQ(cell(0, SampleModel::Step), "2");
  // Another run begins with its newest.
  ASSERT_TRUE(window.openRun(QString::fromStdString(kSampled.string()), false));
  EXPECT_EQ(last->text(), "newest");
  EXPECT_TRUE(wait_for([&] { return table()->model()->rowCount() == 128; }));
}

// Whatever the order was, one looks at the first of what is left, or goes on with the chosen one.
TEST_F(SamplesView, AFilterBeginsAtItsFirstRowAndIsNotThatOfTheNextRun) {
  open();
  clickHeader(SampleModel::LogProb);
  const int all = table()->model()->rowCount();
  const QString prompt = cell(all - 1, SampleModel::Prompt);
  table()->scrollToBottom();
  auto* filter = named<QLineEdit>(window, "Filter of the samples");
  filter->setText(prompt);
  ASSERT_TRUE(wait_for([&] { return table()->model()->rowCount() < all; }));
  EXPECT_EQ(table()->currentIndex().row(), 0);
  EXPECT_EQ(table()->rowAt(1), 0) << "it is in sight";
  const int last = table()->model()->rowCount() - 1;
  const QString chosen = cell(last, SampleModel::Response);
  table()->scrollToBottom();
  const QRect where = table()->visualRect(table()->model()->index(last, 0));
  QTest::mouseClick(table()->viewport(), Qt::LeftButton, {}, where.center());
  filter->clear();
  ASSERT_TRUE(wait_for([&] { return table()->model()->rowCount() == all; }));
  EXPECT_EQ(cell(table()->currentIndex().row(), SampleModel::Response), chosen);
  filter->setText("nobody said this");
  ASSERT_TRUE(wait_for([&] { return table()->model()->rowCount() == 0; }));
  ASSERT_TRUE(window.openRun(QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run", false));
  EXPECT_TRUE(filter->text().isEmpty());
  ASSERT_TRUE(window.openRun(QString::fromStdString(kSampled.string()), false));
  EXPECT_TRUE(wait_for([&] { return table()->model()->rowCount() == all; }));
}

// Beside the file, read by the JSON reader alone.
TEST_F(SamplesView, ShowsTheTokensThatWereDrawnAndTheLeastLikelyFirst) {
  open();
  std::ifstream file(kSampled / "samples.jsonl");
  std::string line;
  constexpr int kBefore = 96;  // lines of steps before the newest, whose seventh line is looked at
  for (int row = 0; row <= kBefore + 7; ++row) std::getline(file, line);
  Problems problems;
  const auto json = parse_json(line, "a line", problems);
  const Node &asked = *json->root.find("prompt_ids"), &drawn = *json->root.find("response_ids"),
             &logs = *json->root.find("rollout_log_probs");
  QTest::mouseClick(table()->viewport(), Qt::LeftButton, {},
                    table()->visualRect(table()->model()->index(7, 0)).center());
  auto* tokens = named<QTableView>(window, "Tokens of the sample");
  const auto shown = [&](int row, int column) {
    return tokens->model()->index(row, column).data().toString();
  };
  const int prompt = static_cast<int>(asked.items.size());
  ASSERT_EQ(tokens->model()->rowCount(), prompt + static_cast<int>(drawn.items.size()));
  double sum = 0, least = 0;
  for (int row = 0; row < tokens->model()->rowCount(); ++row) {
    const bool of_prompt = row < prompt;
    const auto at = static_cast<std::size_t>(of_prompt ? row : row - prompt);
    EXPECT_EQ(shown(row, TokenModel::Part), of_prompt ? "Prompt" : "Response");
    EXPECT_EQ(shown(row, TokenModel::Token).toLongLong(),
              (of_prompt ? asked : drawn).items[at].integer);
    if (of_prompt) {
      EXPECT_EQ(shown(row, TokenModel::LogProb), "-");
      continue;
    }
    const double log = logs.items[at].number;
    EXPECT_NEAR(shown(row, TokenModel::LogProb).toDouble(), log, 5e-5);
    EXPECT_NEAR(shown(row, TokenModel::Probability).toDouble(), std::exp(log), 1e-3);
    sum += log;
    least = std::min(least, log);
  }
  EXPECT_NEAR(cell(7, SampleModel::LogProb).toDouble(),
              sum / static_cast<double>(logs.items.size()), 5e-4);
  QHeaderView* header = tokens->horizontalHeader();
  QTest::mouseClick(
      header->viewport(), Qt::LeftButton, {},
      {header->sectionViewportPosition(TokenModel::LogProb) + 12, header->height() / 2});
  EXPECT_NEAR(shown(0, TokenModel::LogProb).toDouble(), least, 5e-5);
}

TEST_F(SamplesView, WhatIsBrokenIsSaidAboveTheTable) {
  std::ofstream((folder.path() + "/samples.jsonl").toStdString())
      << line_of(1, 1, "fine") << "broken\n";
  ASSERT_TRUE(window.openRun(folder.path(), false));
  showTab("Samples");
  ASSERT_TRUE(wait_for([&] { return table()->model()->rowCount() == 1; }));
  const QString said = named<MessageBar>(window, "What is wrong with the samples")->text();
  EXPECT_TRUE(said.contains("samples.jsonl:2:1")) << said.toStdString();
}

// New samples stand above it: who reads one keeps it in sight, who chose none sees the newest.
TEST_F(SamplesView, AChosenOneStaysInItsPlace) {
  const auto add = [&](int step) {
    std::ofstream out((folder.path() + "/samples.jsonl").toStdString(), std::ios::app);
    for (int sample = 0; sample < 64; ++sample) {
      out << line_of(step, 1, "step " + std::to_string(step));
    }
  };
  add(1);
  ASSERT_TRUE(window.openRun(folder.path(), true));
  showTab("Samples");
  const auto read = [&](int rows) {
    return wait_for([&] { return table()->model()->rowCount() == rows; });
  };
  ASSERT_TRUE(read(64));
  add(2);
  ASSERT_TRUE(read(128));
  EXPECT_EQ(whole("Response"), "step 2");
  EXPECT_EQ(table()->currentIndex().row(), 0);
  const auto place = [&] { return table()->visualRect(table()->currentIndex()); };
  QTest::mouseClick(table()->viewport(), Qt::LeftButton, {},
                    table()->visualRect(table()->model()->index(2, 0)).center());
  rest(50);
  const QRect before = place();
  ASSERT_TRUE(table()->viewport()->rect().contains(before.center()));
  add(3);
  ASSERT_TRUE(read(192));
  EXPECT_EQ(whole("Response"), "step 2");
  EXPECT_EQ(table()->currentIndex().row(), 66);
  EXPECT_EQ(place(), before);
}

TEST_F(SamplesView, AreExportedWithoutADisplay) {
  const QStringList files = exportViews(window, folder.path(), kAllFormats);
  for (const char* ending : {".png", ".svg", ".csv", ".json"}) {
    EXPECT_TRUE(files.contains(folder.filePath(QString("samples") + ending))) << ending;
  }
  const SampleModel& model = *window.session().samples()->model();
  ASSERT_EQ(model.rowCount(), 128);
  Problems problems;
  const auto csv = read_csv((folder.path() + "/samples.csv").toStdString(), problems);
  ASSERT_TRUE(csv && problems.empty());
  ASSERT_EQ(csv->rows.size(), 128u);
  const auto text = read_text_file((folder.path() + "/samples.json").toStdString(),
                                   std::size_t{1} << 20, problems);
  const auto json = parse_json(*text, "samples.json", problems);
  const Node& list = *json->root.find("samples");
  ASSERT_EQ(list.items.size(), 128u);
  const std::size_t reward = *csv->column("reward"), response = *csv->column("response");
  for (std::size_t i = 0; i < 128; ++i) {
    const Sample& sample = model.sample(static_cast<int>(i));
    EXPECT_EQ(csv->rows[i].cells[response], sample.response);
    EXPECT_NEAR(std::stod(csv->rows[i].cells[reward]), *sample.reward, 1e-9);
    EXPECT_EQ(list.items[i].find("response")->text, sample.response);
    EXPECT_EQ(list.items[i].find("response_tokens")->integer, sample.response_tokens);
    EXPECT_DOUBLE_EQ(list.items[i].find("reward")->number, *sample.reward);
    ASSERT_EQ(list.items[i].find("response_ids")->items.size(), sample.response_ids.size());
    EXPECT_EQ(list.items[i].find("response_ids")->items.back().integer, sample.response_ids.back());
    EXPECT_EQ(list.items[i].find("rollout_log_probs")->items.back().number,
              sample.log_probs.back());
  }
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
