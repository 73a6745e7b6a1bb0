// SPDX-License-Identifier: GPL-3.0-or-later
// The command line opens what it is given, and refuses what it cannot read.
#include "gui/pages/arguments.h"

#include <gtest/gtest.h>

#include <QDir>
#include <QTemporaryDir>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace tessera::gui {
namespace {

const QString kRun = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/run";

TEST(Arguments, FilesWithoutAnOptionAreOpenedByWhatIsInThem) {
  const QString cluster = QString(TESSERA_SOURCE_DIR) + "/configs/clusters/h100-8.yaml";
  const QString other = QString(TESSERA_SOURCE_DIR) + "/tests/gui/data/sampled";
  const Arguments named =
      parse_arguments({"tessera-gui", kRun + "/plan.json", kRun, other, cluster});
  EXPECT_EQ(named.plan, kRun + "/plan.json");
  EXPECT_EQ(named.run, kRun);
  EXPECT_EQ(named.other_runs, QStringList{other});
  EXPECT_EQ(named.query.cluster, cluster.toStdString());
  EXPECT_TRUE(named.has_query);
}

TEST(Arguments, ALogWithStepsIsARun) {
  const QString logs = QString(TESSERA_SOURCE_DIR) + "/tests/fixtures/verl_logs/";
  EXPECT_EQ(parse_arguments({"tessera-gui", logs + "console.log"}).run, logs + "console.log");
  EXPECT_EQ(parse_arguments({"tessera-gui", logs + "metrics.jsonl"}).run, logs + "metrics.jsonl");
  const QTemporaryDir folder;
  const QString other = folder.filePath("other.log");
  std::ofstream(other.toStdString()) << "Loading\nstep:x - a:1\n";
  const auto bad = ::testing::ExitedWithCode(static_cast<int>(ExitCode::bad_input));
  EXPECT_EXIT(parse_arguments({"tessera-gui", other}), bad, "a log with steps of a run");
}

TEST(Arguments, ATraceIsToldByItsEvents) {
  const QTemporaryDir folder;
  const QString trace = folder.filePath("trace.json");
  std::ofstream(trace.toStdString()) << R"({"traceEvents": []})";
  const Arguments named = parse_arguments({"tessera-gui", trace});
  EXPECT_EQ(named.trace, trace);
  EXPECT_TRUE(named.plan.isEmpty());
}

TEST(Arguments, WhatCannotBeReadIsRefused) {
  const auto usage = ::testing::ExitedWithCode(static_cast<int>(ExitCode::usage));
  EXPECT_EXIT(parse_arguments({"tessera-gui", "--size", "large"}), usage, "as 1280x720");
  EXPECT_EXIT(parse_arguments({"tessera-gui", "--theme", "blue"}), usage, "light or dark");
  EXPECT_EXIT(parse_arguments({"tessera-gui", "--nodes", "two"}), usage, "at least 1");
  const auto bad = ::testing::ExitedWithCode(static_cast<int>(ExitCode::bad_input));
  EXPECT_EXIT(parse_arguments({"tessera-gui", "/nonexistent/plan.json"}), bad, "plan.json");
}

/// The program itself: other views would pass for those of the run that was named.
TEST(Arguments, ExportsNothingForAFolderThatIsNoRun) {
  QTemporaryDir folder;
  const std::string at = folder.path().toStdString();
  const std::string command = std::string(TESSERA_BINARY_DIR) + "/gui/tessera-gui --run '" + at +
                              "' --formats csv --export '" + at + "/views' >/dev/null 2>'" + at +
                              "/told'";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 65);
  std::ifstream file(at + "/told");
  const std::string told{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(told.find(at + " is no run: it has neither metrics.jsonl"), told.npos) << told;
  EXPECT_FALSE(QDir(folder.path() + "/views").exists());
}

}  // namespace
}  // namespace tessera::gui
