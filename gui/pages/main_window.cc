// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/main_window.h"

#include <QActionGroup>
#include <QApplication>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QMenuBar>
#include <QScopedValueRollback>
#include <QStatusBar>
#include <QVBoxLayout>
#include <utility>

#include "gui/document/run_folder.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/explore/why_not_dialog.h"
#include "gui/layout/kept_layout.h"
#include "gui/pages/command_palette.h"
#include "gui/pages/dropped_files.h"
#include "gui/pages/export_job.h"
#include "gui/pages/export_views.h"
#include "gui/remote/remote_runs.h"
#include "gui/report/report.h"
#include "gui/translations/language.h"
#include "gui/views/message_bar.h"
#include "gui/views/save_file.h"

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
      pages_(new QTabWidget),
      work_(new WorkStatus(backgroundWork())) {
  setWindowTitle("Tessera");
  pages_->addTab(explore_, Words::tr("Explore"));
  pages_->addTab(understand_, Words::tr("Understand"));
  pages_->addTab(run_, Words::tr("Run"));
  setCentralWidget(pages_);
  resize(kUsualSize);
  if (!memory_.empty()) {
    Problems problems;
    workspace_ = kept_ = read_workspace(memory_, problems);
    if (!problems.empty()) session_.report(problemsText(problems));
  }
  addFileActions();
  addEditActions();
  QMenu* run = menuBar()->addMenu(Words::tr("&Run"));
  run->addActions(run_->controls());
  run->addAction(run_->quickstart());
  addViewActions();
  remembering_.setSingleShot(true);
  remembering_.setInterval(kRememberMs);
  connect(&remembering_, &QTimer::timeout, this, &MainWindow::rememberNow);
  connect(run_, &RunPage::openRequested, this, &MainWindow::chooseRun);
  connect(run_, &RunPage::againRequested, this, &MainWindow::openLiveRun);
  for (const QString& place : workspace_.recent_runs) {
    if (!is_remote(place.toStdString()) && !is_run_there(place.toStdString())) continue;
    run_->offer(place);
    break;
  }
  connect(run_, &RunPage::remoteRequested, this, [this] { chooseRemote({}); });
  connect(run_, &RunPage::asked, this, [this] { pages_->setCurrentWidget(run_); });
  connect(run_, &RunPage::compareRequested, this, &MainWindow::chooseOtherRun);
  connect(run_, &RunPage::startedIn, this,
          [this](const QString& folder) { followRun(folder, true); });
  hearWork();
  connect(session_.trace(), &OpenedTrace::refused, this, &MainWindow::tell);
  connect(&session_, &Session::documentChanged, this, &MainWindow::documentChanged);
  connect(session_.run(), &RunFollower::folderChanged, this, &MainWindow::documentChanged);
  connect(session_.run(), &RunFollower::othersChanged, this, &MainWindow::documentChanged);
  connect(session_.pinned(), &QAbstractItemModel::modelReset, this, &MainWindow::documentChanged);
  // Queued: it may be a widget that is just going.
  const auto queued = Qt::QueuedConnection;
  connect(qApp, &QApplication::focusChanged, this, &MainWindow::allowViewExport, queued);
  for (const QTabWidget* tabs : findChildren<QTabWidget*>()) {
    connect(tabs, &QTabWidget::currentChanged, this, &MainWindow::allowViewExport, queued);
  }
  hearForm();
  documentChanged();
  allowViewExport();
  takeDroppedFiles(*this);
  restore(*this, workspace_.layout);
  restoreMetrics();
}

// No command is of a question that the form does not show any more: what was changed last is asked
// before a key's command is done.
void MainWindow::hearForm() {
  RequestForm* const form = explore_->form();
  connect(form, &RequestForm::edited, this, &MainWindow::documentChanged);
  connect(form, &RequestForm::queryChanged, this, &MainWindow::documentChanged);
  connect(form, &RequestForm::sliderMoved, this, &MainWindow::documentChanged);
  for (QAction* action : commandsOf(*menuBar())) action->installEventFilter(this);
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Shortcut) explore_->form()->settle();
  return QMainWindow::eventFilter(watched, event);
}

