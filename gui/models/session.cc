// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/session.h"

#include "gui/models/text.h"
#include "planner/engines/read_plan.h"
#include "planner/explain/infeasible.h"
#include "planner/explain/report.h"
#include "planner/plan/plan_json.h"

namespace tessera::gui {

Session::Session(QObject* parent) : QObject(parent) {
  connect(&search_, &PlannerJob::answerAvailable, this,
          [this](quint64, const PlanAnswer& answer) { takeAnswer(answer); });
  connect(&detail_, &PlannerJob::answerAvailable, this,
          [this](quint64, const PlanAnswer& answer) { takeDetail(detail_row_, answer); });
}

void Session::ask(const PlanQuery& query) {
  detail_.cancel();
  search_.submit([this, query] { return planner_.answer(query); });
  emit busyChanged(true);
}

void Session::takeAnswer(const PlanAnswer& answer) {
  emit busyChanged(isBusy());
  if (const Plan* plan = std::get_if<Plan>(&answer.result)) {
    plans_.setWinner(*plan);
    emit planned(answer.seconds);
    show(0, *plan);
  } else if (const Infeasible* none = std::get_if<Infeasible>(&answer.result)) {
    plans_.clear();
    emit infeasible(QString::fromStdString(describe(*none)));
  } else {
    emit problemsFound(problemsText(std::get<Problems>(answer.result)));
  }
}

void Session::selectRow(int row) {
  if (row < 0 || row >= plans_.rowCount() || row == row_) return;
  const PlanTableModel::Row& chosen = plans_.row(row);
  if (chosen.plan) {
    detail_.cancel();
    emit busyChanged(isBusy());
    show(row, Plan(*chosen.plan));
    return;
  }
  detail_row_ = row;
  detail_.submit(
      [winner = *plans_.row(0).plan, other = chosen.summary] { return answer(winner, other); });
  emit busyChanged(true);
}

void Session::takeDetail(int row, const PlanAnswer& answer) {
  emit busyChanged(isBusy());
  if (const Plan* plan = std::get_if<Plan>(&answer.result)) {
    plans_.setPlan(row, *plan);
    show(row, *plan);
  } else if (const Infeasible* none = std::get_if<Infeasible>(&answer.result)) {
    emit infeasible(QString::fromStdString(describe(*none)));
  } else {
    emit problemsFound(problemsText(std::get<Problems>(answer.result)));
  }
}

void Session::show(int row, const Plan& plan) {
  row_ = row;
  plan_ = plan;
  mesh_.setPlan(plan);
  memory_.setPlan(plan);
  phases_.setPlan(plan);
  run_.setPlan(plan);
  emit planSelected(plan);
  emit rankChosen(-1);
}

void Session::chooseRank(int rank) {
  mesh_.setChosenRank(rank);
  memory_.setRank(rank);
  emit rankChosen(rank);
}

bool Session::openPlan(const QString& file) {
  search_.cancel();
  detail_.cancel();
  emit busyChanged(false);
  Problems problems;
  const auto plan = read_plan(file.toStdString(), problems);
  if (!plan) {
    emit problemsFound(problemsText(problems));
    return false;
  }
  plans_.setWinner(*plan);
  show(0, *plan);
  return true;
}

bool Session::savePlan(const QString& file) {
  if (!plan_) return false;
  try {
    write_plan(*plan_, file.toStdString());
    return true;
  } catch (const Error& error) {
    emit problemsFound(problemsText(error.problems()));
    return false;
  }
}

}  // namespace tessera::gui
