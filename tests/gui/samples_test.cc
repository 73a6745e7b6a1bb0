// SPDX-License-Identifier: GPL-3.0-or-later
// Samples of a run: read within bounds, sorted, filtered.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <QAbstractItemModelTester>
#include <QTemporaryDir>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "cost_models/documents/problem.h"
#include "gui/samples/sample_model.h"
#include "simulator/timeline/metrics.h"
#include "tests/gui/model_tester.h"
#include "tests/gui/sample_lines.h"

namespace tessera::gui {
namespace {

namespace fs = std::filesystem;

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
         line_of(1, 0, "few", 2, R"(,"rollout_log_probs":[-1])") +
         R"({"step":1,"score":1,"prompt_ids":[-3]})"
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
  EXPECT_TRUE(tells("6:", "a number for each of response_ids"));
  EXPECT_TRUE(tells("7:", "a list of token ids"));
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

/// A run that replays what was recorded without log-probabilities writes an empty list of them.
TEST_F(SampleFile, SamplesWithoutLogProbabilitiesAreShown) {
  append(R"({"input":"1=","output":"1","step":1,"prompt_ids":[1,12],"response_ids":[1],)"
         R"("rollout_log_probs":[]})"
         "\n");
  SampleReader reader(file());
  const SampleNews news = reader.read();
  EXPECT_TRUE(news.problems.empty());
  ASSERT_EQ(news.samples.size(), 1U);
  EXPECT_EQ(news.samples[0].response_tokens, 1);
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

std::vector<Sample> random_samples() {
  std::mt19937 random(7);
  std::vector<Sample> samples;
  const char* const words[] = {"Alpha", "beta", "GAMMA beta", "delta", ""};
  for (int i = 0; i < 500; ++i) {
    const std::string logs = ",\"rollout_log_probs\":[" + std::to_string(random() % 7) + ",null]";
    const int tokens = static_cast<int>(random() % 20);
    const std::string line = line_of(1 + i / 10, static_cast<double>(random() % 5) / 4,
                                     words[random() % 5], tokens, tokens == 2 ? logs : "");
    Problems problems;
    samples.push_back(
        parse_sample(std::string_view(line).substr(0, line.size() - 1), "f", "1", problems)
            .value());
    if (i % 50 == 0) samples.back().reward.reset();
  }
  return samples;
}

/// What a column sorts a sample by: a number, or else a text.
std::pair<double, std::string> key_of(const Sample& of, int column) {
  switch (column) {
    case SampleModel::Step:
      return {static_cast<double>(of.step), ""};
    case SampleModel::Reward:
      return {of.reward.value_or(-1), ""};
    case SampleModel::Length:
      return {static_cast<double>(of.response_tokens), ""};
    case SampleModel::PromptLength:
      return {static_cast<double>(of.prompt_tokens), ""};
    case SampleModel::LogProb:
      return {of.mean_log_prob.value_or(-1000), ""};
    case SampleModel::Ended:
      return {of.finished ? 1 : 0, ""};
    default:
      return {0, column == SampleModel::Prompt     ? of.prompt
                 : column == SampleModel::Response ? of.response
                                                   : of.truth};
  }
}

TEST(SampleOrder, SortsAndFiltersAsABruteForceDoes) {
  const std::vector<Sample> samples = random_samples();
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
  const auto key = [&](int row, int column) {
    return key_of(samples[static_cast<std::size_t>(row)], column);
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

}  // namespace
}  // namespace tessera::gui
