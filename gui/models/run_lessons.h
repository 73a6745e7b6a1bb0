// SPDX-License-Identifier: GPL-3.0-or-later
// What `tessera learn` and `tessera advise` say of a run that the window follows.
//
// Takes seconds: for a thread of its own. Pure but for the files that it reads and writes.
#pragma once

#include <QString>
#include <filesystem>
#include <optional>

#include "cost_models/calibration.h"
#include "gui/document/shared_plan.h"
#include "simulator/learn/learned_runs.h"

namespace tessera::gui {

struct Lesson {
  QString text;                        // the command's own report
  std::optional<Calibration> learned;  // nullopt where `problem` says why
  LessonWorth worth = LessonWorth::untold;
  QString problem;
};

/// Constants refitted from the run's measured phases. `plan`: that ran.
Lesson learned_from(const std::filesystem::path& run, const Plan& plan);

/// What to change about the run. Writes calibration.json and plan.json, which the report's commands
/// read, into `folder`.
Lesson advice_for(const std::filesystem::path& run, const Plan& plan,
                  const std::filesystem::path& folder);

}  // namespace tessera::gui
