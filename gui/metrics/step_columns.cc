// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/metrics/step_columns.h"

#include <algorithm>
#include <limits>

namespace tessera::gui {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::size_t StepColumns::rowOf(std::int64_t step) const {
  return static_cast<std::size_t>(std::lower_bound(steps.begin(), steps.end(), step) -
                                  steps.begin());
}

void StepColumns::cutFrom(std::size_t row) {
  steps.resize(std::min(steps.size(), row));
  for (auto& [name, values] : columns) values.resize(std::min(values.size(), row));
}

void StepColumns::append(const StepNumbers& step) {
  if (!steps.empty() && step.step <= steps.back()) cutFrom(rowOf(step.step));
  for (const auto& [name, value] : step.data) {
    std::vector<double>& column = columns[name];
    column.resize(steps.size(), kNone);
    column.push_back(value);
  }
  steps.push_back(step.step);
}

void StepColumns::append(const StepColumns& later) {
  if (later.steps.empty()) return;
  cutFrom(rowOf(later.steps.front()));
  for (const auto& [name, values] : later.columns) {
    std::vector<double>& column = columns[name];
    column.resize(steps.size(), kNone);
    column.insert(column.end(), values.begin(), values.end());
  }
  steps.insert(steps.end(), later.steps.begin(), later.steps.end());
}

StepColumns columns_of(const std::vector<StepNumbers>& lines) {
  StepColumns columns;
  for (const StepNumbers& line : lines) columns.append(line);
  return columns;
}

}  // namespace tessera::gui
