// SPDX-License-Identifier: GPL-3.0-or-later
// What else is worked out beside a plan once somebody wants to see it: the Pareto front of its
// question, and the whole plans of its rivals.
//
// Runs in the background, one search at a time; what was wanted of an earlier plan is not heard.
// GUI thread.
#pragma once

#include <QObject>
#include <QString>
#include <deque>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "gui/document/plan_answer.h"
#include "gui/threads/newest.h"

namespace tessera::gui {

/// The plans that no other beats in both GPUs and step, as `tessera plan --pareto` finds them.
struct PlanFront {
  std::vector<RunnerUp> plans;  // ascending by GPUs
  QString problem;              // why there are none; empty = that is the front
};
/// Of the request that the plan answers, with these settings fixed. Never throws.
PlanFront front_of(const Plan& winner, const std::vector<std::string>& fixed,
                   const std::stop_token& stop = {});

class FrontSearch : public QObject {
  Q_OBJECT

 public:
  /// A row of the ranked plans, and what it stands for.
  using Rivals = std::vector<std::pair<int, RunnerUp>>;

  using QObject::QObject;

  /// Another winner, with the settings that its question fixed: forgets what was of the last.
  void setWinner(SharedPlan winner, std::vector<std::string> fixed);
  void clear();

  /// Another question is being planned: what is on its way ends, and may be wanted again.
  void rest();
  /// Nobody waits for what is on its way any more, until goOn().
  void cancel();
  bool isCancelled() const { return cancelled_; }
  void goOn();

  /// Looks for the front, unless it is there or on its way.
  void want();
  /// Plans these rows in full, each once.
  void planInFull(const Rivals& rivals);

  bool isBusy() const { return front_.isBusy() || plans_.isBusy(); }
  bool isLooking() const { return front_.isBusy(); }
  /// Why there is no front; empty = it is there, or may come.
  const QString& problem() const { return problem_; }

 signals:
  /// A search began or ended.
  void changed();
  void found(const std::vector<tessera::RunnerUp>& front);
  void planned(int row, const tessera::gui::PlanAnswer& answer);

 private:
  void next();

  SharedPlan winner_;
  std::vector<std::string> fixed_;
  bool wanted_ = false, cancelled_ = false;
  QString problem_;
  std::set<int> begun_;  // rows
  std::deque<std::pair<int, RunnerUp>> waiting_;
  Newest<PlanFront> front_{2};  // new ones do not wait for those that nobody hears
  Newest<PlanAnswer> plans_{2};
};

}  // namespace tessera::gui
