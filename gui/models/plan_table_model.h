// SPDX-License-Identifier: GPL-3.0-or-later
// The ranked plans of one search: the winner, then the best plan of every other placement, then
// what the Pareto front has beside them.
//
// Runner-ups begin with what the certificate says of them (step and layouts); setPlan() fills in
// the rest when they have been planned in full.
#pragma once

#include <QAbstractTableModel>
#include <optional>
#include <vector>

#include "gui/document/shared_plan.h"
#include "planner/plan/certificate.h"
#include "planner/request/plan_value.h"

namespace tessera::gui {

class PlanTableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Columns { Placement, Gpus, Step, Worse, Throughput, Cost, Peak, Layouts, ColumnCount };
  /// Beside them kNumberRole (gui/units/number_role.h).
  enum Roles { SortRole = Qt::UserRole, HasPlanRole };

  struct Row {
    RunnerUp summary;       // of the winner too
    SharedPlan plan;        // nullptr = not planned in full
    bool on_front = false;  // of GPUs against step, where that was looked for
  };

  using QAbstractTableModel::QAbstractTableModel;

  /// A new search: the winner with its certificate. Or a plan that no search certifies, as one that
  /// was edited since: nothing is called best then.
  void setWinner(const SharedPlan& winner, bool certified = true);
  void setPlan(int row, SharedPlan plan);
  /// Marks the rows that are the front's plans, and appends the others. Precondition: a winner.
  void addFront(const std::vector<RunnerUp>& front);
  void clear();

  const std::vector<Row>& rows() const { return rows_; }
  const Row& row(int index) const { return rows_.at(static_cast<std::size_t>(index)); }

  /// Of a step; nullopt where GPU types differ in price and the row does not say which it takes.
  std::optional<StepCost> costOf(const Row& row) const;
  /// Costs are what the search minimises.
  bool isByCost() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

 private:
  QVariant text(const Row& row, int column) const;
  double throughput(const Row& row) const;  // tokens per second and GPU
  double worse(const Row& row) const;       // than the first, as a part of it
  bool isBeaten() const;                    // the first is not, or not known as, the best one here
  QVariant sortKey(const Row& row, int column) const;
  QVariant number(const Row& row, int column) const;

  std::vector<Row> rows_;
  bool certified_ = true;
};

}  // namespace tessera::gui
