// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/session.h"

#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/timeline/link_steps.h"
#include "gui/translations/said.h"
#include "planner/plan/certified.h"
#include "planner/plan/plan.h"
#include "planner/request/plan_constants.h"

namespace tessera::gui {

Session::Session(QObject* parent) : QObject(parent) {
  connect(&search_, &PlannerJob::answerAvailable, this,
          [this](quint64, const PlanAnswer& answer) { takeAnswer(document_.question, answer); });
  connect(&detail_, &PlannerJob::answerAvailable, this,
          [this](quint64, const PlanAnswer& answer) { takeDetail(wanted_row_, answer); });
  connect(&front_, &FrontSearch::found, this,
          [this](const std::vector<RunnerUp>& front) { plans_.addFront(front); });
  connect(&front_, &FrontSearch::planned, this, [this](int row, const PlanAnswer& answer) {
    if (const auto* plan = std::get_if<SharedPlan>(&answer.result)) plans_.setPlan(row, *plan);
  });
  connect(&front_, &FrontSearch::changed, this, &Session::frontChanged);
  connect(&parts_, &PlanParts::changed, this, [this] {
    pinned_.setParts(parts_.known());
    changed();
  });
  connect(&pinned_, &QAbstractItemModel::modelReset, this, &Session::wantParts);
  connect(&run_, &RunFollower::folderChanged, this, [this] {
    if (run_.folder() != remote_.news().folder) remote_.end();
    samples_.follow(run_.folder());
    tellMesh();
  });
  connect(&remote_, &RemoteCopy::contacted, this, &Session::followCopy);
  connect(&run_, &RunFollower::polled, &samples_, &SampleFollower::poll);
  connect(&run_, &RunFollower::polled, this, &Session::tellMesh);
  connect(&timeline_, &PlanWatch::changed, this, [this] {
    const auto& facts = timeline_.facts();
    mesh_.setLinks(facts ? busiest_links(facts->simulation) : std::vector<RankLink>{});
  });
  connect(&peaks_, &PlanWatch::changed, this, [this] {
    mesh_.setMemory(peaks_.facts() ? *peaks_.facts() : std::vector<RankMemory>{});
  });
}

// What the ranks of the run do; of no run, or one of other ranks, nothing.
void Session::tellMesh() { mesh_.setNow(ranks_now(run_.ranks()->rows(), mesh_.planRanks())); }

void Session::changed() {
  document_.planning = isBusy();
  wantParts();
  emit documentChanged();
}

// Of the pinned plans, and of the one that is shown with what it is held against.
void Session::wantParts() {
  std::vector<SharedPlan> plans;
  if (pinned_.count() > 1) plans = pinned_.plans();
  if (const auto pair = compared()) {
    plans.push_back(pair->other.plan);
    plans.push_back(pair->shown.plan);
  }
  parts_.want(plans);
}

std::optional<Session::Compared> Session::compared() const {
  if (!document_.valid() || row_ < 0 || row_ >= plans_.rowCount()) return std::nullopt;
  const auto named = [this](const QString& name, const SharedPlan& plan) {
    return NamedPlan{name, plan, parts_.of(plan)};
  };
  const NamedPlan shown = named(Words::tr("row %1").arg(row_ + 1), document_.plan);
  if (row_ > 0) return Compared{named(Words::tr("row %1").arg(1), plans_.row(0).plan), shown};
  if (document_.freer.empty()) return std::nullopt;
  const FreerAnswer& freer = document_.freer.back();
  const QString settings = fixed_beyond(document_.question, freer.question).join(' ');
  return Compared{named(Words::tr("the plan without %1").arg(settings), freer.plan), shown};
}

void Session::ask(const PlanQuery& query) {
  if (began_ && query == document_.question) return;
  const Edit edit{query, nullptr, {}};
  began_ ? edits_.edit(edit) : edits_.replace(edit);
  edited_ = began_;
  goTo(edit);
}

void Session::askOn(const PlanQuery& query) {
  if (!began_ || query == document_.question) return;
  edits_.replace({query, nullptr, {}});
  edited_ = true;
  goTo(edits_.now());
}

void Session::askAgain() { search(); }

void Session::goTo(const Edit& edit) {
  began_ = true;
  forgetFixes();
  document_.question = edit.question;
  document_.file_problems.clear();
  if (!edit.opened) {
    document_.file.clear();
    document_.in_file.reset();
    search();
    return;
  }
  search_.cancel();
  detail_.cancel();
  forgetFreer();
  document_ = {.question = edit.question,
               .answered = edit.question,
               .file = edit.file,
               .in_file = edit.file.isEmpty() ? nullptr : edit.opened};
  const std::string uncertified = why_not_certified(*edit.opened);
  setWinner(edit.opened, uncertified.empty());
  show(0, edit.opened, uncertified);
}

void Session::search() {
  detail_.cancel();
  forgetFreer();
  wanted_row_ = row_;
  search_.submit([this, query = document_.question](const std::stop_token& stop) {
    return planner_.answer(query, stop);
  });
  front_.rest();
  changed();
}

void Session::cancel() {
  search_.cancel();
  detail_.cancel();
  free_search_.cancel();
  wanted_row_ = row_;
  changed();
}

void Session::undo() {
  if (canUndo()) comeBackTo(edits_.undo());
}

void Session::redo() {
  if (canRedo()) comeBackTo(edits_.redo());
}

// Another program may have written its file meanwhile.
void Session::comeBackTo(Edit edit) {
  edited_ = true;
  if (!edit.file.isEmpty() && stamp_of(edit.file) != edit.written) edit.file.clear();
  edits_.replace(edit);
  goTo(edit);
}

void Session::forgetFixes() {
  fix_search_.cancel();
  fixes_.clear();
}

// What would help is planned in the background: the reason is told at once.
void Session::searchFixes() {
  forgetFixes();
  if (!document_.none_fits->change.any() && !with_whole_nodes(document_.question)) return;
  fix_search_.start([query = document_.question](
                        const std::stop_token& stop) { return planned_fixes(query, stop); },
                    [this](std::vector<PlannedFix> found) {
                      fixes_ = std::move(found);
                      changed();
                    });
}

void Session::takeAnswer(const PlanQuery& query, const PlanAnswer& answer) {
  if (document_.answered && plans_.rowCount() > 0) {
    document_.freer.push_back({*document_.answered, plans_.row(0).plan});
  }
  document_.freer = freer_than(query, std::move(document_.freer));
  document_.answered = query;
  document_.none_fits.reset();
  document_.problems.clear();
  document_.seconds = answer.seconds;
  if (const auto* plan = std::get_if<SharedPlan>(&answer.result)) {
    setWinner(*plan, /*certified=*/true);
    show(0, *plan);
    return;
  }
  if (const Infeasible* none = std::get_if<Infeasible>(&answer.result)) {
    document_.none_fits = *none;
    searchFixes();
  } else {
    document_.problems = std::get<Problems>(answer.result);
  }
  plans_.clear();
  front_.clear();
  emit frontChanged();
  row_ = wanted_row_ = -1;
  changed();
}

void Session::setWinner(const SharedPlan& winner, bool certified) {
  plans_.setWinner(winner, certified);
  front_.setWinner(winner, document_.answered->fixed);
}

void Session::wantFront() {
  if (!search_.isBusy()) front_.want();
}

void Session::wantEveryPlan() {
  if (search_.isBusy()) return;
  FrontSearch::Rivals rivals;
  for (int row = 0; row < plans_.rowCount(); ++row) {
    if (!plans_.row(row).plan) rivals.emplace_back(row, plans_.row(row).summary);
  }
  front_.planInFull(rivals);
}

void Session::wantFreer() {
  if (!document_.valid() || !document_.freer.empty() || freer_wanted_) return;
  PlanQuery open = document_.question;
  if (std::exchange(open.fixed, {}).empty()) return;
  freer_wanted_ = true;
  const auto take = [this, open](const PlanAnswer& found) {
    if (const auto* plan = std::get_if<SharedPlan>(&found.result)) {
      document_.freer = freer_than(document_.question, {{open, *plan}});
    }
    changed();
  };
  free_search_.start([open](const std::stop_token& stop) { return answer(open, stop); }, take);
}

void Session::forgetFreer() {
  free_search_.cancel();
  freer_wanted_ = false;
}

std::vector<std::string> Session::fixed() const {
  if (row_ > 0 && row_ < plans_.rowCount()) return plans_.row(row_).summary.settings;
  return document_.answered ? document_.answered->fixed : std::vector<std::string>{};
}

void Session::selectRow(int row) {
  if (row < 0 || row >= plans_.rowCount() || row == wanted_row_) return;
  const PlanTableModel::Row& chosen = plans_.row(row);
  wanted_row_ = row;
  edited_ = true;
  detail_.cancel();
  if (chosen.plan) {
    show(row, chosen.plan);
    return;
  }
  detail_.submit([winner = plans_.row(0).plan, other = chosen.summary](
                     const std::stop_token& stop) { return answer(*winner, other, stop); });
  changed();
}

void Session::takeDetail(int row, const PlanAnswer& answer) {
  if (const auto* plan = std::get_if<SharedPlan>(&answer.result)) {
    plans_.setPlan(row, *plan);
    show(row, *plan);
    return;
  }
  wanted_row_ = row_;
  if (const Infeasible* none = std::get_if<Infeasible>(&answer.result)) {
    report(none->reasons.empty() ? Words::tr("this row has no plan any more")
                                 : said(none->reasons.front()));
  } else {
    report(problemsText(std::get<Problems>(answer.result)));
  }
}

// What was searched for here is certified.
void Session::show(int row, const SharedPlan& plan, const std::string& uncertified) {
  row_ = wanted_row_ = row;
  document_.plan = plan;
  document_.uncertified = uncertified;
  Problems unheard;  // the views say what they lack
  const auto constants = constants_of(*plan, unheard);
  calibration_ = constants ? std::optional(constants->calibration) : std::nullopt;
  mesh_.setPlan(plan);
  memory_.setPlan(plan, calibration_);
  phases_.setPlan(*plan);
  run_.setPlan(plan);
  timeline_.setPlan(plan, calibration_);
  reshard_.setPlan(plan, calibration_);
  peaks_.setPlan(plan, calibration_);
  tellMesh();
  view_ = {};
  emit planSelected(*plan);
  emit viewChanged(view_);
  changed();
}

void Session::pin() {
  if (document_.valid()) pinned_.pin(document_.plan);
}

void Session::look(const ViewState& view) {
  if (view == view_) return;
  if (view.rank != view_.rank) {
    mesh_.setChosenRank(view.rank);
    memory_.setRank(view.rank);
  }
  view_ = view;
  emit viewChanged(view_);
}

void Session::report(const QString& problems) {
  document_.file_problems = problems;
  changed();
}

}  // namespace tessera::gui
