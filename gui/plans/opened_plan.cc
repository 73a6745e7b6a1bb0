// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plans/opened_plan.h"

#include <memory>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/derived_calibration.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "planner/interop/repriced.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"

namespace tessera::gui {

OpenedPlan opened(Plan stored) {
  const auto as_stored = [&](const QString& notice) {
    return OpenedPlan{std::make_shared<const Plan>(std::move(stored)), notice};
  };
  if (certified(stored) != Certified::edited) return as_stored({});
  Problems problems;
  const auto calibration =
      calibration_named(stored.provenance.calibration, stored.cluster, problems);
  if (!calibration) {
    return as_stored(
        Words::tr("The plan was edited since its search, and its constants are not "
                  "here: what it predicts is not its own."));
  }
  Repriced priced = repriced(stored, *calibration);
  if (priced.agrees()) return as_stored({});
  const QString notice =
      Words::tr("The plan was edited since its search: its file says %1 a step, and it takes %2.")
          .arg(secondsText(stored.prediction.step_s), secondsText(priced.plan.prediction.step_s));
  return {std::make_shared<const Plan>(std::move(priced.plan)), notice};
}

}  // namespace tessera::gui
