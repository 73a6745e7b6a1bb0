// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/main_window.h"

#include <QApplication>
#include <QCloseEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenuBar>
#include <QMessageBox>
#include <QScreen>
#include <QStatusBar>
#include <utility>

#include "gui/document/text.h"
#include "gui/pages/command_palette.h"
#include "gui/pages/dropped_files.h"
#include "gui/pages/export_views.h"
#include "gui/remote/remote_runs.h"
#include "gui/report/report.h"

namespace tessera::gui {
namespace {

constexpr QSize kUsualSize{1500, 980};
constexpr int kRememberMs = 500;

}  // namespace

MainWindow::MainWindow(std::filesystem::path memory, QWidget* parent)
    : QMainWindow(parent),
      memory_(std::move(memory)),
      explore_(new ExplorePage(session_)),
      understand_(new UnderstandPage(session_)),
      run_(new RunPage(session_)),
      pages_(new QTabWidget) {
  setWindowTitle("Tessera");
  pages_->addTab(explore_, "Explore");
  pages_->addTab(understand_, "Understand");
  pages_->addTab(run_, "Run");
  setCentralWidget(pages_);
  const QScreen* screen = QGuiApplication::primaryScreen();
  resize(screen ? kUsualSize.boundedTo(screen->availableSize()) : kUsualSize);
  if (!memory_.empty()) {
    Problems problems;
    workspace_ = read_workspace(memory_, problems);
    if (!problems.empty()) session_.report(problemsText(problems));
  }
  addFileActions();
  addEditActions();
  menuBar()->addMenu("&Run")->addActions(run_->controls());
  addViewActions();
  remembering_.setSingleShot(true);
  remembering_.setInterval(kRememberMs);
  connect(&remembering_, &QTimer::timeout, this, &MainWindow::rememberNow);
  connect(run_, &RunPage::openRequested, this, &MainWindow::chooseRun);
  connect(run_, &RunPage::compareRequested, this, &MainWindow::chooseOtherRun);
  connect(run_, &RunPage::startedIn, this, [this](const QString& folder) { openRun(folder); });
  connect(&session_, &Session::documentChanged, this, &MainWindow::documentChanged);
  connect(session_.run(), &RunFollower::folderChanged, this, &MainWindow::documentChanged);
  connect(session_.run(), &RunFollower::othersChanged, this, &MainWindow::documentChanged);
  connect(session_.pinned(), &QAbstractItemModel::modelReset, this, &MainWindow::documentChanged);
  documentChanged();
  takeDroppedFiles(*this);
}

void MainWindow::addRecent(QMenu* menu, const QStringList& paths,
                           bool (MainWindow::*open)(const QString&)) {
  menu->clear();
  for (const QString& path : paths) {
    menu->addAction(path, this, [this, path, open] {
      if ((this->*open)(path) && open == &MainWindow::openPlan) pages_->setCurrentWidget(explore_);
    });
  }
  if (paths.isEmpty()) menu->addAction("none so far")->setEnabled(false);
}

void MainWindow::addFileActions() {
  QMenu* file = menuBar()->addMenu("&File");
  file->addAction("&Open plan...", QKeySequence::Open, this, &MainWindow::choosePlan);
  QMenu* plans = file->addMenu("Recent &plans");
  connect(plans, &QMenu::aboutToShow, this,
          [this, plans] { addRecent(plans, workspace_.recent_plans, &MainWindow::openPlan); });
  save_ = file->addAction("&Save plan", QKeySequence::Save, this, &MainWindow::save);
  save_as_ = file->addAction("Save plan &as...", QKeySequence("Ctrl+Shift+S"), this,
                             &MainWindow::chooseWhereToSave);
  file->addSeparator();
  addProjectActions(file);
  file->addSeparator();
  addRunActions(file);
  file->addSeparator();
  file->addAction("&Export views...", QKeySequence("Ctrl+E"), this, &MainWindow::chooseExport);
  report_ = file->addAction("Save repor&t...", QKeySequence("Ctrl+Shift+E"), this,
                            [this] { chooseReport(*this); });
  file->addSeparator();
  file->addAction("&Quit", QKeySequence("Ctrl+Q"), this, &QWidget::close);
}

void MainWindow::addProjectActions(QMenu* file) {
  file->addAction("Open pro&ject...", QKeySequence("Ctrl+Alt+O"), this, &MainWindow::chooseProject);
  QMenu* recent = file->addMenu("Recent projec&ts");
  connect(recent, &QMenu::aboutToShow, this, [this, recent] {
    addRecent(recent, workspace_.recent_projects, &MainWindow::openLiveProject);
  });
  file->addAction("Sa&ve project", QKeySequence("Ctrl+Alt+S"), this, &MainWindow::keepProject);
  file->addAction("Save project as...", QKeySequence("Ctrl+Alt+Shift+S"), this,
                  &MainWindow::chooseWhereToKeepProject);
}

void MainWindow::addEditActions() {
  QMenu* edit = menuBar()->addMenu("&Edit");
  undo_ = edit->addAction("&Undo", QKeySequence::Undo, &session_, &Session::undo);
  redo_ = edit->addAction("&Redo", QKeySequence::Redo, &session_, &Session::redo);
  edit->addSeparator();
  edit->addAction("Plan &again", QKeySequence("F5"), &session_, &Session::askAgain);
  cancel_ = edit->addAction("&Cancel planning", QKeySequence("Esc"), &session_, &Session::cancel);
  pin_ = edit->addAction("&Pin this plan", QKeySequence("Ctrl+D"), &session_, &Session::pin);
}

void MainWindow::addViewActions() {
  QMenu* view = menuBar()->addMenu("&View");
  for (int page = 0; page < pages_->count(); ++page) {
    view->addAction(pages_->tabText(page), QKeySequence(QString("Ctrl+%1").arg(page + 1)), this,
                    [this, page] { pages_->setCurrentIndex(page); });
  }
  view->addAction("&Question", QKeySequence("Ctrl+L"), this, [this] {
    pages_->setCurrentWidget(explore_);
    explore_->form()->findChild<QComboBox*>()->setFocus();
  });
  view->addSeparator();
  view->addAction("&Light or dark", QKeySequence("Ctrl+T"), this, [this] {
    const bool dark = themeOf(QApplication::palette()) == Theme::dark;
    setTheme(dark ? Theme::light : Theme::dark);
  });
  QMenu* help = menuBar()->addMenu("&Help");
  help->addAction("&Do anything...", QKeySequence("Ctrl+P"), this, &MainWindow::showPalette);
  help->addAction("&Keys", QKeySequence("?"), this, &MainWindow::showKeys);
}

void MainWindow::setTheme(Theme theme) {
  QApplication::setPalette(paletteOf(theme));
  workspace_.dark = theme == Theme::dark;
  rememberSoon();
}

void MainWindow::documentChanged() {
  const Document& document = session_.document();
  save_->setEnabled(document.valid());
  save_as_->setEnabled(document.valid());
  pin_->setEnabled(document.valid());
  report_->setEnabled(has_report(session_));
  undo_->setEnabled(session_.canUndo());
  redo_->setEnabled(session_.canRedo());
  cancel_->setEnabled(document.planning);
  setWindowTitle(titleOfAll());
  rememberSoon();
}

// "plan.json* - study.json - Tessera": stars where files lack what is shown.
QString MainWindow::titleOfAll() const {
  QStringList parts;
  if (session_.document().plan) parts << title_of(session_.document());
  if (!project_file_.isEmpty()) {
    const bool saved = session_.project() == project_;
    parts << QFileInfo(project_file_).fileName() + (saved ? "" : "*");
  }
  parts << "Tessera";
  return parts.join(" - ");
}

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
  if (!project_file_.isEmpty()) {
    remember(now.recent_projects, QFileInfo(project_file_).absoluteFilePath());
  }
  const std::filesystem::path& run = session_.run()->folder();
  if (copied_run(run)) {
    remember(now.recent_runs, placeText(run));
  } else if (!run.empty()) {
    remember(now.recent_runs, QFileInfo(placeText(run)).absoluteFilePath());
  }
  if (now == workspace_) return;
  workspace_ = std::move(now);
  try {
    write_workspace(workspace_, memory_);
  } catch (const Error& error) {
    memory_.clear();  // once is enough
    session_.report(problemsText(error.problems()));
  }
}

