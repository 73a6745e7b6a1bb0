// SPDX-License-Identifier: GPL-3.0-or-later
// Steps of a run as columns: a name's numbers lie side by side, eight bytes each, however many
// names a step has. Numbers are in the units of metrics.jsonl.
//
// A plain value; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "simulator/timeline/comparison.h"
#include "simulator/timeline/metrics.h"

namespace tessera::gui {

struct StepColumns {
  std::vector<std::int64_t> steps;                     // ascending
  std::map<std::string, std::vector<double>> columns;  // by name; NaN, and none behind the last

  /// The row of that step, or of the first behind it.
  std::size_t rowOf(std::int64_t step) const;
  /// Rows from `row` on are there no more.
  void cutFrom(std::size_t row);
  /// Steps that do not go on behind the last one (a resumed run) replace those from the first of
  /// them on.
  void append(const StepNumbers& step);
  void append(StepColumns later);
  /// The numbers of the last step.
  std::map<std::string, double> last() const;
};

/// Appends lines of one reader to columns, as append() does. Most lines have the names of the line
/// before: their columns are known.
class ColumnWriter {
 public:
  /// Nobody else changes the columns meanwhile.
  explicit ColumnWriter(StepColumns& columns) : columns_(columns) {}

  void append(const MetricLine& line);

 private:
  StepColumns& columns_;
  std::vector<std::vector<double>*> of_names_;
  std::int64_t layout_ = -1;
};

/// Of lines in the file's order.
StepColumns columns_of(const std::vector<StepNumbers>& lines);
/// Of what came since the last reading.
StepColumns columns_of(MetricsTail& tail, Problems& problems);

}  // namespace tessera::gui
