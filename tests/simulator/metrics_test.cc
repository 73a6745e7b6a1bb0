#include "simulator/timeline/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem.h"
#include "simulator/timeline/measured_phase.h"

namespace tessera {
namespace {

class Metrics : public ::testing::Test {
 protected:
  Metrics()
      : file_(std::filesystem::path(::testing::TempDir()) /
              (std::string("metrics_") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".jsonl")) {
    std::filesystem::remove(file_);
  }
  ~Metrics() override { std::filesystem::remove(file_); }

  void append(const std::string& text) { std::ofstream(file_, std::ios::app) << text; }

  std::filesystem::path file_;
  Problems problems_;
};

constexpr const char* kLine =
    R"({"step": 3, "data": {"critic/score/mean": 0.25, "actor/lr": null, "reshard/bytes": 4096}})";

TEST_F(Metrics, ALineGivesItsNumbersAndLeavesNullOut) {
  const auto step = parse_metrics_line(kLine, "m.jsonl", 1, problems_);
  ASSERT_TRUE(step) << to_string(problems_.at(0));
  EXPECT_EQ(step->step, 3);
  const std::map<std::string, double> expected{{"critic/score/mean", 0.25},
                                               {"reshard/bytes", 4096}};
  EXPECT_EQ(step->data, expected);
}

TEST_F(Metrics, MalformedLinesAreRefusedWithTheirLineInTheFile) {
  const std::array lines{"{",
                         "[]",
                         "3",
                         "null",
                         "\"step\"",
                         "{}",
                         "nonsense",
                         R"({"step": 1})",
                         R"({"data": {}})",
                         R"({"step": "1", "data": {}})",
                         R"({"step": 1.5, "data": {}})",
                         R"({"step": -1, "data": {}})",
                         R"({"step": null, "data": {}})",
                         R"({"step": 1, "data": []})",
                         R"({"step": 1, "data": null})",
                         R"({"step": 1, "data": {"a": "1"}})",
                         R"({"step": 1, "data": {"a": true}})",
                         R"({"step": 1, "data": {"a": [1]}})",
                         R"({"step": 1, "data": {"a": {"b": 1}}})",
                         R"({"step": 1, "data": {"a": NaN}})",
                         R"({"step": 1, "data": {"a": Infinity}})",
                         R"({"step": 1, "data": {"a": 1e999}})",
                         R"({"step": 1, "data": {"a": 1, "a": 2}})",
                         R"({"step": 1, "step": 2, "data": {}})",
                         R"({"step": 1, "data": {}, "dta": {}})",
                         R"({"step": 1, "data": {}} {"step": 2, "data": {}})",
                         R"({"step": 1, "data": {"a": 1,}})",
                         R"({"step": 99999999999999999999, "data": {}})",
                         "{\"step\": 1, \"data\": {\"\xff\": 1}}",
                         R"({"step": 1, "data": {"a": .5}})",
                         R"({'step': 1, 'data': {}})"};
  for (const char* line : lines) {
    SCOPED_TRACE(line);
    Problems problems;
    EXPECT_FALSE(parse_metrics_line(line, "m.jsonl", 17, problems));
    ASSERT_FALSE(problems.empty());
    EXPECT_EQ(problems[0].file, "m.jsonl");
    EXPECT_TRUE(problems[0].place.starts_with("17")) << problems[0].place;
    EXPECT_FALSE(problems[0].found.empty());
    EXPECT_FALSE(problems[0].expected.empty());
  }
}

TEST_F(Metrics, AllDefectsOfAFileComeOutAtOnce) {
  append(std::string(kLine) + "\n{\"step\": 4}\n" + kLine + "\nbroken\n");
  EXPECT_FALSE(read_metrics(file_, problems_));
  ASSERT_EQ(problems_.size(), 2u);
  EXPECT_TRUE(problems_[0].place.starts_with("2:")) << problems_[0].place;
  EXPECT_TRUE(problems_[1].place.starts_with("4:")) << problems_[1].place;
}

TEST_F(Metrics, AHalfWrittenLastLineIsNoDefect) {
  append(std::string(kLine) + "\n" + std::string(kLine).substr(0, 40));
  const auto steps = read_metrics(file_, problems_);
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->size(), 1u);
}

TEST_F(Metrics, AWholeLastLineWithoutNewlineCounts) {
  append(std::string(kLine) + "\n\n" + kLine);
  const auto steps = read_metrics(file_, problems_);
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->size(), 2u);
}

