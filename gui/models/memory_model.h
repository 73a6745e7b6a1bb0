// SPDX-License-Identifier: GPL-3.0-or-later
// Bytes in use in every phase, stacked by class or by role, against what plans may use.
//
// One row per scheduled phase, one column per class (or role) that is not zero everywhere, the
// total last. Shown is one rank, or the rank with most bytes: the planner's own account of it
// (planner/explain/memory_account.h). GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <QColor>
#include <optional>
#include <vector>

#include "cost_models/calibration.h"
#include "gui/document/shared_plan.h"
#include "planner/explain/memory_account.h"

namespace tessera::gui {

class MemoryModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum class Stacking { classes, roles };
  enum Roles { BytesRole = Qt::UserRole, BadRole };

  struct Series {
    QString name;
    QColor colour;
    std::vector<std::int64_t> bytes;  // by row
  };

  using QAbstractTableModel::QAbstractTableModel;

  /// Without the plan's constants there is no account, and problem() says so.
  void setPlan(SharedPlan plan, const std::optional<Calibration>& calibration);
  /// -1 = the rank that needs most.
  void setRank(int rank);
  void setStacking(Stacking stacking);

  int rank() const { return account_ ? account_->rank : -1; }
  bool isFullest() const { return account_ && account_->rank == fullest_; }
  Stacking stacking() const { return stacking_; }
  /// What plans may use of the rank's device, and all of it.
  std::int64_t limit() const { return account_ ? account_->limit.value : 0; }
  std::int64_t device() const { return account_ ? account_->device.value : 0; }
  const QString& problem() const { return problem_; }
  QStringList phases() const;
  const std::vector<Series>& series() const { return series_; }
  std::int64_t total(int row) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  void lookAt(std::optional<int> rank);
  void build();
  std::size_t rows() const { return account_ ? account_->phases.size() : 0; }
  Series& seriesOf(const QString& name, const QColor& colour);

  SharedPlan plan_;
  std::optional<Calibration> calibration_;
  std::optional<MemoryAccount> account_;
  QString problem_;
  int fullest_ = -1;
  Stacking stacking_ = Stacking::classes;
  std::vector<Series> series_;
};

}  // namespace tessera::gui
