// SPDX-License-Identifier: GPL-3.0-or-later
// The command line of tessera-gui.
#pragma once

#include <QSize>
#include <QStringList>

#include "gui/document/plan_query.h"
#include "gui/models/colours.h"
#include "gui/pages/export_views.h"

namespace tessera::gui {

struct Arguments {
  QString plan, script, project, run, trace, remote, export_folder;
  QStringList other_runs;  // beside `run`
  Theme theme = Theme::light;
  bool has_theme = false;
  QString language;  // empty: the one that is remembered, or the system's
  QSize size;        // of the window; empty = as the screen allows
  PlanQuery query;
  ExportFormats formats;   // of the export
  int compared = 0;        // best plans to pin
  bool has_query = false;  // some part of the query was given
};

/// Exits for --help, --version and what it does not know, as Qt's programs do.
Arguments parse_arguments(const QStringList& words);

}  // namespace tessera::gui
