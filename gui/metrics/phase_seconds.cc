// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/metrics/phase_seconds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "simulator/timeline/measured_phase.h"

namespace tessera::gui {

std::vector<double> phase_seconds(const StepColumns& columns, Phase phase) {
  std::vector<double> seconds(columns.steps.size(), std::numeric_limits<double>::quiet_NaN());
  const auto column = [&](std::string_view name) -> const std::vector<double>* {
    const auto found = columns.columns.find(std::string(name));
    return found == columns.columns.end() ? nullptr : &found->second;
  };
  for (const std::string_view part : parts_of(phase)) {
    const auto* const values = column(part);
    for (std::size_t row = 0; values != nullptr && row < values->size(); ++row) {
      if (std::isnan((*values)[row])) continue;
      seconds[row] = (std::isnan(seconds[row]) ? 0 : seconds[row]) + (*values)[row];
    }
  }
  if (const auto* const whole = column("timing_s/" + std::string(name_of(phase)))) {
    for (std::size_t row = 0; row < whole->size(); ++row) {
      if (!std::isnan((*whole)[row])) seconds[row] = (*whole)[row];
    }
  }
  if (std::ranges::all_of(seconds, [](double each) { return std::isnan(each); })) return {};
  return seconds;
}

}  // namespace tessera::gui
