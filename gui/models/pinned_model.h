// SPDX-License-Identifier: GPL-3.0-or-later
// Plans side by side: a column a plan, a row for each thing in which they differ.
//
// What a row says is what the planner says of each plan (describe_layout, its prediction). With one
// plan every row is there, with equal plans none. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <QStringList>
#include <vector>

#include "gui/document/shared_plan.h"

namespace tessera::gui {

class PinnedModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  static constexpr int kMostPlans = 4;

  using QAbstractTableModel::QAbstractTableModel;

  /// Beyond kMostPlans the oldest goes; a plan that is there already changes nothing.
  void pin(const SharedPlan& plan);
  void unpin(int column);
  /// These instead of all that were pinned, the first kMostPlans of them.
  void setPlans(std::vector<SharedPlan> plans);
  const std::vector<SharedPlan>& plans() const { return plans_; }
  int count() const { return static_cast<int>(plans_.size()); }
  /// "B takes 3.1 s longer than A, 2.9 s of it in update_actor": of the slowest and the fastest;
  /// empty below two plans.
  QString sentence() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  struct Row {
    QString name;
    QStringList values;  // by plan
  };

  void build();

  std::vector<SharedPlan> plans_;
  std::vector<Row> rows_;
};

}  // namespace tessera::gui
