// SPDX-License-Identifier: GPL-3.0-or-later
// Traces of others and our own, whole and broken.
#include "gui/trace/trace_file.h"

#include <gtest/gtest.h>

#include <QCoreApplication>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "gui/timeline/span_text.h"
#include "gui/trace/opened_trace.h"
#include "tests/gui/sample_plans.h"

namespace tessera::gui {
namespace {

std::optional<TimelineIndex> read(const std::string& text, Problems* told = nullptr,
                                  const TraceLimits& limits = {}) {
  Problems problems;
  auto index = trace_in(text, "t.json", problems, limits);
  EXPECT_EQ(index.has_value(), problems.empty());
  if (told != nullptr) *told = problems;
  return index;
}

std::string first_problem(const std::string& text, const TraceLimits& limits = {}) {
  Problems problems;
  read(text, &problems, limits);
  return problems.empty() ? "" : to_string(problems.front());
}

/// "name start-end" in nanoseconds, lane by lane.
std::vector<std::string> lanes_in(const TimelineIndex& index) {
  std::vector<std::string> lines;
  for (const Lane& lane : index.lanes) {
    std::string line = groupText(index, {{lane.rank}}).toStdString() + "/" +
                       index.trace->tracks[static_cast<std::size_t>(lane.track)] + "/" +
                       std::to_string(lane.depth) + ":";
    for (std::size_t i = lane.first; i < lane.last; ++i) {
      const Span& span = index.span(i);
      line +=
          " " + span.name + " " + std::to_string(span.start_ns) + "-" + std::to_string(span.end_ns);
    }
    lines.push_back(line);
  }
  return lines;
}

// The example of the Trace Event Format's description, and what it says of nesting, orders and
// names.
TEST(TraceFile, HasTheSpansOfCompleteAndOfBegunAndEndedEvents) {
  const auto index = read(R"({"displayTimeUnit": "ns", "stackFrames": {"a": [{"name": "x"}]},
    "traceEvents": [
    {"name": "Asub", "cat": "PERF", "ph": "B", "pid": 22630, "tid": 22630, "ts": 829},
    {"name": "inner", "ph": "X", "pid": 22630, "tid": 22630, "ts": 830.5, "dur": 1,
     "args": {"name": "no name of a thread", "deep": [{"ts": 1}]}},
    {"name": "Asub", "cat": "PERF", "ph": "E", "pid": 22630, "tid": 22630, "ts": 833},
    {"name": "other", "ph": "X", "pid": "gpu", "tid": "stream 7", "ts": 829.25, "dur": 0.125},
    {"name": "count", "ph": "C", "pid": 1, "ts": 1, "args": {"cats": 3}},
    {"name": "lonely", "ph": "E", "pid": 22630, "tid": 22630, "ts": 840},
    {"name": "thread_name", "ph": "M", "pid": 22630, "tid": 22630, "args": {"name": "main"}},
    {"name": "process_sort_index", "ph": "M", "pid": "gpu", "args": {"sort_index": -1}},
    {"name": "process_name", "ph": "M", "pid": "gpu", "args": {"name": "GPU 0"}}
    ]})");
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(lanes_in(*index), (std::vector<std::string>{"GPU 0/stream 7/0: other 250-375",
                                                        "pid 22630/main/0: Asub 0-4000",
                                                        "pid 22630/main/1: inner 1500-2500"}));
  EXPECT_EQ(index->end_ns, 4000);
  EXPECT_EQ(index->trace->left_out, 2);
  EXPECT_FALSE(index->trace->phases);
  ASSERT_EQ(index->groups.size(), 2u);
  const auto totals = totals_of(*index, index->lanes, 0, index->end_ns);
  ASSERT_EQ(totals.size(), 3u);
  EXPECT_EQ(totals.front().name, "Asub");
  EXPECT_EQ(totals.front().busy_ns, 4000);
  EXPECT_EQ(matches_before(*index, "INNER").back(), 1u);
  EXPECT_TRUE(describe(*index, 2, nullptr).contains("pid 22630, main"));
}

// A list, without its end: the program that wrote it died.
TEST(TraceFile, TakesAListThatLacksItsEnd) {
  const std::string event = R"({"name": "a", "ph": "X", "pid": 1, "tid": 1, "ts": 5, "dur": 2})";
  for (const std::string& text : {"[" + event + "]", "[" + event, "[" + event + ",\n"}) {
    const auto index = read(text);
    ASSERT_TRUE(index.has_value()) << text;
    EXPECT_EQ(lanes_in(*index), std::vector<std::string>{"pid 1/tid 1/0: a 0-2000"});
  }
  EXPECT_NE(first_problem("{\"traceEvents\": [" + event), "") << "an object has to be whole";
  EXPECT_NE(first_problem("[" + event + ", {\"name\": "), "") << "and so has an event";
}

TEST(TraceFile, WhatIsStillOpenEndsWithTheTrace) {
  const auto index = read(R"([{"name": "a", "ph": "B", "pid": 1, "tid": 1, "ts": 5},
                              {"name": "b", "ph": "X", "pid": 1, "tid": 2, "ts": 6, "dur": 3}])");
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(lanes_in(*index).front(), "pid 1/tid 1/0: a 0-4000");
}

