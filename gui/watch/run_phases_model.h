// SPDX-License-Identifier: GPL-3.0-or-later
// Runs beside one another: the mean seconds of their phases, a row for each, the step last.
//
// Means are those of `tessera compare`, without the steps of the warm-up. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <string>
#include <utility>
#include <vector>

#include "gui/metrics/step_columns.h"
#include "simulator/timeline/measured_phase.h"

namespace tessera::gui {

/// The phases that the steps time, in the order of enum Phase, and "step" behind them.
std::vector<std::pair<std::string, PhaseTime>> phase_times(const StepColumns& steps);

class RunPhasesModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  struct Run {
    QString name;
    const StepColumns* steps;  // read by setRuns() alone
  };

  using QAbstractTableModel::QAbstractTableModel;

  /// The others are compared with the first.
  void setRuns(const std::vector<Run>& runs);
  int runs() const { return static_cast<int>(names_.size()); }

  int rowCount(const QModelIndex& parent = {}) const override;
  /// The phase; of the first run its mean and how far that may be off, of each other one its mean,
  /// that, and its difference.
  int columnCount(const QModelIndex& parent = {}) const override;
  /// Also kNumberRole (gui/units/number_role.h).
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  struct Row {
    std::string phase;
    std::vector<PhaseTime> times;  // by run; of no step where it does not time the phase
  };
  /// What a column is of.
  struct Column {
    int run = -1;  // -1: the phase
    enum class What { mean, deviation, difference } what = What::mean;
  };
  static Column columnAt(int section);
  QString named(const Row& row) const;
  QVariant number(const Row& row, const Column& column) const;

  QStringList names_;
  std::vector<Row> rows_;
};

}  // namespace tessera::gui