void MainWindow::closeEvent(QCloseEvent* event) {
  rememberNow();
  QMainWindow::closeEvent(event);
}

void MainWindow::askLast(const PlanQuery& otherwise) {
  if (!workspace_.plan.isEmpty() && QFileInfo::exists(workspace_.plan) &&
      openPlan(workspace_.plan)) {
    return;
  }
  const PlanQuery& last = workspace_.question;
  const bool whole = !last.model.empty() && !last.cluster.empty() && !last.workload.empty();
  session_.ask(whole ? last : otherwise);
}

bool MainWindow::openPlan(const QString& file) {
  if (!session_.openPlan(file)) return false;
  statusBar()->showMessage("Opened " + QFileInfo(file).fileName(), 5000);
  return true;
}

bool MainWindow::openProject(const QString& file, bool live) {
  Problems problems;
  const auto project = read_project(file.toStdString(), problems);
  if (!project) {
    session_.report(problemsText(problems));
    return false;
  }
  project_file_ = file;
  project_ = *project;
  session_.openProject(*project, live);
  statusBar()->showMessage("Opened " + QFileInfo(file).fileName(), 5000);
  pages_->setCurrentWidget(explore_);
  return true;
}

bool MainWindow::saveProject(const QString& file) {
  Project now = session_.project();
  try {
    write_project(now, file.toStdString());
  } catch (const Error& error) {
    session_.report(problemsText(error.problems()));
    return false;
  }
  project_file_ = file;
  project_ = std::move(now);
  session_.report({});
  statusBar()->showMessage("Saved " + QFileInfo(file).fileName(), 5000);
  return true;
}

