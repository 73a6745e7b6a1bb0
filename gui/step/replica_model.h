// SPDX-License-Identifier: GPL-3.0-or-later
// The replicas of a generation at a moment, a row each: what they have active, and when they end.
// GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <optional>

#include "gui/step/rollout_steps.h"

namespace tessera::gui {

class ReplicaModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns { Ranks, Sequences, Active, Ended, Half, End, ColumnCount };
  enum Roles { SortRole = Qt::UserRole };

  using QAbstractTableModel::QAbstractTableModel;

  /// Views of an index, which must outlive the model's use of them.
  void setRollout(RolloutSteps steps);
  /// From the start of the call; nullopt: nobody points to one, and Active and Ended are empty.
  void setMoment(std::optional<double> ns);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  QVariant number(std::size_t replica, int column) const;

  RolloutSteps steps_;
  std::optional<double> moment_;
};

}  // namespace tessera::gui
