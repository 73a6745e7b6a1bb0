// SPDX-License-Identifier: GPL-3.0-or-later
// Samples of a run: read within bounds, sorted, filtered, shown whole, exported.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <QAbstractItemModelTester>
#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QSpinBox>
#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <random>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "gui/pages/export_views.h"
#include "gui/samples/sample_model.h"
#include "simulator/timeline/metrics.h"
#include "tests/gui/explore_flow.h"

namespace tessera::gui {
namespace {

namespace fs = std::filesystem;
constexpr auto kFatal = QAbstractItemModelTester::FailureReportingMode::Fatal;
/// What a run of four steps, eight prompts and four samples each left.
const fs::path kSampled = fs::path(TESSERA_SOURCE_DIR) / "tests/gui/data/sampled";

std::string line_of(std::int64_t step, double score, const std::string& output, int tokens = 2,
                    const std::string& more = {}) {
  std::string ids;
  for (int i = 0; i < tokens; ++i) ids += (i == 0 ? "" : ",") + std::to_string(i);
  return R"({"input":"q)" + std::to_string(step) + R"(","output":")" + output +
         R"(","gts":"42","score":)" + std::to_string(score) + R"(,"step":)" + std::to_string(step) +
         R"(,"finished":true,"prompt_ids":[1],"response_ids":[)" + ids + "]" + more + "}\n";
}

class SampleFile : public testing::Test {
 protected:
  void append(const std::string& text) {
    std::ofstream(file(), std::ios::app | std::ios::binary) << text;
  }
  fs::path file() const { return fs::path(folder_.path().toStdString()) / "samples.jsonl"; }

  QTemporaryDir folder_;
};

TEST_F(SampleFile, TheMeansOfARecordedRunsSamplesAreItsMetrics) {
  SampleReader reader(kSampled / "samples.jsonl");
  const SampleNews news = reader.read();
  EXPECT_TRUE(news.problems.empty());
  EXPECT_FALSE(news.earlier);
  struct Sums {
    double reward = 0, response = 0, prompt = 0, count = 0;
  };
  std::map<std::int64_t, Sums> steps;
  for (const Sample& sample : news.samples) {
    Sums& sums = steps[sample.step];
    sums.reward += sample.reward.value();
    sums.response += static_cast<double>(sample.response_tokens);
    sums.prompt += static_cast<double>(sample.prompt_tokens);
    ++sums.count;
    EXPECT_EQ(sample.truth.size(), 3u);
    EXPECT_EQ(sample.prompt.back(), '=');
  }
  Problems problems;
  const auto metrics = read_metrics(kSampled / "metrics.jsonl", problems);
  ASSERT_EQ(metrics->size(), 4u);
  ASSERT_EQ(steps.size(), 4u);
  for (const StepNumbers& step : *metrics) {
    const Sums& sums = steps.at(step.step);
    EXPECT_EQ(sums.count, 32);
    EXPECT_NEAR(sums.reward / sums.count, step.data.at("critic/score/mean"), 1e-12);
    EXPECT_NEAR(sums.response / sums.count, step.data.at("response_length/mean"), 1e-12);
    EXPECT_NEAR(sums.prompt / sums.count, step.data.at("prompt_length/mean"), 1e-12);
  }
}