TEST(TraceFile, NamesWhatIsBrokenByItsPlace) {
  EXPECT_NE(first_problem("").find("t.json"), std::string::npos);
  EXPECT_NE(first_problem("{}").find("no traceEvents"), std::string::npos);
  EXPECT_NE(first_problem("{\"traceEvents\": []}").find("no span"), std::string::npos);
  EXPECT_NE(
      first_problem("{\"traceEvents\": [{\"ph\": \"X\",\n \"ts\": 1 x}]}").find("t.json:2:10"),
      std::string::npos)
      << first_problem("{\"traceEvents\": [{\"ph\": \"X\",\n \"ts\": 1 x}]}");
  const std::string good = R"({"ph": "X", "pid": 1, "tid": 1, "ts": 5, "dur": 2})";
  const auto second = [&](const std::string& event) {
    return first_problem("{\"traceEvents\": [" + good + ", " + event + "]}");
  };
  for (const auto& [event, says] : std::vector<std::pair<std::string, std::string>>{
           {"17", "no event"},
           {"[]", "no event"},
           {"{\"ts\": 1}", "no ph"},
           {"{\"ph\": \"X\"}", "no ts"},
           {"{\"ph\": \"X\", \"ts\": \"7\"}", "no ts"},
           {"{\"ph\": \"X\", \"ts\": 1e300}", "no ts"},
           {"{\"ph\": \"X\", \"ts\": 1, \"dur\": -1}", "a negative dur"},
           {"{\"ph\": \"B\", \"ts\": 9}, {\"ph\": \"E\", \"ts\": 8}", "an end before"}}) {
    const std::string told = second(event);
    EXPECT_NE(told.find(says), std::string::npos) << event << ": " << told;
    EXPECT_NE(told.find("/traceEvents/"), std::string::npos) << told;
  }
  EXPECT_NE(second("{\"ph\": \"X\"}").find("/traceEvents/1"), std::string::npos);
}

TEST(TraceFile, IsBoundedInDepthSpansAndThreads) {
  std::string deep = "[";
  for (int i = 0; i < 100'000; ++i) deep += "[";
  EXPECT_NE(first_problem(deep), "");
  std::string many = "[";
  for (int i = 0; i < 8; ++i) {
    many += R"({"ph": "X", "pid": 1, "ts": 1, "dur": 1, "tid": )" + std::to_string(i) + "},";
  }
  EXPECT_NE(first_problem(many, {.spans = 7}).find("more spans"), std::string::npos);
  EXPECT_NE(first_problem(many, {.tracks = 7}).find("more threads"), std::string::npos);
  EXPECT_EQ(first_problem(many, {.spans = 8, .tracks = 8}), "");
}

// However the spans of a thread lie, those of a line never overlap and none is lost.
TEST(TraceFile, LinesNeverOverlap) {
  std::mt19937 random(7);
  std::string text = "[";
  for (int i = 0; i < 2000; ++i) {
    const auto below = [&](unsigned n) { return std::to_string(random() % n); };
    text += std::string(i == 0 ? "" : ",") + R"({"ph": "X", "name": "s", "pid": )" + below(3) +
            ", \"tid\": " + below(3) + ", \"ts\": " + below(5000) + ", \"dur\": " + below(90) + "}";
  }
  const auto index = read(text + "]");
  ASSERT_TRUE(index.has_value());
  std::size_t spans = 0;
  for (const Lane& lane : index->lanes) {
    spans += lane.last - lane.first;
    for (std::size_t i = lane.first; i + 1 < lane.last; ++i) {
      ASSERT_LE(index->span(i).end_ns, index->span(i + 1).start_ns);
    }
  }
  EXPECT_EQ(spans, 2000u);
}

// The oracle is the timeline that the trace was written of.
TEST(TraceFile, OfASimulatedStepHasEverySpanOfIt) {
  Problems problems;
  const Plan& plan = digits_plan();
  const auto constants = calibration_named(plan.provenance.calibration, plan.cluster, problems);
  const TimelineIndex simulated_step = simulated(plan, *constants);
  const auto index = read(to_chrome_trace({&simulated_step.simulation.timeline}));
  ASSERT_TRUE(index.has_value());
  EXPECT_TRUE(index->trace->phases);
  ASSERT_EQ(index->name_of.size(), simulated_step.name_of.size());
  ASSERT_EQ(index->lanes.size(), simulated_step.lanes.size());
  const std::int64_t begin = [&] {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const Span& span : simulated_step.simulation.timeline.spans) {
      least = std::min(least, span.start_ns);
    }
    return least;
  }();
  for (std::size_t i = 0; i < index->name_of.size(); ++i) {
    const Span &read = index->span(i), &written = simulated_step.span(i);
    EXPECT_EQ(read.name, written.name);
    EXPECT_EQ(read.phase, written.phase);
    EXPECT_EQ(read.stream, written.stream);
    EXPECT_EQ(read.rank, written.rank);
    EXPECT_LE(std::abs(read.start_ns - (written.start_ns - begin)), 1);
    EXPECT_LE(std::abs(read.end_ns - (written.end_ns - begin)), 1);
  }
}

