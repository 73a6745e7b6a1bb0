// SPDX-License-Identifier: GPL-3.0-or-later
// What `tessera learn` and `tessera advise` say of a run that the window follows.
//
// Takes seconds: for a thread of its own. Pure but for the files that it reads, and those that are
// saved.
#pragma once

#include <QString>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

#include "cost_models/calibration.h"
#include "gui/document/plan_query.h"
#include "gui/document/shared_plan.h"
#include "planner/advice/run_advice.h"
#include "simulator/learn/learned_runs.h"

namespace tessera::gui {

struct Lesson {
  QString worth_text;                  // whether the constants are worth using, in a line
  QString text;                        // what the command says more
  std::optional<Calibration> learned;  // nullopt where `problem` says why
  LessonWorth worth = LessonWorth::untold;
  SharedPlan ran;    // the run's plan with its measured lengths, by these constants; of advice
  RunAdvice advice;  // likewise
  QString problem;
};

/// Constants refitted from the run's measured phases. `plan`: that ran. Throws Stopped
/// (cost_models/documents/stopped.h).
Lesson learned_from(const std::filesystem::path& run, const Plan& plan,
                    const std::stop_token& stop = {});

/// What to change about the run. Throws Stopped.
Lesson advice_for(const std::filesystem::path& run, const Plan& plan,
                  const std::stop_token& stop = {});

/// What the commands of an advice read.
struct AdviceFiles {
  std::filesystem::path calibration = "calibration.json", plan = "plan.json";
};
/// Writes them into the folder, and into a new one in it where it has one of these names.
/// Throws Error(io). Precondition: of advice.
AdviceFiles save_advice(const Lesson& lesson, const std::filesystem::path& folder);

/// The question whose answer is the changed plan. Precondition: of advice.
PlanQuery question_of(const Lesson& lesson, const AdvisedChange& change);

}  // namespace tessera::gui
