// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/run_follower.h"

#include <QDateTime>

#include "cost_models/documents/problem.h"
#include "gui/models/text.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"

namespace tessera::gui {

RunFollower::RunFollower(QObject* parent) : QObject(parent) {
  timer_.setInterval(500);
  connect(&timer_, &QTimer::timeout, this, &RunFollower::poll);
}

void RunFollower::follow(const std::filesystem::path& run, bool live) {
  run_ = run;
  tail_ = std::make_unique<MetricsTail>(run_ / "metrics.jsonl");
  steps_.clear();
  ranks_.setStates({}, 0);
  own_plan_.reset();
  switches_ = {};
  if (std::filesystem::exists(run_ / "plan.json")) {
    Problems problems;
    own_plan_ = read_plan(run_ / "plan.json", problems);
    switches_ = read_wire_options(run_, problems);
    if (!problems.empty()) emit problemsFound(problemsText(problems));
  }
  compareAgain();
  emit folderChanged();
  poll();
  live ? timer_.start() : timer_.stop();
}

void RunFollower::setPlan(const std::optional<Plan>& plan) {
  plan_ = plan;
  compareAgain();
}

void RunFollower::poll() {
  if (!tail_) return;
  Problems problems;
  const std::vector<StepNumbers> added = tail_->read_new(problems);
  if (tail_->restarted()) steps_.clear();
  steps_.append(added);
  if (!added.empty()) compareAgain();
  std::vector<RankStateModel::Row> rows;
  for (const RankStatus& status : read_rank_statuses(run_)) {
    rows.push_back({status, is_alive(status.pid)});
  }
  ranks_.setStates(std::move(rows), QDateTime::currentMSecsSinceEpoch() * 1'000'000);
  if (!problems.empty()) emit problemsFound(problemsText(problems));
  emit polled();
}

void RunFollower::requestStop() {
  try {
    request_stop(run_);
  } catch (const Error& error) {
    emit problemsFound(problemsText(error.problems()));
  }
}

bool RunFollower::stopRequested() const { return !run_.empty() && stop_requested(run_); }

void RunFollower::compareAgain() {
  comparison_.setComparison(plan() ? compare(*plan(), steps_.steps(), 2, switches_) : Comparison{});
}

}  // namespace tessera::gui