TEST_F(Metrics, AMissingFileAndAFolderAreNamed) {
  EXPECT_FALSE(read_metrics(file_, problems_));
  EXPECT_FALSE(read_metrics(file_.parent_path(), problems_));
  ASSERT_EQ(problems_.size(), 2u);
  EXPECT_EQ(problems_[0].found, "no such file");
  EXPECT_EQ(problems_[1].found, "not a regular file");
}

TEST_F(Metrics, TailGivesEveryLineOnceHoweverItsBytesArrive) {
  std::string text;
  for (int step = 1; step <= 40; ++step) {
    text += "{\"step\": " + std::to_string(step) + ", \"data\": {\"a\": 1}}\n";
  }
  MetricsTail tail(file_);
  EXPECT_TRUE(tail.read_new(problems_).empty());  // no file yet
  std::vector<std::int64_t> seen;
  for (std::size_t at = 0; at < text.size(); at += 7) {
    append(text.substr(at, 7));
    for (const StepNumbers& step : tail.read_new(problems_)) seen.push_back(step.step);
  }
  EXPECT_TRUE(problems_.empty());
  ASSERT_EQ(seen.size(), 40u);
  for (int step = 1; step <= 40; ++step) EXPECT_EQ(seen[step - 1], step);
  EXPECT_TRUE(tail.read_new(problems_).empty());
}

TEST_F(Metrics, TailPassesOverAMalformedLineAndSaysWhich) {
  append(std::string(kLine) + "\nbroken\n" + kLine + "\n");
  MetricsTail tail(file_);
  EXPECT_EQ(tail.read_new(problems_).size(), 2u);
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_TRUE(problems_[0].place.starts_with("2:"));
}

TEST_F(Metrics, TailBeginsAgainWhenTheFileIsAnotherOne) {
  append(std::string(kLine) + "\n");
  MetricsTail tail(file_);
  EXPECT_EQ(tail.read_new(problems_).size(), 1u);
  const std::filesystem::path beside = file_.string() + ".new";
  std::ofstream(beside) << kLine << "\n" << kLine << "\n";
  std::filesystem::rename(beside, file_);
  EXPECT_EQ(tail.read_new(problems_).size(), 2u);
  EXPECT_TRUE(tail.restarted());
  EXPECT_TRUE(tail.read_new(problems_).empty());
  EXPECT_FALSE(tail.restarted());
}

TEST_F(Metrics, TailBeginsAgainWhenTheFileShrinks) {
  append(std::string(kLine) + "\n" + kLine + "\n");
  MetricsTail tail(file_);
  EXPECT_EQ(tail.read_new(problems_).size(), 2u);
  EXPECT_FALSE(tail.restarted());
  std::ofstream(file_, std::ios::trunc) << kLine << "\n";
  EXPECT_EQ(tail.read_new(problems_).size(), 1u);
  EXPECT_TRUE(tail.restarted());
}

/// The same steps by verl 0.9.1's own loggers: utils/logger/aggregate_logger.py's line on the
/// console (under Ray, with numpy's numbers) and utils/tracking.py's JSON lines.
TEST_F(Metrics, AConsoleLogOfVerlHasTheStepsOfItsJsonLines) {
  const std::filesystem::path logs =
      std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/fixtures/verl_logs";
  const auto console = read_metrics(logs / "console.log", problems_);
  const auto lines = read_metrics(logs / "metrics.jsonl", problems_);
  ASSERT_TRUE(console && lines);
  ASSERT_EQ(console->size(), 4U);
  ASSERT_EQ(lines->size(), 4U);
  for (std::size_t i = 0; i < lines->size(); ++i) {
    EXPECT_EQ((*console)[i].step, (*lines)[i].step);
    EXPECT_EQ((*console)[i].data, (*lines)[i].data) << i;
  }
  EXPECT_EQ(console->back().data.at("timing_s/update_weights"), 1.15);
  EXPECT_EQ(measured_seconds(console->back(), Phase::reshard), 1.15);
  EXPECT_EQ(measured_seconds(console->back(), Phase::gen), 10.3);
  EXPECT_FALSE(measured_seconds(console->front(), Phase::reshard));
}

