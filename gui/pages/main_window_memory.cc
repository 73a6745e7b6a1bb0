// SPDX-License-Identifier: GPL-3.0-or-later
// What the window remembers from one start to the next, and what it finds again.
#include <QFileInfo>
#include <QSlider>
#include <QStatusBar>
#include <system_error>
#include <utility>

#include "gui/document/run_folder.h"
#include "gui/document/text.h"
#include "gui/kept/open_work.h"
#include "gui/layout/kept_layout.h"
#include "gui/pages/main_window.h"
#include "gui/remote/remote_runs.h"
#include "gui/views/elided_label.h"
#include "gui/watch/metric_list_model.h"

namespace tessera::gui {

void MainWindow::rememberSoon() {
  if (!memory_.empty()) remembering_.start();
}

void MainWindow::rememberNow() {
  if (memory_.empty()) return;
  remembering_.stop();
  const Document& document = session_.document();
  Workspace now = workspace_;
  now.question = document.question;
  now.plan = document.file;
  if (!document.file.isEmpty())
    remember(now.recent_plans, QFileInfo(document.file).absoluteFilePath());
  now.project = project_file_.isEmpty() ? QString() : QFileInfo(project_file_).absoluteFilePath();
  if (!now.project.isEmpty()) remember(now.recent_projects, now.project);
  const std::filesystem::path& run = session_.run()->folder();
  if (copied_run(run)) {
    remember(now.recent_runs, placeText(run));
  } else if (!run.empty()) {
    remember(now.recent_runs, QFileInfo(placeText(run)).absoluteFilePath());
  }
  now.layout = layout_of(*this);
  if (const auto* metrics = findChild<MetricListModel*>()) {
    const auto chosen = metrics->choice();
    if (chosen) now.metrics.emplace();
    for (const std::string& name : chosen.value_or(std::vector<std::string>{})) {
      *now.metrics << QString::fromStdString(name);
    }
  }
  if (const auto* smoothing = findChild<QSlider*>("smoothing")) now.smoothing = smoothing->value();
  workspace_ = std::move(now);
  try {
    keepOpenWork();
    if (workspace_ == kept_) return;
    kept_ = workspace_;
    write_workspace(workspace_, memory_);
  } catch (const Error& error) {
    memory_.clear();  // once is enough
    tellNotKept(problemsText(error.problems()));
  }
}

void MainWindow::tellNotKept(const QString& why) {
  const QString text = Words::tr("Nothing is kept for the next start: %1").arg(why);
  auto* label = new ElidedLabel(text);
  label->setAccessibleName(Words::tr("What is not kept"));
  statusBar()->addPermanentWidget(label);
  session_.report(text);
}

void MainWindow::restoreMetrics() {
  auto* metrics = findChild<MetricListModel*>();
  auto* smoothing = findChild<QSlider*>("smoothing");
  if (metrics == nullptr || smoothing == nullptr) return;
  if (workspace_.metrics) {
    std::vector<std::string> names;
    for (const QString& name : *workspace_.metrics) names.push_back(name.toStdString());
    metrics->setChoice(std::move(names));
  }
  smoothing->setValue(workspace_.smoothing);
  connect(metrics, &MetricListModel::drawnChanged, this, &MainWindow::rememberSoon);
  connect(smoothing, &QSlider::valueChanged, this, &MainWindow::rememberSoon);
}

// Until the window ends well: who closes it is asked about them. A run of its own is among the
// recent ones.
void MainWindow::keepOpenWork() {
  Project work{.pinned = session_.pinned()->plans()};
  if (!session_.run()->others().empty()) work.runs = session_.project().runs;
  std::erase_if(work.runs, [](const RunPlace& run) { return run.index() != 0; });  // needs a token
  if (work == kept_work_) return;
  kept_work_ = std::move(work);
  keep_open_work(kept_work_, open_work_file(memory_));
}

void MainWindow::takeLeft() {
  if (memory_.empty()) return;
  const std::vector<std::filesystem::path> files = left_work(memory_);
  if (files.empty()) return;
  QString told = session_.document().file_problems;
  for (const std::filesystem::path& file : files) {
    Problems problems;
    const auto left = read_project(file, problems);
    if (!left) {
      told += "\n" + problemsText(problems);
      continue;
    }
    for (const SharedPlan& plan : left->pinned) session_.pinned()->pin(plan);
    for (const RunPlace& place : left->runs) {
      const auto& run = std::get<std::filesystem::path>(place);
      if (!is_run_there(run)) continue;
      const bool first = session_.run()->folder().empty();
      first ? session_.run()->follow(run) : session_.run()->addOther(run);
    }
  }
  rememberNow();  // before they go
  std::error_code ignored;
  for (const std::filesystem::path& file : files) std::filesystem::remove(file, ignored);
  if (!told.isEmpty()) session_.report(told.trimmed());
  statusBar()->showMessage(
      Words::tr("Here again: what a window had pinned and compared that did not end well"), 10000);
}

// What could not be opened before goes on being told.
void MainWindow::askLast(const PlanQuery& otherwise) {
  const QString told = session_.document().file_problems;
  openLast(otherwise);
  if (!told.isEmpty()) session_.report(told);
}

// The run that was asked for stays the one that is followed: a project has its own.
void MainWindow::openLast(const PlanQuery& otherwise) {
  const bool follows = !session_.run()->folder().empty() || session_.remote()->isKept();
  const Workspace kept = workspace_;  // what is opened is remembered
  const bool project = !follows && QFileInfo::exists(kept.project) && openProject(kept.project);
  if (QFileInfo::exists(kept.plan) && openPlan(kept.plan)) return;
  PlanQuery last = kept.question;
  const bool whole = !last.model.empty() && !last.cluster.empty() && !last.workload.empty();
  if (project && session_.isAsked()) {  // it may have been edited since
    last.opened = session_.document().question.opened;
    if (whole) session_.ask(last);
    return;
  }
  session_.ask(whole ? last : otherwise);
}

}  // namespace tessera::gui
