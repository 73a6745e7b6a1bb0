// SPDX-License-Identifier: GPL-3.0-or-later
// What the steps of some plans are made of (planner/pricing/step_parts.h), and how far what they
// are apart may be off (uncertainty.h), worked out in the background once somebody compares them.
//
// Each under the constants that its plan was made with; a plan whose constants are not here, or
// whose layouts cannot be priced, has none. Seconds. GUI thread.
#pragma once

#include <QObject>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "cost_models/calibration.h"
#include "gui/document/shared_plan.h"
#include "gui/threads/newest.h"
#include "planner/pricing/step_parts.h"
#include "planner/pricing/uncertainty.h"

namespace tessera::gui {

struct PricedStep {
  StepParts parts;
  std::vector<Sensitivity> sensitivities;  // of the step
  std::shared_ptr<const Calibration>
      constants;  // that price it; nullptr: sensitivities say nothing
};
using PartsByPlan = std::map<SharedPlan, PricedStep>;

/// One standard deviation of the difference of two steps: what both owe to the same constants
/// cancels. nullopt where it is not known of both.
std::optional<Seconds> deviation_apart(const PricedStep& one, const PricedStep& other);

/// Of those plans of which it can be known; any thread. Never throws.
PartsByPlan parts_of(const std::vector<SharedPlan>& plans, const std::stop_token& stop = {});

class PlanParts : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  /// These plans and no others; nothing is worked out again.
  void want(const std::vector<SharedPlan>& plans);
  /// nullptr where it is not known, or not yet.
  const PricedStep* of(const SharedPlan& plan) const;
  const PartsByPlan& known() const { return known_; }
  bool isBusy() const { return work_.isBusy(); }

 signals:
  /// More is known.
  void changed();

 private:
  std::vector<SharedPlan> wanted_;
  PartsByPlan known_;
  Newest<PartsByPlan> work_;  // last: its work ends before anything else goes
};

}  // namespace tessera::gui
