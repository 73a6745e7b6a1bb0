// SPDX-License-Identifier: GPL-3.0-or-later
// The seconds that a run's steps took for a phase, whoever timed it.
//
// Pure; any thread.
#pragma once

#include <vector>

#include "cost_models/spec/workload.h"
#include "gui/metrics/step_columns.h"

namespace tessera::gui {

/// By row; NaN where the step timed none of it. Empty where no step did.
std::vector<double> phase_seconds(const StepColumns& columns, Phase phase);

}  // namespace tessera::gui
