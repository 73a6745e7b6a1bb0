// SPDX-License-Identifier: GPL-3.0-or-later
// What the window does with plans and projects in files: opens and saves them, and asks before what
// is in none of them goes with the window. One view goes into a file, too.
#include <QCloseEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>
#include <QScopedValueRollback>
#include <QStatusBar>
#include <utility>

#include "gui/document/file_kind.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/export/view_file.h"
#include "gui/kept/open_work.h"
#include "gui/pages/command_palette.h"
#include "gui/pages/export_views.h"
#include "gui/pages/main_window.h"
#include "gui/views/save_file.h"

namespace tessera::gui {

void MainWindow::tell(const QString& problems) {
  session_.report(problems);
  pages_->setCurrentWidget(explore_);
}

void MainWindow::tellHere(const QString& problems) {
  session_.report(problems);
  statusBar()->showMessage(problems.section('\n', 0, 0));
}

bool MainWindow::openPlan(const QString& file) {
  if (!session_.openPlan(file)) {
    pages_->setCurrentWidget(explore_);
    return false;
  }
  plan_file_ = QFileInfo(file).absoluteFilePath();
  statusBar()->showMessage(Words::tr("Opened %1").arg(QFileInfo(file).fileName()), 5000);
  return true;
}

// What is wrong with it is told.
std::optional<Project> MainWindow::readProject(const QString& file) {
  Problems problems;
  auto project = read_project(file.toStdString(), problems);
  if (!project) tell(problemsText(problems));
  return project;
}

bool MainWindow::openProject(const QString& file, bool live) {
  const auto project = readProject(file);
  if (!project) return false;
  project_file_ = file;
  project_ = *project;
  session_.openProject(*project, live);
  statusBar()->showMessage(Words::tr("Opened %1").arg(QFileInfo(file).fileName()), 5000);
  pages_->setCurrentWidget(explore_);
  return true;
}

// Nobody is asked for a file that is none; it is read again then, as it may be the one that is
// saved.
bool MainWindow::changeProject(const QString& file) {
  if (!readProject(file)) return false;
  const bool has_more = !project_file_.isEmpty() || session_.pinned()->count() > 0;
  const Unsaved what = has_more ? unsaved() : Unsaved::nothing;
  return mayGo(what, Words::tr("Open project")) && openProject(file);
}

bool MainWindow::saveProject(const QString& file) {
  Project now = session_.project();
  try {
    write_project(now, file.toStdString());
  } catch (const Error& error) {
    tell(problemsText(error.problems()));
    return false;
  }
  project_file_ = file;
  project_ = std::move(now);
  session_.report({});
  statusBar()->showMessage(Words::tr("Saved %1").arg(QFileInfo(file).fileName()), 5000);
  return true;
}

void MainWindow::chooseProject() {
  const QString file = QFileDialog::getOpenFileName(this, Words::tr("Open project"), {},
                                                    Words::tr("Projects (*.json)"));
  if (!file.isEmpty()) changeProject(file);
}

bool MainWindow::keepProject() {
  return project_file_.isEmpty() ? chooseWhereToKeepProject() : saveProject(project_file_);
}

bool MainWindow::chooseWhereToKeepProject() {
  const QString file = askFileToSave(this, Words::tr("Save project"),
                                     project_file_.isEmpty() ? "project.json" : project_file_,
                                     Words::tr("Projects (*.json)"));
  return !file.isEmpty() && saveProject(file);
}

bool MainWindow::importPlan(const QString& file, const std::optional<PlanQuery>& question) {
  pages_->setCurrentWidget(explore_);
  if (!session_.importPlan(file, question.value_or(explore_->form()->query()))) return false;
  statusBar()->showMessage(Words::tr("Opened %1").arg(QFileInfo(file).fileName()), 5000);
  return true;
}

void MainWindow::chooseImport() {
  const QString file = QFileDialog::getOpenFileName(
      this, Words::tr("Import a script"), {},
      Words::tr("Scripts and configurations (*.sh *.yaml *.yml *.txt);;All files (*)"));
  if (!file.isEmpty()) importPlan(file);
}

void MainWindow::choosePlan() {
  const QString file =
      QFileDialog::getOpenFileName(this, Words::tr("Open plan"), {}, Words::tr("Plans (*.json)"));
  if (file.isEmpty()) return;
  Problems unheard;  // who opens it says what is wrong
  const auto kind = kind_of(file.toStdString(), unheard);
  if (kind == FileKind::trace) {
    openTrace(file);
  } else if (kind == FileKind::script) {
    importPlan(file);
  } else if (openPlan(file)) {
    pages_->setCurrentWidget(explore_);
  }
}

bool MainWindow::openTrace(const QString& file, bool live) {
  const auto before = session_.trace()->facts();
  pages_->setCurrentWidget(understand_);
  understand_->showTimeline();
  session_.trace()->open(file, live);
  return live || session_.trace()->facts() != before;
}

void MainWindow::chooseTrace() {
  const QString file =
      QFileDialog::getOpenFileName(this, Words::tr("Open trace"), {}, Words::tr("Traces (*.json)"));
  if (!file.isEmpty()) openTrace(file);
}

bool MainWindow::save() {
  const QString file = session_.document().file;
  return file.isEmpty() ? chooseWhereToSave() : savePlan(file);
}

bool MainWindow::chooseWhereToSave() {
  const QString file =
      askFileToSave(this, Words::tr("Save plan"), plan_file_.isEmpty() ? "plan.json" : plan_file_,
                    Words::tr("Plans (*.json)"));
  return !file.isEmpty() && savePlan(file);
}

bool MainWindow::savePlan(const QString& file) {
  if (!session_.savePlan(file)) {
    pages_->setCurrentWidget(explore_);
    return false;
  }
  plan_file_ = QFileInfo(file).absoluteFilePath();
  statusBar()->showMessage(Words::tr("Saved %1").arg(QFileInfo(file).fileName()), 5000);
  return true;
}

// A project that is open has the question and all that was pinned; without one the plan is what
// there is to save, and where no plan answers the question, a project keeps it.
MainWindow::Unsaved MainWindow::unsaved() const {
  const Project now = session_.project();
  if (!project_file_.isEmpty()) return now == project_ ? Unsaved::nothing : Unsaved::project;
  if (!now.pinned.empty()) return Unsaved::project;
  if (!session_.hasEdits()) return Unsaved::nothing;
  return session_.document().valid() ? Unsaved::plan : Unsaved::project;
}

// True when nothing is lost that the user wants to keep.
bool MainWindow::mayGo(Unsaved what, const QString& title) {
  if (what == Unsaved::nothing) return true;
  QString text = Words::tr("The plan that is shown is in no file.");
  if (what == Unsaved::project) {
    const bool pins_alone = session_.document().saved() && session_.document().valid();
    text = !project_file_.isEmpty() ? Words::tr("%1 lacks what has changed since it was saved.")
                                          .arg(QFileInfo(project_file_).fileName())
           : pins_alone ? Words::tr("The pinned plans are in no file; a project has them.")
           : session_.pinned()->count() == 0
               ? Words::tr("The question is in no file; a project has it.")
               : Words::tr("The question and the pinned plans are in no file; a project has both.");
  }
  QMessageBox box(QMessageBox::Question, title, text,
                  QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, this);
  box.button(QMessageBox::Save)->setText(Words::tr("&Save"));
  box.button(QMessageBox::Discard)->setText(Words::tr("&Discard"));
  box.button(QMessageBox::Cancel)->setText(Words::tr("Cancel"));
  box.setDefaultButton(QMessageBox::Save);
  switch (box.exec()) {
    case QMessageBox::Save:
      return what == Unsaved::plan ? save() : keepProject();
    case QMessageBox::Discard:
      return true;
    default:
      return false;
  }
}

// The one that the keys are for; behind a dialog it stays that. Of a page that shows a single view
// that one.
QWidget* MainWindow::viewLookedAt() const {
  QWidget* const with_keys = viewWith(focusWidget());
  if (with_keys != nullptr && with_keys->isVisible()) return with_keys;
  QWidget* only = nullptr;
  for (QWidget* part : pages_->currentWidget()->findChildren<QWidget*>()) {
    if (!part->isVisible() || viewWith(part) != part) continue;
    if (only != nullptr) return nullptr;
    only = part;
  }
  return only;
}

void MainWindow::allowViewExport() {
  allow(*one_view_, viewLookedAt() != nullptr,
        Words::tr("the keys are for none of the views: a click or Tab chooses one"));
}

void MainWindow::exportOneView() {
  QWidget* const view = viewLookedAt();
  if (view == nullptr || exporting_) return;
  const QScopedValueRollback<bool> once(exporting_, true);
  chooseViewExport(*this, *view);
}

void MainWindow::closeEvent(QCloseEvent* event) {
  explore_->form()->settle();
  rememberNow();  // whatever is answered
  if (!mayGo(unsaved(), Words::tr("Close the window"))) {
    event->ignore();
    return;
  }
  rememberNow();
  if (!memory_.empty()) keep_open_work({}, open_work_file(memory_));
  QMainWindow::closeEvent(event);
}

}  // namespace tessera::gui
