// SPDX-License-Identifier: GPL-3.0-or-later
// The ranked plans as points of two measures, and which of them no other beats.
//
// The figures are those of the rows (gui/models/plan_table_model.h), as the planner states them; a
// row that does not state one has no point of it. Smaller is better in every measure. Pure.
#pragma once

#include <QString>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/plan_table_model.h"

namespace tessera::gui {

enum class Measure { step, gpus, memory, cost };
inline constexpr std::array kEveryMeasure{Measure::step, Measure::gpus, Measure::memory,
                                          Measure::cost};

/// "Time of a step", as a choice.
QString nameOf(Measure measure);
/// What these plans have it in: "s", "GPUs", "GiB", "GPU seconds".
QString unitOf(const PlanTableModel& plans, Measure measure);

/// In seconds, GPUs, GiB of the fullest rank, money or GPU seconds.
std::optional<double> valueOf(const PlanTableModel& plans, int row, Measure measure);
/// What the row is, in lines: its number, placement, figures and layouts.
QString describeRow(const PlanTableModel& plans, int row);
/// The same without its layouts, on one line.
QString summaryOf(const PlanTableModel& plans, int row);

struct PlanPoint {
  int row = 0;  // of the plans
  double x = 0, y = 0;
  bool operator==(const PlanPoint&) const = default;
};

/// The rows that state both measures, in their order.
std::vector<PlanPoint> pointsOf(const PlanTableModel& plans, Measure x, Measure y);
/// Those that no other beats: is as good in both and better in one. By x, then y.
std::vector<PlanPoint> unbeaten(std::vector<PlanPoint> points);

/// Every row with all measures, for tables and programs. Empty where there are none.
std::string pointsCsv(const PlanTableModel& plans);
std::string pointsJson(const PlanTableModel& plans);

}  // namespace tessera::gui
