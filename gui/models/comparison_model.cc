// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/comparison_model.h"

#include <QFont>
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cost_models/documents/csv.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/translations/said.h"

namespace tessera::gui {
namespace {

constexpr std::size_t kCsvColumns = 9;  // of a row of csv_of

std::string numberText(double value) { return QString::number(value, 'g', 12).toStdString(); }
// What nobody knows is an empty cell.
std::string numberText(double value, bool known) { return known ? numberText(value) : ""; }

CsvRow rowOf(const PhaseComparison& row) {
  const bool measured = row.measured_s > 0;
  return {0,
          {row.phase, "s", numberText(row.predicted_s, row.is_predicted()),
           numberText(row.predicted_deviation_s, row.predicted_deviation_s > 0),
           numberText(row.measured_s, measured), numberText(row.measured_deviation_s, measured),
           numberText(100 * row.share, measured),
           numberText(100 * row.relative_error(), row.has_error()), ""}};
}

CsvRow rowOf(const BytesComparison& row, bool measured) {
  CsvRow cells{0, std::vector<std::string>(kCsvColumns)};
  cells.cells[0] = said(row.what).toStdString();
  cells.cells[1] = "B";
  cells.cells[2] = std::to_string(row.predicted);
  if (measured) {
    cells.cells[4] = std::to_string(row.measured);
    cells.cells[8] = said(verdict(row)).toStdString();
  }
  return cells;
}

}  // namespace

std::string csv_of(const ComparisonModel& model) {
  const Comparison& times = model.comparison();
  if (times.phases.empty() && times.bytes.empty()) return {};
  CsvTable table;
  for (const QString& name :
       {Words::tr("Phase"), Words::tr("Unit"), Words::tr("Predicted"), Words::tr("Predicted, +-"),
        Words::tr("Measured"), Words::tr("Measured, +-"), Words::tr("Share, %"),
        Words::tr("Error, %"), Words::tr("Verdict")}) {
    table.header.push_back(name.toStdString());
  }
  for (const PhaseComparison& row : times.phases) table.rows.push_back(rowOf(row));
  for (const BytesComparison& row : times.bytes) table.rows.push_back(rowOf(row, times.steps > 0));
  return to_csv(table);
}

void ComparisonModel::setComparison(const RunComparison& comparison) {
  beginResetModel();
  run_ = comparison;
  endResetModel();
}

QStringList ComparisonModel::gaps() const {
  QStringList lines;
  for (const Gap& gap : run_.gaps) {
    const QString what = gap.what == "outside" ? Words::tr("What is outside all phases")
                                               : QString::fromStdString(gap.what);
    const auto row = std::ranges::find(run_.times.phases, gap.what, &PhaseComparison::phase);
    const bool predicted = row == run_.times.phases.end() || row->is_predicted();
    lines << (!predicted         ? Words::tr("%1 took %2: %3")
              : gap.seconds >= 0 ? Words::tr("%1 took %2 longer than predicted: %3")
                                 : Words::tr("%1 took %2 less than predicted: %3"))
                 .arg(what, secondsText(std::abs(gap.seconds)), said(gap.cause));
  }
  return lines;
}

// The step stands first: what it is made of may not all be in sight.
std::size_t ComparisonModel::placeOf(int row) const {
  const auto& phases = run_.times.phases;
  const auto step = std::ranges::find(phases, "step", &PhaseComparison::phase) - phases.begin();
  const bool moved = row <= step && step < std::ssize(phases);
  return static_cast<std::size_t>(!moved ? row : row == 0 ? step : row - 1);
}

int ComparisonModel::rowCount(const QModelIndex& parent) const {
  if (parent.isValid()) return 0;
  return static_cast<int>(run_.times.phases.size() + run_.times.bytes.size());
}

int ComparisonModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant ComparisonModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const std::size_t phases = run_.times.phases.size();
  const std::size_t row = placeOf(index.row());
  const bool is_phase = row < phases;
  switch (role) {
    case Qt::DisplayRole:
      return is_phase ? text(run_.times.phases[row], index.column())
                      : text(run_.times.bytes[row - phases], index.column());
    case Qt::TextAlignmentRole:
      return QVariant((index.column() == What ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case Qt::ToolTipRole:
      for (const Gap& gap : run_.gaps) {
        if (is_phase && gap.what == run_.times.phases[row].phase) {
          return said(gap.cause);
        }
      }
      return {};
    case PhaseRole: {
      const auto phase = is_phase ? phase_from(run_.times.phases[row].phase) : std::nullopt;
      return phase ? static_cast<int>(*phase) : -1;
    }
    case Qt::DecorationRole:
      if (index.column() == What && is_phase) {
        if (const auto phase = phase_from(run_.times.phases[row].phase)) return colourOf(*phase);
      }
      return {};
    case Qt::FontRole:
      if (is_phase && run_.times.phases[row].phase == "step") {
        QFont font;
        font.setBold(true);
        return font;
      }
      return {};
    case BadRole:
      return !is_phase && index.column() == RelativeError && run_.times.steps > 0 &&
             !run_.times.bytes[row - phases].agrees();
    default:
      return {};
  }
}

QVariant ComparisonModel::text(const PhaseComparison& row, int column) const {
  switch (column) {
    case What: {
      const QString phase = QString::fromStdString(row.phase);
      const QString some = said(in_some_steps(row.timed_steps, run_.times.steps));
      return some.isEmpty() || row.phase == "step" ? phase : phase + ", " + some;
    }
    case Predicted:
      return row.is_predicted() ? secondsText(row.predicted_s) : Words::tr("not predicted");
    case PredictedDeviation:
      return row.predicted_deviation_s > 0 ? secondsText(row.predicted_deviation_s) : QString();
    case Measured:
      return row.measured_s > 0 ? secondsText(row.measured_s) : QString("-");
    case Deviation:
      return row.measured_s > 0 ? secondsText(row.measured_deviation_s) : QString();
    case Share:
      return row.measured_s > 0
                 ? QString("%1 %").arg(100 * row.share, 0, 'f', row.share < 0.001 ? 2 : 1)
                 : QString("-");
    default:
      return row.has_error() ? QString("%1%2 %")
                                   .arg(row.relative_error() >= 0 ? "+" : "")
                                   .arg(100 * row.relative_error(), 0, 'f', 1)
                             : QString("-");
  }
}

QVariant ComparisonModel::text(const BytesComparison& row, int column) const {
  switch (column) {
    case What:
      return said(row.what);
    case Predicted:
      return bytesText(row.predicted);
    case Measured:
      return run_.times.steps > 0 ? bytesText(row.measured) : QString("-");
    case RelativeError:
      return run_.times.steps > 0 ? said(verdict(row)) : QString("-");
    default:
      return {};
  }
}

QVariant ComparisonModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {QT_TRANSLATE_NOOP("Words", "Phase"),
                                           QT_TRANSLATE_NOOP("Words", "Predicted"),
                                           "+-",
                                           QT_TRANSLATE_NOOP("Words", "Measured"),
                                           "+-",
                                           QT_TRANSLATE_NOOP("Words", "Share"),
                                           QT_TRANSLATE_NOOP("Words", "Error")};
  if (role == Qt::ToolTipRole && orientation == Qt::Horizontal) {
    if (section == PredictedDeviation) {
      return Words::tr(
          "One standard deviation of the prediction, by what its constants leave open");
    }
    if (section == Deviation) {
      return Words::tr("One standard deviation of the mean over the measured steps");
    }
    if (section == RelativeError) {
      return Words::tr("The prediction against what was measured: below 0 it is too short");
    }
  }
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