void MainWindow::addRecent(QMenu* menu, const QStringList& paths,
                           bool (MainWindow::*open)(const QString&)) {
  menu->clear();
  for (const QString& path : paths) {
    menu->addAction(path, this, [this, path, open] {
      if ((this->*open)(path) && open == &MainWindow::openPlan) pages_->setCurrentWidget(explore_);
    });
  }
  if (paths.isEmpty()) menu->addAction(Words::tr("none so far"))->setEnabled(false);
}

void MainWindow::addFileActions() {
  QMenu* file = menuBar()->addMenu(Words::tr("&File"));
  file->addAction(Words::tr("&Open plan..."), QKeySequence::Open, this, &MainWindow::choosePlan);
  QMenu* plans = file->addMenu(Words::tr("Recent &plans"));
  connect(plans, &QMenu::aboutToShow, this,
          [this, plans] { addRecent(plans, workspace_.recent_plans, &MainWindow::openPlan); });
  file->addAction(Words::tr("&Import a script of verl, Megatron, vLLM..."),
                  QKeySequence("Ctrl+Alt+I"), this, &MainWindow::chooseImport);
  file->addAction(Words::tr("Open t&race..."), QKeySequence("Ctrl+Alt+T"), this,
                  &MainWindow::chooseTrace);
  save_ = file->addAction(Words::tr("&Save plan"), QKeySequence::Save, this, &MainWindow::save);
  save_as_ = file->addAction(Words::tr("Save plan &as..."), QKeySequence("Ctrl+Shift+S"), this,
                             &MainWindow::chooseWhereToSave);
  file->addSeparator();
  addProjectActions(file);
  file->addSeparator();
  addRunActions(file);
  file->addSeparator();
  job_ = file->addAction(Words::tr("Export &job for verl, Megatron, vLLM, Slurm..."),
                         QKeySequence("Ctrl+J"), this, &MainWindow::chooseJob);
  file->addAction(Words::tr("&Export views..."), QKeySequence("Ctrl+E"), this,
                  &MainWindow::chooseExport);
  one_view_ = file->addAction(Words::tr("Export t&his view..."), QKeySequence("Ctrl+Alt+E"), this,
                              &MainWindow::exportOneView);
  report_ = file->addAction(Words::tr("Save repor&t..."), QKeySequence("Ctrl+Shift+E"), this,
                            [this] { chooseReport(*this); });
  file->addSeparator();
  file->addAction(Words::tr("&Quit"), QKeySequence("Ctrl+Q"), this, &QWidget::close);
}

void MainWindow::addProjectActions(QMenu* file) {
  file->addAction(Words::tr("Open pro&ject..."), QKeySequence("Ctrl+Alt+O"), this,
                  &MainWindow::chooseProject);
  QMenu* recent = file->addMenu(Words::tr("Recent projec&ts"));
  connect(recent, &QMenu::aboutToShow, this, [this, recent] {
    addRecent(recent, workspace_.recent_projects, &MainWindow::changeProject);
  });
  file->addAction(Words::tr("Sa&ve project"), QKeySequence("Ctrl+Alt+S"), this,
                  &MainWindow::keepProject);
  file->addAction(Words::tr("Save project as..."), QKeySequence("Ctrl+Alt+Shift+S"), this,
                  &MainWindow::chooseWhereToKeepProject);
}

void MainWindow::addEditActions() {
  QMenu* edit = menuBar()->addMenu(Words::tr("&Edit"));
  undo_ = edit->addAction(Words::tr("&Undo"), QKeySequence::Undo, &session_, &Session::undo);
  redo_ = edit->addAction(Words::tr("&Redo"), QKeySequence::Redo, &session_, &Session::redo);
  edit->addSeparator();
  edit->addAction(Words::tr("Plan &again"), QKeySequence("F5"), &session_, &Session::askAgain);
  cancel_ = edit->addAction(Words::tr("&Cancel what is worked out"), QKeySequence("Esc"), this,
                            &MainWindow::cancelWork);
  why_not_ = edit->addAction(Words::tr("&Why not another choice..."), QKeySequence("Ctrl+Alt+W"),
                             this, &MainWindow::askWhyNot);
  pin_ = edit->addAction(Words::tr("&Pin this plan"), QKeySequence("Ctrl+D"), &session_,
                         &Session::pin);
}

