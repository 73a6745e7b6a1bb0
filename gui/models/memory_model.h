// SPDX-License-Identifier: GPL-3.0-or-later
// Bytes in use in every phase, stacked by class or by role, against the device's memory.
//
// One row per scheduled phase, one column per class (or role) that is not zero everywhere, the
// total last. Shown is one rank, or the rank with most bytes. Each role counts with its fullest
// rank, as the planner's memory check does.
#pragma once

#include <QAbstractTableModel>
#include <QColor>
#include <vector>

#include "planner/plan/plan.h"

namespace tessera::gui {

class MemoryModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum class Stacking { classes, roles };
  enum Roles { BytesRole = Qt::UserRole };

  struct Series {
    QString name;
    QColor colour;
    std::vector<std::int64_t> bytes;  // by row
  };

  using QAbstractTableModel::QAbstractTableModel;

  void setPlan(const Plan& plan);
  /// -1 = the rank that needs most.
  void setRank(int rank);
  void setStacking(Stacking stacking);

  int rank() const { return rank_; }
  int fullestRank() const { return fullest_; }
  Stacking stacking() const { return stacking_; }
  std::int64_t limit() const { return plan_.cluster.device.memory.value; }
  QStringList phases() const;
  const std::vector<Series>& series() const { return series_; }
  std::int64_t total(int row) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  void build();

  Plan plan_;
  std::vector<Phase> phases_;
  int rank_ = -1, fullest_ = -1;
  Stacking stacking_ = Stacking::classes;
  std::vector<Series> series_;
};

}  // namespace tessera::gui
