// SPDX-License-Identifier: GPL-3.0-or-later
// Prediction beside measurement, a row per phase, the step and the bytes last. Without a measured
// step the measured side is empty.
#pragma once

#include <QAbstractTableModel>

#include "simulator/timeline/comparison.h"

namespace tessera::gui {

class ComparisonModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns { What, Predicted, Measured, Deviation, Share, RelativeError, ColumnCount };
  enum Roles { BadRole = Qt::UserRole + 1 };  // bool: bytes that are not as foreseen

  using QAbstractTableModel::QAbstractTableModel;

  void setComparison(const Comparison& comparison);
  const Comparison& comparison() const { return comparison_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  QVariant text(const PhaseComparison& row, int column) const;
  QVariant text(const BytesComparison& row, int column) const;

  Comparison comparison_;
};

}  // namespace tessera::gui
