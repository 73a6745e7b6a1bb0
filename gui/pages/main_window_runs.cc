// SPDX-License-Identifier: GPL-3.0-or-later
// What the window does with runs: opens them here and on other hosts, draws them beside others.
#include <QFileDialog>
#include <QFileInfo>
#include <QStatusBar>

#include "gui/document/file_kind.h"
#include "gui/document/run_folder.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/pages/main_window.h"
#include "gui/remote/remote_runs.h"
#include "gui/run_views/remote_dialog.h"

namespace tessera::gui {

void MainWindow::addRunActions(QMenu* file) {
  file->addAction(Words::tr("Follow a &run..."), QKeySequence("Ctrl+R"), this,
                  &MainWindow::chooseRun);
  file->addAction(Words::tr("Follow a &log of verl..."), QKeySequence("Ctrl+Alt+L"), this,
                  &MainWindow::chooseLog);
  file->addAction(Words::tr("Open re&mote run..."), QKeySequence("Ctrl+Alt+R"), this,
                  [this] { chooseRemote({}); });
  file->addAction(Words::tr("Draw another run &beside it..."), QKeySequence("Ctrl+Shift+R"), this,
                  &MainWindow::chooseOtherRun);
  file->addAction(Words::tr("Only &one run"), QKeySequence("Ctrl+Shift+O"), &session_,
                  &Session::keepOneRun);
  QMenu* runs = file->addMenu(Words::tr("Recent r&uns"));
  connect(runs, &QMenu::aboutToShow, this,
          [this, runs] { addRecent(runs, workspace_.recent_runs, &MainWindow::openLiveRun); });
  connect(run_, &RunPage::planWanted, this, [this](const PlanQuery& question) {
    pages_->setCurrentWidget(explore_);
    session_.ask(question);
  });
  connect(session_.remote(), &RemoteCopy::contacted, this, &MainWindow::remoteContacted);
  connect(&session_, &Session::remoteWanted, this,
          [this](const RemoteName& name) { openRemote(name, tokenOf(name)); });
}

bool MainWindow::followRun(const QString& folder, bool live) {
  const std::filesystem::path run = folder.toStdString();
  if (!is_run_there(run)) {
    tell(noSuchFolder(folder));
    return false;
  }
  // A folder may be one whose run is still to begin.
  if (!QFileInfo(folder).isDir() && !isRun(folder)) return false;
  if (!session_.plan() && !session_.isBusy()) openPlanOf(folder);
  session_.run()->follow(run, live);
  return true;
}

bool MainWindow::openRun(const QString& folder, bool live) {
  if (!followRun(folder, live)) return false;
  pages_->setCurrentWidget(run_);
  return true;
}

void MainWindow::openPlanOf(const QString& run) {
  const QString plan = run + "/plan.json";
  if (QFileInfo::exists(plan)) openPlan(plan);
}

bool MainWindow::openLiveRun(const QString& place) {
  const auto name =
      is_remote(place.toStdString()) ? remote_name_from(place.toStdString()) : std::nullopt;
  return name ? openRemote(*name, tokenOf(*name)) : openRun(place, true);
}

std::string MainWindow::tokenOf(const RemoteName& name) const {
  const auto given = tokens_.find(name.port);
  return given != tokens_.end() ? given->second : token_of_environment();
}

bool MainWindow::openRemote(const RemoteName& name, const std::string& token) {
  if (token.empty()) {
    QMetaObject::invokeMethod(
        this, [this, name] { chooseRemote(name); }, Qt::QueuedConnection);
    return false;
  }
  session_.followRemote(name, token);
  statusBar()->showMessage(Words::tr("Asking %1").arg(toText(address_of(name))), 5000);
  pages_->setCurrentWidget(run_);
  return true;
}

// Which of several runs is meant only the user knows.
void MainWindow::remoteContacted() {
  const RemoteNews& news = session_.remote()->news();
  if (news.contact == Contact::wrong && news.name.run.empty()) {
    const RemoteName name = news.name;
    session_.remote()->end();
    chooseRemote(name);
    return;
  }
  if (news.contact == Contact::reached && !session_.plan()) {
    openPlanOf(QString::fromStdString(news.folder.string()));
  }
}

void MainWindow::chooseRemote(const RemoteName& name) {
  QString address = name.port > 0 ? toText(address_of(name)) : QString();
  if (!name.run.empty()) address += "/" + QString::fromStdString(name.run);
  RemoteDialog dialog(address, tokenOf(name), this);
  if (dialog.exec() != QDialog::Accepted) return;
  tokens_[dialog.name().port] = dialog.token();
  openRemote(dialog.name(), dialog.token());
}

// What is wrong with it is told.
bool MainWindow::isRun(const QString& folder) {
  Problems unheard;
  if (kind_of(folder.toStdString(), unheard) == FileKind::run) return true;
  tell((QFileInfo(folder).isDir()
            ? Words::tr("%1 is no run: it has neither metrics.jsonl nor ranks nor plan.json")
            : Words::tr("%1 is no log of a run: no step of metrics.jsonl or of verl's console is "
                        "in it so far"))
           .arg(folder));
  return false;
}

void MainWindow::chooseLog() {
  const QString file =
      QFileDialog::getOpenFileName(this, Words::tr("Follow a log"), {},
                                   Words::tr("Logs (*.log *.out *.txt *.jsonl);;All files (*)"));
  if (!file.isEmpty()) openRun(file);
}

void MainWindow::chooseRun() {
  const QString folder = QFileDialog::getExistingDirectory(this, Words::tr("Follow a run"));
  if (!folder.isEmpty() && isRun(folder))
    openRun(QString::fromStdString(run_of(folder.toStdString()).string()));
}

// Beside none there is nothing to draw: it is the first, then.
void MainWindow::chooseOtherRun() {
  if (session_.run()->folder().empty()) return chooseRun();
  const QString folder =
      QFileDialog::getExistingDirectory(this, Words::tr("Draw a run beside this one"));
  if (!folder.isEmpty() && isRun(folder)) session_.run()->addOther(run_of(folder.toStdString()));
}

}  // namespace tessera::gui
