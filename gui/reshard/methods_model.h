// SPDX-License-Identifier: GPL-3.0-or-later
// Ways to reshard, a row each: bytes of the busiest rank, memory, and what the rollout waits; those
// that cannot be used here say why, and the plan's own is marked. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <optional>
#include <vector>

#include "simulator/reshard/methods.h"

namespace tessera::gui {

class MethodsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns {
    Method,
    Received,
    Sent,
    Redundant,
    Peak,
    Wire,
    Software,
    Total,
    Meanwhile,
    ColumnCount
  };
  /// bool: BadRole, it does not fit; UsedRole, it is the plan's.
  enum Roles { SortRole = Qt::UserRole, BadRole, UsedRole };

  using QAbstractTableModel::QAbstractTableModel;

  /// `used`: the plan's own, which is marked.
  void setMethods(std::vector<MethodCost> methods, std::optional<ReshardMethod> used);
  const std::vector<MethodCost>& methods() const { return methods_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  std::vector<MethodCost> methods_;
  std::optional<ReshardMethod> used_;
};

}  // namespace tessera::gui