// What is shown already keeps its language.
void MainWindow::addLanguages(QMenu* view) {
  QMenu* menu = view->addMenu(Words::tr("&Language"));
  auto* one = new QActionGroup(menu);
  const auto add = [&](const QString& name, const QString& language) {
    QAction* action = menu->addAction(name);
    action->setShortcut(QKeySequence(QString("Ctrl+Alt+%1").arg(menu->actions().size())));
    action->setCheckable(true);
    action->setChecked(language == workspace_.language);
    one->addAction(action);
    connect(action, &QAction::triggered, this, [this, language] {
      workspace_.language = language;
      rememberSoon();
      statusBar()->showMessage(Words::tr("The language changes when the window is opened again."),
                               5000);
    });
  };
  add(Words::tr("As the system"), {});
  for (const QString& language : languages()) add(nameOfLanguage(language), language);
}

// Every tab of every page, by its number in the list.
void MainWindow::addParts(QMenu* menu) {
  for (int page = 0; page < pages_->count(); ++page) {
    for (QTabWidget* tabs : pages_->widget(page)->findChildren<QTabWidget*>()) {
      for (int tab = 0; tab < tabs->count(); ++tab) {
        const int number = static_cast<int>(menu->actions().size()) + 1;
        const QKeySequence keys(QString("Ctrl+G, %1").arg(QString::number(number, 36).toUpper()));
        menu->addAction(tabs->tabText(tab), keys, this, [this, page, tabs, tab] {
          pages_->setCurrentIndex(page);
          tabs->setCurrentIndex(tab);
          tabs->tabBar()->setFocus();
          if (pages_->currentWidget() == understand_) understand_->givePictureTheKeys();
        });
      }
    }
  }
}

void MainWindow::addViewActions() {
  QMenu* view = menuBar()->addMenu(Words::tr("&View"));
  for (int page = 0; page < pages_->count(); ++page) {
    view->addAction(pages_->tabText(page), QKeySequence(QString("Ctrl+%1").arg(page + 1)), this,
                    [this, page] { pages_->setCurrentIndex(page); });
  }
  addParts(view->addMenu(Words::tr("&Go to")));
  view->addAction(Words::tr("&Question"), QKeySequence("Ctrl+L"), this, [this] {
    pages_->setCurrentWidget(explore_);
    explore_->giveQuestionTheKeys();
  });
  view->addSeparator();
  view->addAction(Words::tr("&Light or dark"), QKeySequence("Ctrl+T"), this, [this] {
    workspace_.dark = themeOf(QApplication::palette()) != Theme::dark;
    setTheme(workspace_.dark ? Theme::dark : Theme::light);
    rememberSoon();
  });
  addLanguages(view);
  QMenu* help = menuBar()->addMenu(Words::tr("&Help"));
  help->addAction(Words::tr("&Do anything..."), QKeySequence("Ctrl+P"), this,
                  &MainWindow::showPalette);
  help->addAction(Words::tr("&Keys"), QKeySequence("?"), this, &MainWindow::showKeys);
}

void MainWindow::setTheme(Theme theme) {
  QApplication::setPalette(paletteOf(theme));
  for (const char* field : {"QLineEdit", "QAbstractSpinBox", "QComboBox"}) {
    QApplication::setPalette(fieldPaletteOf(theme), field);
  }
  for (MessageBar* bar : findChildren<MessageBar*>()) bar->colour();
}

