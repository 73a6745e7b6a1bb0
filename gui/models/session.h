// SPDX-License-Identifier: GPL-3.0-or-later
// What the window works on: the question, its ranked plans, the plan that is looked at, the run.
//
// One per window. Pages call its methods and hear its typed signals; none of them holds state that
// another needs. Searches run in the background.
#pragma once

#include <QObject>
#include <optional>

#include "gui/models/memory_model.h"
#include "gui/models/mesh_model.h"
#include "gui/models/phase_model.h"
#include "gui/models/plan_table_model.h"
#include "gui/models/planner_job.h"
#include "gui/models/run_follower.h"

namespace tessera::gui {

class Session : public QObject {
  Q_OBJECT

 public:
  explicit Session(QObject* parent = nullptr);

  /// Plans in the background; the last query wins.
  void ask(const PlanQuery& query);
  /// Shows the plan of a row; a runner-up is planned in full first.
  void selectRow(int row);
  /// Rank that mesh and memory look at; -1 = none.
  void chooseRank(int rank);

  /// False and problemsFound() when the file is no plan.
  bool openPlan(const QString& file);
  bool savePlan(const QString& file);

  const std::optional<Plan>& plan() const { return plan_; }
  int selectedRow() const { return row_; }
  bool isBusy() const { return search_.isBusy() || detail_.isBusy(); }

  PlanTableModel* plans() { return &plans_; }
  MeshModel* mesh() { return &mesh_; }
  MemoryModel* memory() { return &memory_; }
  PhaseModel* phases() { return &phases_; }
  RunFollower* run() { return &run_; }

 signals:
  void busyChanged(bool busy);
  /// The search for a query ended with a plan.
  void planned(double seconds);
  void planSelected(const tessera::Plan& plan);
  void infeasible(const QString& text);
  void problemsFound(const QString& text);
  void rankChosen(int rank);

 private:
  void takeAnswer(const PlanAnswer& answer);
  void takeDetail(int row, const PlanAnswer& answer);
  void show(int row, const Plan& plan);

  PlanTableModel plans_;
  MeshModel mesh_;
  MemoryModel memory_;
  PhaseModel phases_;
  RunFollower run_;
  KeptPlanner planner_;
  std::optional<Plan> plan_;
  int row_ = -1, detail_row_ = -1;
  PlannerJob search_, detail_;  // last: their work ends before anything else goes
};

}  // namespace tessera::gui
