// SPDX-License-Identifier: GPL-3.0-or-later
// The predicted iteration: when each phase runs and on which block of ranks.
//
// Starts are those by which the planner prices a step (planner/pricing/iteration.h). Seconds from
// the step's start.
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "cost_models/spec/workload.h"

namespace tessera {
struct Plan;
}  // namespace tessera

namespace tessera::gui {

class PhaseModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  /// From Start on they have kNumberRole (gui/units/number_role.h).
  enum Columns { Name, RoleName, Ranks, Start, Time, Share, ColumnCount };

  struct Row {
    Phase phase = Phase::gen;
    Role role = Role::actor;
    int block = 0;  // roles with the same ranks share one
    double start_s = 0, seconds = 0;
    double share = 0;  // of the step
  };

  using QAbstractTableModel::QAbstractTableModel;

  void setPlan(const Plan& plan);

  const std::vector<Row>& rows() const { return rows_; }
  double step() const { return step_s_; }
  /// "actor + rollout, ranks 0-7" of each block.
  const QStringList& blocks() const { return blocks_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  std::vector<Row> rows_;
  QStringList blocks_, ranks_;
  double step_s_ = 0;
};

}  // namespace tessera::gui
