// SPDX-License-Identifier: GPL-3.0-or-later
// The command line opens what it is given, and refuses what it cannot read.
#include "gui/pages/arguments.h"

#include <gtest/gtest.h>

#include <QTemporaryDir>
#include <fstream>

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

}  // namespace
}  // namespace tessera::gui