/// A long run has a hundred numbers in each step, of which few are read.
TEST_F(Metrics, OnlyNumbersThatAreWantedAreKept) {
  append(R"({"step": 1, "data": {"timing_s/step": 9, "critic/score/mean": 1}})"
         "\n"
         R"({"step": 2, "data": {"b": 1, "timing_s/step": 8}})"
         "\n"
         R"({"step": 3, "data": {"timing_s/step": 7, "b": 2}})");
  const auto times = [](std::string_view name) { return name.starts_with("timing_s/"); };
  const auto steps = read_metrics(file_, problems_, times);
  ASSERT_TRUE(steps);
  ASSERT_EQ(steps->size(), 3U);
  for (const StepNumbers& step : *steps) {
    EXPECT_EQ(
        step.data,
        (std::map<std::string, double>{{"timing_s/step", 10.0 - static_cast<double>(step.step)}}));
  }
}

/// As verl prints it: lines before the first step, and the last one without its end.
TEST_F(Metrics, AConsoleLogIsFollowedWhileItGrows) {
  const std::filesystem::path log = file_.string() + ".console.log";
  std::filesystem::remove(log);
  MetricsTail tail(log);
  EXPECT_TRUE(tail.read_new(problems_).empty());
  std::ofstream out(log);
  out << "Loading\n" << std::flush;
  EXPECT_TRUE(tail.read_new(problems_).empty());
  out << "step:1 - timing_s/step:9\nvalidating\nstep:2 - timing_s/st" << std::flush;
  EXPECT_EQ(tail.read_new(problems_).size(), 1U);
  EXPECT_FALSE(tail.restarted());
  out << "ep:8\n" << std::flush;
  const auto more = tail.read_new(problems_);
  ASSERT_EQ(more.size(), 1U);
  EXPECT_EQ(more.front().step, 2);
  EXPECT_EQ(more.front().data.at("timing_s/step"), 8);
  EXPECT_TRUE(problems_.empty());
  std::filesystem::remove(log);
}

/// Times that no run takes, named by file, line and key, in JSON lines and on the console.
TEST_F(Metrics, ImpossibleTimesAreRefused) {
  append(R"({"step": 1, "data": {"timing_s/step": 9, "timing_s/gen": 0, "a": -1}})"
         "\n"
         R"({"step": 2, "data": {"timing_s/step": 9, "timing_s/gen": -3}})"
         "\n"
         R"({"step": 3, "data": {"timing_s/step": 9, "timing_s/ref": 91}})"
         "\n"
         R"({"step": 4, "data": {"timing_s/step": 1e300}})"
         "\n"
         R"({"step": 5, "data": {"timing_s/step": 9, "timing_s/save_checkpoint": 91}})"
         "\n");
  EXPECT_FALSE(read_metrics(file_, problems_));
  ASSERT_EQ(problems_.size(), 3U);
  EXPECT_EQ(problems_[0].file, file_.string());
  EXPECT_EQ(problems_[0].place, "2: timing_s/gen");
  EXPECT_EQ(problems_[0].found, "-3 s");
  EXPECT_EQ(problems_[1].place, "3: timing_s/ref");
  EXPECT_NE(problems_[1].expected.find("ten times"), std::string::npos);
  EXPECT_EQ(problems_[2].place, "4: timing_s/step");
  problems_.clear();
  std::ofstream(file_, std::ios::trunc)
      << "Loading\nstep:1 - timing_s/step:9 - timing_s/gen:-3\nstep:2 - timing_s/step:9\n";
  EXPECT_FALSE(read_metrics(file_, problems_));
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(problems_[0].place, "2: timing_s/gen");
}

/// One terminal has verl's line and tqdm's bar, which begins with \r and ends without \n.
TEST_F(Metrics, AConsoleLogMayHaveABarOfProgressOnTheLine) {
  append(
      "\rTraining Progress:   0%|  | 0/2 [00:00<?, ?it/s]step:1 - timing_s/step:9 - a:1\n"
      "\rTraining Progress:  50%|# | 1/2 [00:09<00:09,  9s/it]\rstep:2 - timing_s/step:8 - a:2\n");
  const auto steps = read_metrics(file_, problems_);
  ASSERT_TRUE(steps) << to_string(problems_.front());
  ASSERT_EQ(steps->size(), 2U);
  EXPECT_EQ((*steps)[0].data.at("timing_s/step"), 9);
  EXPECT_EQ((*steps)[1].step, 2);
  EXPECT_EQ((*steps)[1].data.at("a"), 2);
}

