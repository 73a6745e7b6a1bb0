// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/metrics/step_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

void StepColumns::append(StepColumns later) {
  if (later.steps.empty()) return;
  if (steps.empty()) {
    *this = std::move(later);
    return;
  }
  cutFrom(rowOf(later.steps.front()));
  for (const auto& [name, values] : later.columns) {
    std::vector<double>& column = columns[name];
    column.resize(steps.size(), kNone);
    column.insert(column.end(), values.begin(), values.end());
  }
  steps.insert(steps.end(), later.steps.begin(), later.steps.end());
}

std::map<std::string, double> StepColumns::last() const {
  std::map<std::string, double> numbers;
  for (const auto& [name, values] : columns) {
    const bool there = !values.empty() && values.size() == steps.size();
    if (there && !std::isnan(values.back()))
      numbers.emplace_hint(numbers.end(), name, values.back());
  }
  return numbers;
}

void ColumnWriter::append(const MetricLine& line) {
  if (!columns_.steps.empty() && line.step <= columns_.steps.back()) {
    columns_.cutFrom(columns_.rowOf(line.step));
  }
  if (line.layout != layout_) {
    layout_ = line.layout;
    of_names_.clear();
    for (const std::string& name : line.names) of_names_.push_back(&columns_.columns[name]);
  }
  for (std::size_t i = 0; i < of_names_.size(); ++i) {
    if (std::isnan(line.values[i])) continue;
    of_names_[i]->resize(columns_.steps.size(), kNone);
    of_names_[i]->push_back(line.values[i]);
  }
  columns_.steps.push_back(line.step);
}

StepColumns columns_of(const std::vector<StepNumbers>& lines) {
  StepColumns columns;
  for (const StepNumbers& line : lines) columns.append(line);
  return columns;
}

StepColumns columns_of(MetricsTail& tail, Problems& problems) {
  StepColumns columns;
  ColumnWriter writer(columns);
  const MetricsTail::Take take = [&writer](const MetricLine& line) { writer.append(line); };
  tail.read_new(take, problems);
  return columns;
}

}  // namespace tessera::gui