void MainWindow::chooseProject() {
  const QString file = QFileDialog::getOpenFileName(this, "Open project", {}, "Projects (*.json)");
  if (!file.isEmpty()) openProject(file);
}

void MainWindow::keepProject() {
  if (project_file_.isEmpty()) {
    chooseWhereToKeepProject();
  } else {
    saveProject(project_file_);
  }
}

void MainWindow::chooseWhereToKeepProject() {
  const QString file =
      QFileDialog::getSaveFileName(this, "Save project", "project.json", "Projects (*.json)");
  if (!file.isEmpty()) saveProject(file);
}

void MainWindow::choosePlan() {
  const QString file = QFileDialog::getOpenFileName(this, "Open plan", {}, "Plans (*.json)");
  if (!file.isEmpty() && openPlan(file)) pages_->setCurrentWidget(explore_);
}

void MainWindow::save() {
  const QString file = session_.document().file;
  if (file.isEmpty()) {
    chooseWhereToSave();
  } else if (session_.savePlan(file)) {
    statusBar()->showMessage("Saved " + QFileInfo(file).fileName(), 5000);
  }
}

void MainWindow::chooseWhereToSave() {
  const QString file =
      QFileDialog::getSaveFileName(this, "Save plan", "plan.json", "Plans (*.json)");
  if (!file.isEmpty() && session_.savePlan(file)) {
    statusBar()->showMessage("Saved " + QFileInfo(file).fileName(), 5000);
  }
}

void MainWindow::chooseExport() {
  const QString folder = QFileDialog::getExistingDirectory(this, "Export views into");
  if (folder.isEmpty()) return;
  try {
    const QStringList written = exportViews(*this, folder, kAllFormats);
    statusBar()->showMessage(QString("%1 files written").arg(written.size()), 5000);
  } catch (const Error& error) {
    session_.report(problemsText(error.problems()));
  }
}

void MainWindow::showPalette() { runCommand(*this, commandsOf(*menuBar())); }

void MainWindow::showKeys() {
  QString rows;
  for (const QAction* action : commandsOf(*menuBar())) {
    if (action->shortcut().isEmpty()) continue;
    rows += QString("<tr><td><b>%1</b>&nbsp;&nbsp;</td><td>%2</td></tr>")
                .arg(action->shortcut().toString(QKeySequence::NativeText), nameOf(*action));
  }
  rows +=
      "<tr><td><b>Ctrl+F</b></td><td>Filter the plans or samples</td></tr>"
      "<tr><td><b>arrows, + -, Home</b>&nbsp;&nbsp;</td><td>In a chart: move, zoom, fit</td>"
      "</tr>"
      "<tr><td><b>W S A D, F</b></td><td>In the timeline, over time: zoom, move, fit what is "
      "chosen</td></tr>"
      "<tr><td><b>. , N Enter</b></td><td>There: next and previous span, next found, fold</td>"
      "</tr>";
  QMessageBox box(QMessageBox::NoIcon, "Keys", "<table>" + rows + "</table>", QMessageBox::Close,
                  this);
  box.exec();
}

}  // namespace tessera::gui
