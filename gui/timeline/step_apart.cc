// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/step_apart.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/plan/plan.h"

namespace tessera::gui {

std::vector<PhaseApart> apart_by_phase(const Simulation& simulation, const Plan& plan) {
  std::map<Phase, double> by_phase = simulation.phases_s;
  for (const auto& [phase, predicted] : plan.prediction.phases_s) {
    by_phase[phase] -= predicted.value;
  }
  double rest = simulation.step_s - plan.prediction.step_s.value;
  std::vector<PhaseApart> apart;
  for (const auto& [phase, seconds] : by_phase) {
    apart.push_back({phase, seconds});
    rest -= seconds;
  }
  apart.push_back({std::nullopt, rest});
  std::stable_sort(apart.begin(), apart.end(), [](const PhaseApart& a, const PhaseApart& b) {
    return std::abs(a.seconds) > std::abs(b.seconds);
  });
  return apart;
}

}  // namespace tessera::gui
