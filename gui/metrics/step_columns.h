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

#include "simulator/timeline/comparison.h"

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
  void append(const StepColumns& later);
};

/// Of lines in the file's order.
StepColumns columns_of(const std::vector<StepNumbers>& lines);

}  // namespace tessera::gui
