// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/front_search.h"

#include <exception>
#include <utility>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"
#include "planner/explain/planner.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_constants.h"
#include "planner/request/plan_request.h"
#include "planner/request/solution.h"
#include "planner/search/certificate.h"

namespace tessera::gui {

PlanFront front_of(const Plan& winner, const std::vector<std::string>& fixed,
                   const std::stop_token& stop) {
  PlanFront front;
  try {
    Problems problems;
    auto constants = constants_of(winner, problems);
    if (!constants) return {{}, problemsText(problems)};
    PlanRequest request = request_of(winner, std::move(constants->calibration));
    request.fixed = parse_settings(fixed, problems);
    if (problems.empty()) {
      for (const Solution& plan : Planner(request).pareto(request.fixed, problems, stop)) {
        front.plans.push_back(runner_up_of(request.cluster, plan));
      }
    }
    front.problem = problemsText(problems);
  } catch (const std::exception& error) {
    front.problem = QString::fromUtf8(error.what());
  }
  return front;
}

void FrontSearch::setWinner(SharedPlan winner, std::vector<std::string> fixed) {
  clear();
  winner_ = std::move(winner);
  fixed_ = std::move(fixed);
}

void FrontSearch::clear() {
  front_.cancel();
  plans_.cancel();
  winner_.reset();
  wanted_ = cancelled_ = false;
  problem_.clear();
  begun_.clear();
  waiting_.clear();
}

// Rows that were not planned may be asked for once more.
void FrontSearch::rest() {
  if (!isBusy()) return;
  if (front_.isBusy()) wanted_ = false;
  front_.cancel();
  plans_.cancel();
  begun_.clear();
  waiting_.clear();
  emit changed();
}

void FrontSearch::cancel() {
  if (!isBusy()) return;
  cancelled_ = true;
  rest();
}

void FrontSearch::goOn() {
  if (!std::exchange(cancelled_, false)) return;
  want();
  emit changed();
}

void FrontSearch::want() {
  if (!winner_ || wanted_ || cancelled_) return;
  wanted_ = true;
  front_.start([winner = winner_, fixed = fixed_](
                   const std::stop_token& stop) { return front_of(*winner, fixed, stop); },
               [this](const PlanFront& front) {
                 problem_ = front.problem;
                 emit found(front.plans);
                 emit changed();
               });
  emit changed();
}

void FrontSearch::planInFull(const Rivals& rivals) {
  if (!winner_ || cancelled_) return;
  for (const auto& rival : rivals) {
    if (begun_.insert(rival.first).second) waiting_.push_back(rival);
  }
  if (!plans_.isBusy() && !waiting_.empty()) next();
}

// Preconditions: a winner, and something waits.
void FrontSearch::next() {
  const auto [row, rival] = waiting_.front();
  waiting_.pop_front();
  plans_.start([winner = winner_, rival = rival](
                   const std::stop_token& stop) { return answer(*winner, rival, stop); },
               [this, row = row](const PlanAnswer& answer) {
                 const bool last = waiting_.empty();
                 if (!last) next();  // first: who hears of this plan may want more
                 emit planned(row, answer);
                 if (last) emit changed();
               });
}

}  // namespace tessera::gui
