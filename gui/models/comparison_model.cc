// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/comparison_model.h"

#include <QColor>
#include <QFont>

#include "gui/models/colours.h"
#include "gui/models/text.h"

namespace tessera::gui {

void ComparisonModel::setComparison(const Comparison& comparison) {
  beginResetModel();
  comparison_ = comparison;
  endResetModel();
}

int ComparisonModel::rowCount(const QModelIndex& parent) const {
  if (parent.isValid()) return 0;
  return static_cast<int>(comparison_.phases.size() + comparison_.bytes.size());
}

int ComparisonModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant ComparisonModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto row = static_cast<std::size_t>(index.row());
  const std::size_t phases = comparison_.phases.size();
  const bool is_phase = row < phases;
  switch (role) {
    case Qt::DisplayRole:
      return is_phase ? text(comparison_.phases[row], index.column())
                      : text(comparison_.bytes[row - phases], index.column());
    case Qt::TextAlignmentRole:
      return QVariant((index.column() == What ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    case Qt::DecorationRole:
      if (index.column() == What && is_phase) {
        if (const auto phase = phase_from(comparison_.phases[row].phase)) return colourOf(*phase);
      }
      return {};
    case Qt::FontRole:
      if (is_phase && comparison_.phases[row].phase == "step") {
        QFont font;
        font.setBold(true);
        return font;
      }
      return {};
    case Qt::ForegroundRole:
      if (!is_phase && index.column() == RelativeError &&
          !comparison_.bytes[row - phases].agrees()) {
        return QColor(Qt::red);
      }
      return {};
    default:
      return {};
  }
}

QVariant ComparisonModel::text(const PhaseComparison& row, int column) const {
  switch (column) {
    case What:
      return QString::fromStdString(row.phase);
    case Predicted:
      return secondsText(row.predicted_s);
    case Measured:
      return row.measured_s > 0 ? secondsText(row.measured_s) : QString("-");
    case Deviation:
      return row.measured_s > 0 ? secondsText(row.measured_deviation_s) : QString();
    case Share:
      return QString("%1 %").arg(100 * row.share, 0, 'f', 1);
    default:
      return row.measured_s > 0 ? QString("%1%2 %")
                                      .arg(row.relative_error() >= 0 ? "+" : "")
                                      .arg(100 * row.relative_error(), 0, 'f', 1)
                                : QString("-");
  }
}

QVariant ComparisonModel::text(const BytesComparison& row, int column) const {
  switch (column) {
    case What:
      return QString::fromStdString(row.what);
    case Predicted:
      return bytesText(row.predicted);
    case Measured:
      return bytesText(row.measured);
    case RelativeError:
      return QString::fromStdString(verdict(row));
    default:
      return {};
  }
}

QVariant ComparisonModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {"Phase", "Predicted", "Measured",
                                           "+-",    "Share",     "Error"};
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? QString(kNames[section]) : QVariant();
}

}  // namespace tessera::gui
