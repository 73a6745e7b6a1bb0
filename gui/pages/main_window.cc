// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/main_window.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QMenuBar>
#include <QStatusBar>

#include "gui/pages/export_views.h"

namespace tessera::gui {

MainWindow::MainWindow(QWidget* parent)
    : QMainWindow(parent),
      explore_(new ExplorePage(session_)),
      run_(new RunPage(session_)),
      pages_(new QTabWidget) {
  setWindowTitle("Tessera");
  pages_->addTab(explore_, "Explore");
  pages_->addTab(run_, "Run");
  setCentralWidget(pages_);
  resize(1500, 980);
  addActions();
  connect(run_, &RunPage::openRequested, this, &MainWindow::chooseRun);
  connect(&session_, &Session::problemsFound, this, [this](const QString& text) {
    statusBar()->showMessage(text.section('\n', 0, 0), 10000);
  });
}

void MainWindow::addActions() {
  QMenu* file = menuBar()->addMenu("&File");
  file->addAction("&Open plan...", QKeySequence::Open, this, &MainWindow::choosePlan);
  file->addAction("&Save plan...", QKeySequence::Save, this, &MainWindow::chooseWhereToSave);
  file->addSeparator();
  file->addAction("Follow a &run...", QKeySequence("Ctrl+R"), this, &MainWindow::chooseRun);
  file->addSeparator();
  file->addAction("&Export views as PNG...", QKeySequence("Ctrl+E"), this,
                  &MainWindow::chooseExport);
  file->addSeparator();
  file->addAction("&Quit", QKeySequence::Quit, this, &QWidget::close);
  QMenu* view = menuBar()->addMenu("&View");
  for (int page = 0; page < pages_->count(); ++page) {
    view->addAction(pages_->tabText(page), QKeySequence(QString("Ctrl+%1").arg(page + 1)), this,
                    [this, page] { pages_->setCurrentIndex(page); });
  }
}

bool MainWindow::openPlan(const QString& file) {
  if (!session_.openPlan(file)) return false;
  setWindowTitle("Tessera - " + QFileInfo(file).fileName());
  statusBar()->showMessage("Opened " + file, 5000);
  return true;
}

bool MainWindow::openRun(const QString& folder, bool live) {
  if (!QFileInfo(folder).isDir()) {
    emit session_.problemsFound(folder + ": no such folder");
    return false;
  }
  const QString plan = folder + "/plan.json";
  if (!session_.plan() && QFileInfo::exists(plan)) openPlan(plan);
  session_.run()->follow(folder.toStdString(), live);
  pages_->setCurrentWidget(run_);
  return true;
}

void MainWindow::choosePlan() {
  const QString file = QFileDialog::getOpenFileName(this, "Open plan", {}, "Plans (*.json)");
  if (!file.isEmpty() && openPlan(file)) pages_->setCurrentWidget(explore_);
}

void MainWindow::chooseWhereToSave() {
  const QString file =
      QFileDialog::getSaveFileName(this, "Save plan", "plan.json", "Plans (*.json)");
  if (!file.isEmpty() && session_.savePlan(file)) statusBar()->showMessage("Saved " + file, 5000);
}

void MainWindow::chooseRun() {
  const QString folder = QFileDialog::getExistingDirectory(this, "Follow a run");
  if (!folder.isEmpty()) openRun(folder);
}

void MainWindow::chooseExport() {
  const QString folder = QFileDialog::getExistingDirectory(this, "Export views into");
  if (folder.isEmpty()) return;
  const QStringList written = exportViews(*this, folder);
  statusBar()->showMessage(QString("%1 pictures in %2").arg(written.size()).arg(folder), 5000);
}

}  // namespace tessera::gui
