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
#include "gui/plans/plan_parts.h"

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
  /// What their steps are made of: rows of their own, once that is known of all of them.
  void setParts(const PartsByPlan& parts);
  /// What the columns are called instead of "A", "B".
  void setNames(const QStringList& names);
  const std::vector<SharedPlan>& plans() const { return plans_; }
  int count() const { return static_cast<int>(plans_.size()); }
  /// "B takes 3.10 s longer than A: communication +2.90 s, ...": of the slowest and the fastest,
  /// the largest cause first; empty below two plans.
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
  void addParts();
  QString nameOf(std::size_t plan) const;

  std::vector<SharedPlan> plans_;
  PartsByPlan parts_;
  QStringList names_;  // empty = letters
  std::vector<Row> rows_;
};

}  // namespace tessera::gui
