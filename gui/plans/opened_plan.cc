// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plans/opened_plan.h"

#include <QStringList>
#include <memory>
#include <utility>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "planner/interop/repriced.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_constants.h"

namespace tessera::gui {

OpenedPlan opened(Plan stored) {
  QStringList notice;
  Problems problems;
  const auto constants = constants_of(stored, problems);
  if (constants && !constants->other.empty()) {
    notice << Words::tr(
                  "The constants that the plan was made with (%1) are not here: what is shown of "
                  "its step may differ from what it predicts.")
                  .arg(QString::fromStdString(stored.provenance.calibration));
  }
  if (certified(stored) != Certified::edited) {
    return {std::make_shared<const Plan>(std::move(stored)), notice.join(' ')};
  }
  stored.certificate.fixed.clear();  // what is shown need not have it
  stored.certificate.better = {};
  if (!constants) {
    notice << Words::tr(
        "The plan was edited since its search, and its constants are not "
        "here: what it predicts is not its own.");
  } else if (Repriced priced = repriced(stored, constants->calibration); !priced.agrees()) {
    notice << Words::tr(
                  "The plan was edited since its search: its file says %1 a step, and it takes %2.")
                  .arg(secondsText(stored.prediction.step_s),
                       secondsText(priced.plan.prediction.step_s));
    stored = std::move(priced.plan);
  }
  if (!stored.certificate.runner_up.empty()) {
    if (notice.isEmpty()) notice << Words::tr("The plan was edited since its search.");
    notice << Words::tr(
        "The other plans of its file are those of the plan before, and are left out.");
    stored.certificate.runner_up.clear();
  }
  return {std::make_shared<const Plan>(std::move(stored)), notice.join(' ')};
}

}  // namespace tessera::gui
