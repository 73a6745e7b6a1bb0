// SPDX-License-Identifier: GPL-3.0-or-later
// Prediction beside measurement, a row per phase, the step and the bytes last. Without a measured
// step the measured side is empty.
#pragma once

#include <QAbstractTableModel>
#include <QStringList>
#include <string>

#include "simulator/learn/run_comparison.h"

namespace tessera::gui {

class ComparisonModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns {
    What,
    Predicted,
    PredictedDeviation,
    Measured,
    Deviation,
    Share,
    RelativeError,
    ColumnCount
  };
  enum Roles {
    BadRole = Qt::UserRole + 1,  // bool: bytes that are not as foreseen
    PhaseRole,                   // int, of enum Phase; -1: the row is of no phase
  };

  using QAbstractTableModel::QAbstractTableModel;

  void setComparison(const RunComparison& comparison);
  const Comparison& comparison() const { return run_.times; }
  const RunComparison& run() const { return run_; }
  /// "update_actor took 3.2 s longer than predicted: ...", the largest first.
  QStringList gaps() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  /// Of a row among the phases, and behind them among the bytes.
  std::size_t placeOf(int row) const;
  QVariant text(const PhaseComparison& row, int column) const;
  QVariant text(const BytesComparison& row, int column) const;

  RunComparison run_;
};

/// Its rows as numbers, each in the unit that stands beside it, shares and errors in per cent; of
/// bytes what is said of them as well. Empty where there is nothing.
std::string csv_of(const ComparisonModel& model);

}  // namespace tessera::gui
