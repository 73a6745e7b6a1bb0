// SPDX-License-Identifier: GPL-3.0-or-later
// By which phases a simulated step is longer or shorter than its plan says.
//
// Both sides as simulator and planner have them: a phase from its call's start to its end, and the
// step. Pure; seconds.
#pragma once

#include <optional>
#include <vector>

#include "simulator/engine/simulate.h"

namespace tessera {

struct Plan;

namespace gui {

struct PhaseApart {
  std::optional<Phase> phase;  // nullopt: what calls share of the time, and what lies between them
  double seconds = 0;          // simulated minus predicted
};

/// The largest first, whatever its sign; they sum to how much longer the simulated step is.
std::vector<PhaseApart> apart_by_phase(const Simulation& simulation, const Plan& plan);

}  // namespace gui
}  // namespace tessera
