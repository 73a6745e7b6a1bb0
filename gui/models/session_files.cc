// SPDX-License-Identifier: GPL-3.0-or-later
// What the session does with plans and projects in files, and with runs: opens, saves, follows.
#include <system_error>
#include <utility>

#include "gui/document/run_folder.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/session.h"
#include "gui/plans/imported_plan.h"
#include "gui/plans/opened_plan.h"
#include "gui/remote/remote_runs.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"

namespace tessera::gui {

Project Session::project() const {
  Project project;
  if (began_) project.question = document_.question;
  project.pinned = pinned_.plans();
  const auto add = [&](const std::filesystem::path& folder) {
    const auto remote = copied_run(folder);
    remote ? project.runs.emplace_back(*remote) : project.runs.emplace_back(folder);
  };
  if (!run_.folder().empty()) add(run_.folder());
  for (const RunFollower::Other& other : run_.others()) add(other.folder);
  // A run that was opened since goes before those that the project has.
  const bool of_project = run_.folder() == of_project_;
  add_unreached(project.runs, unreached_, of_project ? 0 : 1);
  return project;
}

void Session::openProject(const Project& project, bool live) {
  pinned_.setPlans(project.pinned);
  if (project.question) ask(*project.question);
  QString missing;
  bool asked = false;  // its first run is one of another host
  of_project_.clear();
  run_.close();
  keepOneRun();
  for (std::size_t i = 0; i < project.runs.size(); ++i) {
    const auto* remote = std::get_if<RemoteName>(&project.runs[i]);
    const std::filesystem::path run = remote != nullptr
                                          ? mirror_folder(*remote, copies_folder())
                                          : std::get<std::filesystem::path>(project.runs[i]);
    const bool here = is_run_there(run);
    const bool first = of_project_.empty() && !asked;
    const bool wanted = remote != nullptr && first && live;
    if (!first || !here || wanted) unreached_.emplace(i, project.runs[i]);  // until it is shown
    if (wanted) {
      asked = true;
      emit remoteWanted(*remote);
    } else if (!here) {
      missing += (remote != nullptr ? Words::tr("%1: no copy of it is here")
                                          .arg(QString::fromStdString(to_text(*remote)))
                                    : noSuchFolder(QString::fromStdString(run.string()))) +
                 "\n";
    } else {
      first ? run_.follow(run, live) : run_.addOther(run, live);
      if (first) of_project_ = run_.folder();
    }
  }
  report(missing.trimmed());
}

void Session::followRemote(const RemoteName& name, const std::string& token) {
  const std::filesystem::path cache = copies_folder();
  remote_.keep(name, token, cache);
  if (name.run.empty()) return;
  std::error_code error;
  const std::filesystem::path copy = mirror_folder(name, cache);
  if (std::filesystem::exists(copy / "mirror.json", error)) run_.follow(copy);
}

bool Session::canTell() const {
  if (!run_.isCopy()) return !run_.folder().empty();
  return remote_.isKept() && remote_.news().folder == run_.folder();
}

void Session::tell(RunSignal signal) { run_.isCopy() ? remote_.tell(signal) : run_.tell(signal); }

void Session::followCopy() {  // once it is known which run it is, and something of it is here
  const RemoteNews& news = remote_.news();
  if (news.contact != Contact::reached) return;
  std::erase_if(unreached_, [&](const auto& each) { return each.second == RunPlace{news.name}; });
  if (run_.folder() != news.folder) run_.follow(news.folder);
}

bool Session::openPlan(const QString& file) {
  Problems problems;
  auto plan = read_plan(file.toStdString(), problems);
  if (!plan) {
    report(problemsText(problems));
    return false;
  }
  const OpenedPlan shown = opened(*std::move(plan));
  const Edit edit{query_of(shown.plan), shown.plan, file, stamp_of(file)};
  began_ ? edits_.edit(edit) : edits_.replace(edit);
  goTo(edit);
  if (!shown.notice.isEmpty()) report(shown.notice);
  return true;
}

bool Session::importPlan(const QString& file, const PlanQuery& question) {
  Problems problems;
  const auto made = imported_plan(file.toStdString(), question, problems);
  if (!made) {
    report(problemsText(problems));
    return false;
  }
  const Edit edit{query_of(made->plan), made->plan, {}};
  began_ ? edits_.edit(edit) : edits_.replace(edit);
  edited_ = true;
  goTo(edit);
  if (!made->notice.isEmpty()) {
    report(Words::tr("%1 was read as a plan; what was assumed:").arg(file) + "\n" + made->notice);
  }
  return true;
}

bool Session::savePlan(const QString& file) {
  if (!document_.valid()) return false;
  try {
    write_plan(*document_.plan, file.toStdString());
  } catch (const Error& error) {
    report(problemsText(error.problems()));
    return false;
  }
  edited_ = false;
  say_saved(document_, edits_, file, row_ == 0);
  report({});
  return true;
}

}  // namespace tessera::gui
