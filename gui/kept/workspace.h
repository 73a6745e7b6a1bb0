// SPDX-License-Identifier: GPL-3.0-or-later
// What the window remembers from one start to the next, in one JSON file.
//
// Written whole beside the old file and moved into its place: a crash leaves the one or the other.
// A file that cannot be read is told and left alone until something is remembered again.
#pragma once

#include <QString>
#include <QStringList>
#include <filesystem>
#include <optional>

#include "gui/document/plan_query.h"

namespace tessera::gui {

/// Sizes are of pixels; what is empty was not kept.
struct WindowLayout {
  QString geometry;    // QWidget::saveGeometry() in base 64
  QStringList splits;  // "explore 310 1170": of each splitter under its name
  QStringList tabs;    // "run_tabs 2": which tab is in front, likewise
  bool operator==(const WindowLayout&) const = default;
};

struct Workspace {
  PlanQuery question;  // the last one; empty names: there was none
  QString plan;        // the file that it was opened from; empty = none
  QString project;     // the file of the one that was open; empty = none
  QStringList recent_plans, recent_runs, recent_projects;  // newest first
  bool dark = false;
  QString language;                    // "zh_CN"; empty: the system's
  std::optional<QStringList> metrics;  // that are drawn; nullopt: nobody has chosen any
  int smoothing = 0;                   // of them, hundredths
  WindowLayout layout;
  bool operator==(const Workspace&) const = default;
};

/// Puts `path` first; of many the last is forgotten.
void remember(QStringList& recent, const QString& path);

/// An empty one where there is no such file; Problems where it is no workspace.
Workspace read_workspace(const std::filesystem::path& file, Problems& problems);
/// Makes its folder. Throws Error(io).
void write_workspace(const Workspace& workspace, const std::filesystem::path& file);

}  // namespace tessera::gui