// Against the parser of all lines: whatever the scanner takes of spoilt lines has the same numbers
// there, and it takes what runs and verl's loggers write.
TEST_F(Metrics, PlainLinesAreReadAsAllLinesAre) {
  const std::vector<std::string> lines{
      R"({"step": 3, "data": {"a/b": 0.25, "lr": null, "bytes": 4096, "c": -1e-05}})",
      R"({"step":120,"data":{"x":1.7976931348623157E+308,"y":-0,"z":4.9e-324,"w":0.1}})",
      R"({"step": 0, "data": {}})"};
  constexpr std::string_view kBytes = "0123456789+-.eE\"\\{}:, naul\t\n\xc3";
  std::mt19937 random(7);
  const auto below = [&](std::size_t end) { return random() % end; };
  MetricScanner scanner;
  int taken = 0;
  for (int round = 0; round < 60'000; ++round) {
    std::string line = lines[below(lines.size())];
    for (std::size_t i = below(4); i > 0; --i) {
      const std::size_t at = below(line.size());
      const char byte = kBytes[below(kBytes.size())];
      below(2) == 0 ? line[at] = byte : *line.insert(line.begin() + static_cast<long>(at), byte);
    }
    if (!scanner.scan(line)) continue;
    ++taken;
    const auto step = parse_metrics_line(line, "m.jsonl", 1, problems_);
    ASSERT_TRUE(step) << line << "\n" << to_string(problems_[0]);
    const MetricLine found = scanner.line();
    ASSERT_EQ(found.step, step->step) << line;
    std::map<std::string, double> data;
    for (std::size_t i = 0; i < found.names.size(); ++i) {
      if (!std::isnan(found.values[i])) data[found.names[i]] = found.values[i];
    }
    ASSERT_EQ(data, step->data) << line;
  }
  EXPECT_GT(taken, 10'000);
}

TEST_F(Metrics, WhatRunsWriteIsPlain) {
  const std::filesystem::path fixtures = std::filesystem::path(TESSERA_SOURCE_DIR) / "tests";
  for (const char* name : {"fixtures/verl_logs/metrics.jsonl", "gui/data/run/metrics.jsonl"}) {
    std::ifstream file(fixtures / name);
    MetricScanner scanner;
    int lines = 0;
    for (std::string line; std::getline(file, line); ++lines) {
      EXPECT_TRUE(scanner.scan(line)) << name << ": " << line;
    }
    EXPECT_GT(lines, 1) << name;
  }
}

// Who writes a line without an end, or a file of holes, fills no memory.
TEST_F(Metrics, ALineHasALongestLength) {
  const std::string block(std::size_t{1} << 20, 'x');
  MetricsTail tail(file_);
  for (int i = 0; i < 20; ++i) append(block);
  EXPECT_TRUE(tail.read_new(problems_).empty());
  EXPECT_LT(tail.half_line().size(), 17 * block.size());
  append("\n{\"step\": 4, \"data\": {\"a\": 1}}\n");
  const std::vector<StepNumbers> steps = tail.read_new(problems_);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps.front().step, 4);
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_EQ(problems_.front().place, "1");
  EXPECT_EQ(problems_.front().found, "a line of more bytes");
  // A console log has the same limit.
  std::ofstream(file_) << std::string(20 * block.size(), 'x') << "\nstep:7 - timing_s/step:1.5\n";
  problems_.clear();
  const auto console = read_metrics(file_, problems_);
  ASSERT_TRUE(console && console->size() == 1u);
  EXPECT_EQ(console->front().step, 7);
}

TEST_F(Metrics, TextWithoutStepsIsNoConsoleLog) {
  append("Loading\nstep:x - timing_s/step:1\nstep:4\nthe step: 3 - a:1\n");
  EXPECT_FALSE(read_metrics(file_, problems_));
  EXPECT_FALSE(problems_.empty());
}

TEST_F(Metrics, WhatIsNoFileIsToldOnceAndWhatIsNotThereIsNot) {
  MetricsTail tail(file_);
  Problems problems;
  EXPECT_TRUE(tail.read_new(problems).empty());
  EXPECT_TRUE(problems.empty());
  std::filesystem::create_symlink(file_.filename(), file_);  // of itself
  EXPECT_TRUE(tail.read_new(problems).empty());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].file, file_.string());
  EXPECT_EQ(problems[0].found, "not a regular file");
  tail.read_new(problems);
  EXPECT_EQ(problems.size(), 1u);
  std::filesystem::remove(file_);
  std::ofstream(file_) << "{\"step\": 1, \"data\": {\"a\": 1}}\n";
  EXPECT_EQ(tail.read_new(problems).size(), 1u);
}

}  // namespace
}  // namespace tessera