TEST_F(SampleFile, OfALongRunTheNewestAreKeptAndAnyStepIsFound) {
  constexpr int kSteps = 20'000, kEach = 4;
  std::string text;
  std::mt19937 random(1);
  for (int step = 1; step <= kSteps; ++step) {
    for (int i = 0; i < kEach; ++i) {
      text += line_of(step, i, std::string(random() % 90, 'x'), 1 + static_cast<int>(random() % 9));
    }
  }
  append(text);
  SampleLimits limits;
  limits.samples = 1000;
  const auto read_up_to = [&](std::optional<std::int64_t> step) {
    return SampleReader(file(), step, limits).read();
  };
  const auto shows = [&](const SampleNews& news, std::int64_t first, std::int64_t last) {
    EXPECT_TRUE(news.problems.empty());
    ASSERT_FALSE(news.samples.empty());
    EXPECT_EQ(news.samples.front().step, first);
    EXPECT_EQ(news.samples.back().step, last);
    EXPECT_EQ(news.samples.size(), static_cast<std::size_t>((last - first + 1) * kEach));
    EXPECT_EQ(news.earlier, first > 1);
    EXPECT_EQ(news.later, last < kSteps);
  };
  shows(read_up_to({}), kSteps - 249, kSteps);
  for (const int last : {1, 2, 100, 250, 251, 7777, kSteps - 1, kSteps}) {
    shows(read_up_to(last), std::max(1, last - 249), last);
  }
  EXPECT_TRUE(read_up_to(0).samples.empty());
  EXPECT_TRUE(read_up_to(0).later);
  // Bytes bound as well, of the file and of the texts.
  limits.file_bytes = 20'000;
  const SampleNews few = read_up_to({});
  EXPECT_GT(few.samples.size(), 50u);
  EXPECT_LT(few.samples.size(), 300u);
  limits = {};
  limits.text_bytes = 10'000;
  const SampleNews small = read_up_to({});
  std::size_t bytes = 0;
  for (const Sample& sample : small.samples) bytes += sample.bytes();
  EXPECT_LE(bytes, 10'000u);
  EXPECT_GT(bytes, 9'000u);
  EXPECT_EQ(small.samples.back().step, kSteps);
}

TEST_F(SampleFile, AGrowingFileIsFollowedWithinTheBounds) {
  SampleLimits limits;
  limits.samples = 10;
  SampleReader reader(file(), {}, limits);
  SampleModel model(limits);
  QAbstractItemModelTester tester(&model, kFatal);
  EXPECT_TRUE(reader.read().samples.empty());  // there is no file yet
  append(line_of(1, 0, "a") + line_of(1, 1, "b").substr(0, 20));
  model.append(reader.read().samples);
  EXPECT_EQ(model.rowCount(), 1);
  append(line_of(1, 1, "b").substr(20));
  model.append(reader.read().samples);
  ASSERT_EQ(model.rowCount(), 2);
  EXPECT_EQ(model.sample(1).response, "b");
  for (int step = 2; step <= 30; ++step) {
    append(line_of(step, 0, "x"));
    model.append(reader.read().samples);
  }
  EXPECT_EQ(model.rowCount(), 10);
  EXPECT_EQ(model.sample(0).step, 21);
  EXPECT_TRUE(model.hasLost());
  // A run that goes on from an earlier step has cut the file.
  fs::resize_file(file(), line_of(1, 0, "a").size());
  const SampleNews again = reader.read();
  EXPECT_TRUE(again.restarted);
  ASSERT_EQ(again.samples.size(), 1u);
  EXPECT_EQ(again.samples[0].response, "a");
}

TEST_F(SampleFile, BrokenLinesAreToldWithPlaceAndReason) {
  append(line_of(1, 0, "good") + "no json\n" +
         R"({"step":-1,"score":1})"
         "\n" +
         R"({"score":1})"
         "\n" +
         R"({"step":1,"score":"much","response_ids":7})"
         "\n" +
         line_of(2, 1, "good"));
  SampleReader reader(file());
  const SampleNews news = reader.read();
  EXPECT_EQ(news.samples.size(), 2u);
  const std::string name = file().string();
  std::vector<std::string> said;
  for (const Problem& problem : news.problems) said.push_back(to_string(problem));
  const auto tells = [&](const std::string& place, const std::string& reason) {
    return std::any_of(said.begin(), said.end(), [&](const std::string& text) {
      return text.starts_with(name + ":" + place) && text.find(reason) != std::string::npos;
    });
  };
  EXPECT_TRUE(tells("2:", "expected JSON"));
  EXPECT_TRUE(tells("3:", "/step"));
  EXPECT_TRUE(tells("4:", "step"));
  EXPECT_TRUE(tells("5:", "/score"));
  EXPECT_TRUE(tells("5:", "a list of token ids"));
  EXPECT_TRUE(reader.read().problems.empty());  // once
  // Where the beginning of the file is not read, lines have no numbers.
  SampleLimits limits;
  limits.samples = 1;
  append("broken\n");
  const SampleNews last = SampleReader(file(), {}, limits).read();
  ASSERT_FALSE(last.problems.empty());
  EXPECT_TRUE(last.problems[0].place.starts_with("byte ")) << last.problems[0].place;
}

TEST_F(SampleFile, AStrangersFileIsBoundedAndNotWaitedFor) {
  SampleLimits limits;
  limits.line_bytes = 1000;
  append(line_of(1, 0, "a") + std::string(1'000'000, '[') + "\n" + line_of(2, 0, "b"));
  const SampleNews news = SampleReader(file(), {}, limits).read();
  EXPECT_EQ(news.samples.size(), 2u);
  ASSERT_EQ(news.problems.size(), 1u);
  EXPECT_EQ(news.problems[0].place, "2");
  fs::remove(file());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  SampleReader reader(file());
  EXPECT_EQ(reader.read().problems.size(), 1u);
  EXPECT_TRUE(reader.read().problems.empty());
  fs::remove(file());
  const std::string good = line_of(3, 0.5, "text", 4, R"(,"uid":"u")");
  int told = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    std::string text = good;
    const std::size_t at = i * (good.size() - 2) / 100;
    switch (i % 4) {
      case 0:
        text[at] = static_cast<char>(0xff);
        break;
      case 1:
        text.insert(at, "99999999999999999999");
        break;
      case 2:
        text.erase(at, 1 + i);
        break;
      default:
        text.insert(at, std::string(70, '['));
        break;
    }
    std::ofstream(file(), std::ios::binary) << text << "\n";
    const SampleNews broken = SampleReader(file()).read();
    told += broken.problems.empty() ? 0 : 1;
    EXPECT_TRUE(broken.samples.empty() || broken.problems.empty()) << text;
  }
  EXPECT_GE(told, 60);  // the others changed a text alone
}

TEST_F(SampleFile, LongTextsAreCutBetweenCharacters) {
  std::string text;
  while (text.size() <= kMostText) text += "\xe4\xb8\xad";
  append(line_of(1, 0, text));
  const SampleNews news = SampleReader(file()).read();
  ASSERT_EQ(news.samples.size(), 1u);
  const QString kept = QString::fromStdString(news.samples[0].response);
  EXPECT_FALSE(kept.contains(QChar::ReplacementCharacter));
  EXPECT_TRUE(kept.endsWith(QString("... (%1 bytes in all)").arg(text.size())));
}

TEST(SampleOrder, SortsAndFiltersAsABruteForceDoes) {
  std::mt19937 random(7);
  std::vector<Sample> samples;
  const char* const words[] = {"Alpha", "beta", "GAMMA beta", "delta", ""};
  for (int i = 0; i < 500; ++i) {
    const std::string line = line_of(1 + i / 10, static_cast<double>(random() % 5) / 4,
                                     words[random() % 5], static_cast<int>(random() % 20));
    Problems problems;
    samples.push_back(
        parse_sample(std::string_view(line).substr(0, line.size() - 1), "f", "1", problems)
            .value());
    if (i % 50 == 0) samples.back().reward.reset();
  }
  SampleModel model;
  QAbstractItemModelTester tester(&model, kFatal);
  SampleOrder order(&model);
  QAbstractItemModelTester order_tester(&order, kFatal);
  order.sort(SampleModel::Reward);
  model.append({samples.begin(), samples.begin() + 200});  // rows come while it is sorted
  model.append({samples.begin() + 200, samples.end()});
  const auto rows = [&] {
    std::vector<int> rows;
    for (int row = 0; row < order.rowCount(); ++row) {
      rows.push_back(order.mapToSource(order.index(row, 0)).row());
    }
    return rows;
  };
  const auto key = [&](int row, int column) -> std::pair<double, std::string> {
    const Sample& of = samples[static_cast<std::size_t>(row)];
    switch (column) {
      case SampleModel::Step:
        return {static_cast<double>(of.step), ""};
      case SampleModel::Reward:
        return {of.reward.value_or(-1), ""};
      case SampleModel::Length:
        return {static_cast<double>(of.response_tokens), ""};
      case SampleModel::PromptLength:
        return {static_cast<double>(of.prompt_tokens), ""};
      case SampleModel::Ended:
        return {of.finished ? 1 : 0, ""};
      default:
        return {0, column == SampleModel::Prompt     ? of.prompt
                   : column == SampleModel::Response ? of.response
                                                     : of.truth};
    }
  };
  for (int column = 0; column < SampleModel::ColumnCount; ++column) {
    for (const bool rising : {true, false}) {
      order.sort(column, rising ? Qt::AscendingOrder : Qt::DescendingOrder);
      const std::vector<int> shown = rows();
      ASSERT_EQ(shown.size(), samples.size());
      for (std::size_t i = 1; i < shown.size(); ++i) {
        const auto before = key(shown[i - 1], column), after = key(shown[i], column);
        EXPECT_TRUE(rising ? before <= after : before >= after) << column << " " << i;
      }
    }
  }
  for (const char* const word : {"BETA", "a", "alpha", "q17", "42", "nowhere", ""}) {
    const QString text = word;
    order.setText(text);
    int wanted = 0;
    for (const Sample& sample : samples) {
      const auto has = [&](const std::string& of) {
        return QString::fromStdString(of).contains(text, Qt::CaseInsensitive);
      };
      wanted += has(sample.prompt) || has(sample.response) || has(sample.truth) ? 1 : 0;
    }
    EXPECT_EQ(order.rowCount(), wanted) << text.toStdString();
  }
}

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
  EXPECT_EQ(cell(63, SampleModel::Step), "2");
  // Another run begins with its newest.
  ASSERT_TRUE(window.openRun(QString::fromStdString(kSampled.string()), false));
  EXPECT_EQ(last->text(), "newest");
  EXPECT_TRUE(wait_for([&] { return table()->model()->rowCount() == 128; }));
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
  }
}

}  // namespace
}  // namespace tessera::gui

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