TEST(TraceFile, ItsCsvHasEverySpan) {
  const auto index = read(R"([{"name": "a, b", "cat": "c", "ph": "X", "pid": 1, "tid": 1, "ts": 5,
                               "dur": 2}])");
  ASSERT_TRUE(index.has_value());
  Problems problems;
  std::string csv;
  give_trace_csv(*index, [&](std::string_view part, double) { csv += part; });
  const auto table = parse_csv(csv, "t.csv", problems);
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->rows.front().cells,
            (std::vector<std::string>{"pid 1", "tid 1", "0", "a, b", "c", "0", "2000"}));
}

// What a broken trace does to the reader is a Problem, whatever was done to it.
TEST(TraceFile, AHundredBrokenOnesAreTold) {
  const std::string whole = R"({"traceEvents": [
    {"name": "a", "cat": "x", "ph": "B", "pid": 1, "tid": 1, "ts": 829},
    {"name": "a", "ph": "E", "pid": 1, "tid": 1, "ts": 833},
    {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "p"}}]})";
  std::mt19937 random(11);
  int broken = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = whole;
    for (int edits = 0; edits < 3; ++edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text.erase(at, 1 + random() % 9);
          break;
        case 1:
          text[at] = static_cast<char>(random() % 256);
          break;
        default:
          text.insert(at, "]}[{\",:-1e999");
      }
    }
    Problems problems;
    if (!read(text, &problems)) {
      ++broken;
      EXPECT_EQ(problems.front().file, "t.json");
      EXPECT_FALSE(problems.front().found.empty());
    }
  }
  EXPECT_GE(broken, 100);
}

TEST(OpenedTrace, StaysWhereTheNextCannotBeRead) {
  int no_words = 0;
  const QCoreApplication events(no_words, nullptr);
  const QTemporaryDir folder;
  const QString good = folder.filePath("good.json"), bad = folder.filePath("bad.json");
  std::ofstream(good.toStdString()) << R"([{"ph": "X", "ts": 5, "dur": 2}])";
  std::ofstream(bad.toStdString()) << "[1]";
  OpenedTrace trace;
  QString told;
  QObject::connect(&trace, &OpenedTrace::refused, [&](const QString& why) { told = why; });
  trace.open(good);
  ASSERT_TRUE(QTest::qWaitFor([&] { return trace.facts() != nullptr; }, 30000));
  EXPECT_TRUE(trace.describe().contains("good.json")) << trace.describe().toStdString();
  for (const QString& file : {bad, folder.filePath("none.json"), folder.path()}) {
    told.clear();
    trace.open(file);
    ASSERT_TRUE(QTest::qWaitFor([&] { return !told.isEmpty(); }, 30000));
    EXPECT_TRUE(told.contains(file)) << told.toStdString();
    EXPECT_NE(trace.facts(), nullptr);
  }
  trace.close();
  EXPECT_EQ(trace.facts(), nullptr);
}

TEST(OpenedTrace, IsCancelledWhileItIsRead) {
  int no_words = 0;
  const QCoreApplication events(no_words, nullptr);
  const QTemporaryDir folder;
  const QString good = folder.filePath("good.json");
  std::ofstream(good.toStdString()) << R"([{"ph": "X", "ts": 5, "dur": 2}])";
  OpenedTrace trace;
  EXPECT_EQ(trace.progress(), "");
  trace.open(good);  // nothing of it is heard before an event of this thread
  EXPECT_TRUE(trace.progress().contains("good.json")) << trace.progress().toStdString();
  trace.cancel();
  EXPECT_FALSE(trace.isBusy());
  QTest::qWait(50);
  EXPECT_EQ(trace.facts(), nullptr);
  EXPECT_EQ(trace.progress(), "");
  trace.open(good);
  ASSERT_TRUE(QTest::qWaitFor([&] { return trace.facts() != nullptr; }, 30000));
}

}  // namespace
}  // namespace tessera::gui
