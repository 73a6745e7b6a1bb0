// SPDX-License-Identifier: GPL-3.0-or-later
// The command line of tessera-gui.
#pragma once

#include <QStringList>

#include "gui/models/plan_query.h"

namespace tessera::gui {

struct Arguments {
  QString plan, run, export_folder;
  PlanQuery query;
  bool has_query = false;  // some part of the query was given
};

/// Exits for --help, --version and what it does not know, as Qt's programs do.
Arguments parse_arguments(const QStringList& words);

}  // namespace tessera::gui