void MainWindow::documentChanged() {
  const Document& document = session_.document();
  const bool settled = explore_->form()->isSettled();
  const QString no_plan = document.planning || !settled ? Words::tr("the question is being planned")
                                                        : Words::tr("no plan answers the question");
  for (QAction* action : {save_, save_as_, pin_, job_, why_not_}) {
    allow(*action, document.valid() && settled, no_plan);
  }
  allow(*report_, has_report(session_), no_plan);
  goOnWithJob();
  allow(*undo_, session_.canUndo(), Words::tr("nothing was changed"));
  allow(*redo_, session_.canRedo(), Words::tr("nothing was undone"));
  allow(*cancel_, document.planning || work_->isWaiting(), Words::tr("nothing is worked out"));
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

// Events go on meanwhile: a second one would move the pages under the first.
void MainWindow::chooseExport() {
  if (exporting_) return;
  const QScopedValueRollback<bool> once(exporting_, true);
  tessera::gui::chooseExport(*this);
}

void MainWindow::chooseJob() {
  ExportJob job(session_.document().plan, this);
  job.prefer(std::exchange(job_target_, {}));
  if (job.exec() != QDialog::Accepted) return planForJob(job.engineWanted(), job.target());
  const QString folder = QFileInfo(job.folder()).absoluteFilePath();
  statusBar()->showMessage(Words::tr("Saved %1").arg(folder), 5000);
}

// The same question for an engine that the job's target runs; its plan is then exported.
void MainWindow::planForJob(const QString& engine, const QString& target) {
  if (engine.isEmpty()) return;
  PlanQuery question = session_.document().question;
  question.engine = engine.toStdString();
  job_question_ = question;
  job_target_ = target;
  pages_->setCurrentWidget(explore_);
  session_.ask(question);
}

// Where no plan answers, the line above the pictures says why; where another question was asked
// meanwhile, nothing is exported.
void MainWindow::goOnWithJob() {
  const Document& document = session_.document();
  const bool asked = document.question == job_question_;
  if (!job_question_ || (document.planning && asked)) return;
  job_question_.reset();
  if (!asked || !document.valid()) {
    job_target_.clear();
  } else {
    QMetaObject::invokeMethod(this, &MainWindow::chooseJob, Qt::QueuedConnection);
  }
}

void MainWindow::askWhyNot() {
  WhyNotDialog dialog(session_.document().plan, *session_.document().answered, why_not_searches_,
                      why_not_checks_, this);
  if (dialog.exec() != QDialog::Accepted || !dialog.choice()) return;
  pages_->setCurrentWidget(explore_);
  session_.ask(*dialog.choice());
}

void MainWindow::showPalette() { runCommand(*this, commandsOf(*menuBar())); }

void MainWindow::showKeys() {
  QStringList all;
  // Rows of one height, in which letters of every font stand on one line.
  const QString cell = QString(
                           "<td><p style='margin: 0; line-height: %1; "
                           "-qt-line-height-type: fixed'>")
                           .arg(fontMetrics().height() * 6 / 5);
  const auto add = [&](const QString& keys, const QString& what) {
    all << QString("%1<b>%2</b>&nbsp;&nbsp;</p></td>%1%3&nbsp;&nbsp;&nbsp;&nbsp;</p></td>")
               .arg(cell, QString(keys).replace(' ', QChar::Nbsp),
                    what.toHtmlEscaped().replace(' ', QChar::Nbsp));  // a line each
  };
  for (const QAction* action : commandsOf(*menuBar())) {
    if (action->shortcut().isEmpty()) continue;
    add(action->shortcut().toString(QKeySequence::NativeText), nameOf(*action));
  }
  add("Ctrl+F", Words::tr("Filter the plans, metrics or samples"));
  add(Words::tr("arrows, + -, Home"), Words::tr("In a chart: move, zoom, fit"));
  add("C", Words::tr("In the mesh: other colours"));
  add("W S A D, F", Words::tr("In the timeline, over time: zoom, move, fit what is chosen"));
  add(". , N Enter", Words::tr("There: next and previous span, next found, fold"));
  QString rows;  // two columns: the list is longer than a small screen
  const qsizetype half = (all.size() + 1) / 2;
  for (qsizetype i = 0; i < half; ++i) rows += "<tr>" + all[i] + all.value(half + i) + "</tr>";
  QDialog dialog(this);
  dialog.setWindowTitle(Words::tr("Keys"));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
  auto* layout = new QVBoxLayout(&dialog);
  layout->addWidget(new QLabel("<table>" + rows + "</table>"));
  layout->addWidget(buttons);
  dialog.exec();
}

}  // namespace tessera::gui
