// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/explore/plan_points.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/strict_json.h"
#include "gui/document/headline.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_value.h"

namespace tessera::gui {
namespace {

constexpr double kGiB = 1LL << 30;

}  // namespace

QString nameOf(Measure measure) {
  switch (measure) {
    case Measure::step:
      return Words::tr("Time of a step");
    case Measure::gpus:
      return Words::tr("GPUs");
    case Measure::memory:
      return Words::tr("Memory of the fullest rank");
    case Measure::cost:
      break;
  }
  return Words::tr("Cost of a step");
}

QString unitOf(const PlanTableModel& plans, Measure measure) {
  switch (measure) {
    case Measure::step:
      return "s";
    case Measure::gpus:
      return Words::tr("GPUs");
    case Measure::memory:
      return "GiB";
    case Measure::cost:
      break;
  }
  const auto cost = plans.rows().empty() ? std::nullopt : plans.costOf(plans.row(0));
  return cost && cost->money ? Words::tr("the cluster's money") : Words::tr("GPU seconds");
}

std::optional<double> valueOf(const PlanTableModel& plans, int row, Measure measure) {
  const PlanTableModel::Row& of = plans.row(row);
  switch (measure) {
    case Measure::step:
      return of.summary.step_s.value;
    case Measure::gpus:
      return of.summary.gpus > 0 ? std::optional<double>(of.summary.gpus) : std::nullopt;
    case Measure::memory:
      if (!of.plan) return std::nullopt;
      return static_cast<double>(of.plan->prediction.peak_bytes.value) / kGiB;
    case Measure::cost:
      break;
  }
  const auto cost = plans.costOf(plans.row(row));
  return cost ? std::optional(cost->value) : std::nullopt;
}

QString summaryOf(const PlanTableModel& plans, int row) {
  const PlanTableModel::Row& of = plans.row(row);
  QStringList figures{secondsText(of.summary.step_s)};
  if (of.summary.gpus > 0) {
    figures << (of.summary.gpus == 1 ? Words::tr("1 GPU")
                                     : Words::tr("%1 GPUs").arg(of.summary.gpus));
  }
  if (of.plan)
    figures << Words::tr("%1 on the fullest rank").arg(bytesText(of.plan->prediction.peak_bytes));
  if (const auto cost = plans.costOf(plans.row(row))) {
    figures << costText(*cost);
  }
  return Words::tr("Row %1: %2, %3")
      .arg(row + 1)
      .arg(said(of.summary.placement), figures.join(", "));
}

QString describeRow(const PlanTableModel& plans, int row) {
  return summaryOf(plans, row) + "\n" + QString::fromStdString(plans.row(row).summary.description);
}

std::vector<PlanPoint> pointsOf(const PlanTableModel& plans, Measure x, Measure y) {
  std::vector<PlanPoint> points;
  for (int row = 0; row < plans.rowCount(); ++row) {
    const auto at = valueOf(plans, row, x), up = valueOf(plans, row, y);
    if (at && up) points.push_back({row, *at, *up});
  }
  return points;
}

std::vector<PlanPoint> unbeaten(std::vector<PlanPoint> points) {
  std::sort(points.begin(), points.end(), [](const PlanPoint& a, const PlanPoint& b) {
    return std::pair(a.x, a.y) < std::pair(b.x, b.y);
  });
  std::vector<PlanPoint> kept;
  for (const PlanPoint& point : points) {
    const bool equal = !kept.empty() && kept.back().x == point.x && kept.back().y == point.y;
    if (kept.empty() || point.y < kept.back().y || equal) kept.push_back(point);
  }
  return kept;
}

std::string pointsCsv(const PlanTableModel& plans) {
  if (plans.rowCount() == 0) return {};
  CsvTable table;
  table.header = {"row"};
  for (const Measure measure : kEveryMeasure) {
    const QString name = nameOf(measure), unit = unitOf(plans, measure);
    table.header.push_back((name == unit ? name : name + ", " + unit).toStdString());
  }
  table.header.insert(table.header.end(),
                      {"Pareto front of GPUs and step", "placement", "layouts"});
  for (int row = 0; row < plans.rowCount(); ++row) {
    const PlanTableModel::Row& of = plans.row(row);
    CsvRow cells;
    cells.cells.push_back(std::to_string(row + 1));
    for (const Measure measure : kEveryMeasure) {
      const auto value = valueOf(plans, row, measure);
      cells.cells.push_back(value ? QString::number(*value, 'g', 12).toStdString() : "");
    }
    cells.cells.insert(cells.cells.end(),
                       {of.on_front ? "yes" : "no", of.summary.placement, of.summary.description});
    table.rows.push_back(std::move(cells));
  }
  return to_csv(table);
}

std::string pointsJson(const PlanTableModel& plans) {
  if (plans.rowCount() == 0) return {};
  Node list = list_node();
  for (int row = 0; row < plans.rowCount(); ++row) {
    const PlanTableModel::Row& of = plans.row(row);
    Node each = map_node();
    add(each, "row", node_of(row + 1));
    add(each, "step_s", node_of(of.summary.step_s.value));
    if (of.summary.gpus > 0) add(each, "gpus", node_of(of.summary.gpus));
    if (of.plan) add(each, "peak_bytes", node_of(of.plan->prediction.peak_bytes.value));
    if (const auto cost = plans.costOf(plans.row(row))) {
      add(each, cost->money ? "price" : "gpu_s", node_of(cost->value));
    }
    add(each, "on_front", node_of(of.on_front));
    add(each, "placement", node_of(of.summary.placement));
    add(each, "layouts", node_of(of.summary.description));
    list.items.push_back(std::move(each));
  }
  Node root = map_node();
  add(root, "plans", std::move(list));
  return json_text(root);
}

}  // namespace tessera::gui
