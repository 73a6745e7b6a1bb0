// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/run_page.h"

#include <QFileDialog>
#include <QGridLayout>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "gui/control/run_log.h"
#include "gui/document/headline.h"
#include "gui/document/run_folder.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/layout/low_room.h"
#include "gui/pages/command_palette.h"
#include "gui/remote/remote_runs.h"
#include "gui/run_views/chart_grid.h"
#include "gui/run_views/step_chart.h"
#include "gui/views/view.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

constexpr int kLogLines = 8;  // that stand behind the state

// False of a run of another program, which has measured steps and nothing else.
bool hasRanks(RunFollower& run) {
  return run.ranks()->rowCount() > 0 || run.steps()->rowCount() == 0;
}

QStringList withoutReshard(const RunModel& steps) {
  QStringList names;
  if (!steps.has("reshard/gbps")) names << "reshard_rate";
  if (!steps.has("reshard/bytes")) names << "reshard_bytes";
  return names;
}

}  // namespace

RunPage::RunPage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      body_(new QStackedWidget),
      folder_(new ElidedLabel(Words::tr("No run is open"), Qt::ElideLeft)),
      state_(new MessageBar(Words::tr("State of the run"))),
      rules_(new MessageBar(Words::tr("Rules that are violated"))),
      gaps_(new MessageBar(Words::tr("Largest difference from the prediction"))),
      message_(new MessageBar(Words::tr("What is wrong with the run's files"))),
      start_(control(Words::tr("Star&t a run..."), "F6", &RunPage::askToStart)),
      pause_(control(Words::tr("&Pause the run"), "F7", &RunPage::pause)),
      go_(control(Words::tr("&Go on with the run"), "F8", &RunPage::goOn)),
      stop_(control(Words::tr("&Stop the run"), "F9", &RunPage::askToStop)),
      resume_(control(Words::tr("Resu&me the run..."), "Shift+F8", &RunPage::askToResume)),
      quickstart_(control({}, "Shift+F6", &RunPage::askForQuickstart)),
      lessons_(new LessonButtons(session.run())) {
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(header());
  layout->addWidget(state_);
  layout->addWidget(message_);
  layout->addWidget(rules_);
  layout->addWidget(gaps_);
  no_run_ = noRun();
  body_->addWidget(no_run_);
  body_->addWidget(views());
  layout->addWidget(new LowRoom(body_), 1);
  hear();
  showState();
}

NoRun* RunPage::noRun() {
  auto* panel = new NoRun(start_, quickstart_);
  connect(panel, &NoRun::openRequested, this, &RunPage::openRequested);
  connect(panel, &NoRun::remoteRequested, this, &RunPage::remoteRequested);
  connect(panel, &NoRun::againRequested, this, &RunPage::againRequested);
  return panel;
}

QWidget* RunPage::views() {
  auto* split = new QSplitter;
  split->setObjectName("run_figures");
  split->addWidget(charts());
  split->addWidget(tables());
  split->setSizes({640, 640});
  auto* tabs = new QTabWidget;
  tabs->setObjectName("run_tabs");
  tabs->setDocumentMode(true);
  tabs->setAccessibleName(Words::tr("Views of the run"));
  tabs->addTab(split, Words::tr("Figures"));
  for (const ViewKind& kind : viewsOf(Place::run_tabs)) {
    tabs->addTab(makeView(kind, session_), titleOf(kind));
  }
  return tabs;
}

void RunPage::hear() {
  RunFollower* run = session_.run();
  connect(run, &RunFollower::folderChanged, this, [this] {
    message_->say({}, Tone::calm);
    showState();
  });
  connect(run, &RunFollower::polled, this, &RunPage::showState);
  connect(run, &RunFollower::problemsFound, this,
          [this](const QString& text) { message_->say(text, Tone::bad); });
  connect(run, &RunFollower::problemsGone, this, [this](const QString& text) {
    // Another message came after it otherwise.
    if (message_->text() == text.section('\n', 0, 0)) message_->say({}, Tone::calm);
  });
  connect(session_.remote(), &RemoteCopy::contacted, this, &RunPage::showRemote);
  connect(session_.remote(), &RemoteCopy::told, this, [this](const QString& fault) {
    not_told_ = fault.isEmpty() ? QString() : Words::tr("The run was not told: %1").arg(fault);
    if (!fault.isEmpty()) message_->say(not_told_, Tone::bad);
    showControls();
  });
  connect(run, &RunFollower::told, this, &RunPage::showControls);
  connect(&session_, &Session::documentChanged, this, [this] {
    showGaps();
    showControls();
  });
  hearStarting();
  connect(lessons_, &LessonButtons::refused, this,
          [this](const QString& why) { message_->say(why, Tone::bad); });
  connect(lessons_, &LessonButtons::planWanted, this, &RunPage::planWanted);
  connect(run->rules(), &QAbstractItemModel::modelReset, this, [this, run] {
    const QString banner = run->rules()->banner();
    rules_->say(banner, Tone::warning, banner.isEmpty() ? QString() : run->rules()->describe());
  });
  connect(run->comparison(), &QAbstractItemModel::modelReset, this, &RunPage::showGaps);
  connect(gaps_, &MessageBar::offerTaken, this, &RunPage::takePlan);
}

// Of a run whose folder has no plan it is said what it is held against, or what it could be.
void RunPage::showGaps() {
  const RunFollower& run = *session_.run();
  const QStringList gaps = session_.run()->comparison()->gaps();
  // A gap from what may be wrong by factors says nothing of the run.
  QString first = gaps.value(0);
  if (run.roughTimes() == RoughTimes::all) {
    first = Words::tr(
        "Not calibrated: predicted times are rough, and no rule judges by them. tessera "
        "calibrate measures this machine.");
  } else if (run.roughTimes() == RoughTimes::other_device) {
    first =
        Words::tr("Predicted times say nothing of this run: %1").arg(run.whyTimesAreNotJudged());
  }
  if (gaps.isEmpty()) first.clear();
  const QString whose = run.whoseTimes();
  QString line = whose.isEmpty() || first.isEmpty() ? whose + first : whose + ": " + first;
  if (!whose.isEmpty()) line[0] = line[0].toUpper();
  std::vector<std::pair<QString, QString>> offers;
  if (run.lacksPlan()) {
    const QString why = Words::tr("Only who started the run knows what plan it ran");
    offers.emplace_back(Words::tr("Choose the plan that ran..."), why);
    if (session_.document().valid()) {
      offers.emplace_back(
          Words::tr("It ran the plan on Explore: %1").arg(planTitle(*session_.plan())), why);
    }
  }
  gaps_->say(line, Tone::calm, gaps.join("\n"));
  gaps_->offerAll(offers);
}

void RunPage::takePlan(int offer) {
  if (offer > 0) return session_.run()->choosePlan(session_.plan());
  const QString file = QFileDialog::getOpenFileName(this, Words::tr("The plan that ran"), {},
                                                    Words::tr("Plans (*.json)"));
  if (file.isEmpty()) return;
  Problems problems;
  auto plan = read_plan(file.toStdString(), problems);
  if (!plan) return message_->say(problemsText(problems), Tone::bad);
  session_.run()->choosePlan(std::make_shared<const Plan>(*std::move(plan)));
}

void RunPage::hearStarting() {
  connect(&starting_, &RunStart::started, this, [this](const QString& folder) {
    if (typed_.folder == folder) typed_.folder.clear();
    showControls();
    if (session_.run()->folder() != run_folder(folder.toStdString())) return emit startedIn(folder);
    message_->say({}, Tone::calm);  // a run that goes on is followed already
  });
  const auto refuse = [this](const QString& why) {
    showControls();
    message_->say(Words::tr("The run did not start: %1").arg(why), Tone::bad);
  };
  connect(&starting_, &RunStart::refused, this, refuse);
  connect(&preparing_, &Quickstart::doing, this, [this](const QString& what) {
    showControls();
    message_->say(what, Tone::calm);
  });
  connect(&preparing_, &Quickstart::prepared, this, &RunPage::start);
  connect(&preparing_, &Quickstart::refused, this, refuse);
}

QAction* RunPage::control(const QString& text, const QString& key, void (RunPage::*does)()) {
  auto* action = new QAction(text, this);
  action->setShortcut(QKeySequence(key));
  connect(action, &QAction::triggered, this, does);
  return action;
}

// Says and allows what the action does; there while it can be done.
QPushButton* RunPage::buttonOf(QAction* action) {
  auto* button = new QPushButton;
  const auto show = [=] {
    button->setText(action->text());
    button->setToolTip(action->toolTip() + " (" + action->shortcut().toString() + ")");
    button->setEnabled(action->isEnabled());
    button->setVisible(action->isVisible());
  };
  connect(action, &QAction::changed, button, show);
  connect(button, &QPushButton::clicked, action, &QAction::trigger);
  show();
  return button;
}

QWidget* RunPage::header() {
  auto* bar = new QWidget;
  auto* layout = new QHBoxLayout(bar);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* open = new QPushButton(Words::tr("&Open run..."));
  connect(open, &QPushButton::clicked, this, &RunPage::openRequested);
  folder_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  QFont bold = font();
  bold.setBold(true);
  folder_->setFont(bold);
  layout->addWidget(folder_, 1);
  auto* beside = new QPushButton(Words::tr("&Beside it..."));
  beside->setToolTip(Words::tr("Draw another run beside this one"));
  connect(beside, &QPushButton::clicked, this, &RunPage::compareRequested);
  const auto allow = [this, beside] { beside->setEnabled(!session_.run()->folder().empty()); };
  connect(session_.run(), &RunFollower::folderChanged, beside, allow);
  allow();
  layout->addWidget(open);
  layout->addWidget(beside);
  layout->addWidget(lessons_);
  for (QAction* action : controls()) layout->addWidget(buttonOf(action));
  return bar;
}

QWidget* RunPage::charts() {
  auto* panel = new ChartGrid;
  for (const ViewKind& kind : viewsOf(Place::charts)) {
    panel->add(makeTitledView(kind, session_), kind.name, kind.stretch);
  }
  RunFollower* const run = session_.run();
  connect(run, &RunFollower::polled, panel, [panel, run] {
    panel->leaveOut(hasRanks(*run) ? QStringList() : withoutReshard(*run->steps()));
  });
  const auto all = panel->findChildren<StepChart*>();
  for (StepChart* chart : all) {  // they point to the same step
    connect(chart, &StepChart::pointedTo, this, [all](std::optional<double> step) {
      for (StepChart* each : all) each->point(step);
    });
  }
  return panel;
}

QWidget* RunPage::tables() {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  for (const ViewKind& kind : viewsOf(Place::tables)) {
    QWidget* const view = makeTitledView(kind, session_);
    layout->addWidget(view, kind.stretch);
    if (QString(kind.name) != "ranks") continue;
    RunFollower* const run = session_.run();
    connect(run, &RunFollower::polled, view, [view, run] { view->setVisible(hasRanks(*run)); });
  }
  return panel;
}

void RunPage::showState() {
  RunFollower& run = *session_.run();
  showGaps();
  showControls();
  body_->setCurrentIndex(run.folder().empty() ? 0 : 1);
  if (run.folder().empty()) {
    folder_->setText(Words::tr("No run is open"));
    folder_->setToolTip({});
    return state_->say({}, Tone::calm);
  }
  const auto& steps = run.steps()->steps();
  const QString folder = QString::fromStdString(run.folder().string());
  const QString place = placeText(run.folder());
  folder_->setText(place + "  " + Words::tr("step %1").arg(steps.empty() ? 0 : steps.back()));
  folder_->setToolTip(folder);
  const RunSummary& summary = run.summary();
  state_->say(run.isLoading() ? Words::tr("reading the folder") : summary.text,
              toneOf(summary.state), lastLines(run.log(), kLogLines));
}

// A copy that is here says itself when it was reached last.
void RunPage::showRemote() {
  const RemoteNews& news = session_.remote()->news();
  const bool shown = news.folder == session_.run()->folder() && session_.run()->isCopy();
  const bool away = news.contact != Contact::reached;
  const bool back = std::exchange(away_, away) && !away;
  if (back && !not_told_.isEmpty() && message_->text() == not_told_) {
    message_->say({}, Tone::calm);  // nobody was there to hear it
  }
  if (news.contact == Contact::reached || shown) {
    // What is wrong with its files, and why it was not told something, stays.
    if (shown && message_->text() == unreached_) message_->say({}, Tone::calm);
    return;
  }
  unreached_ = QString("%1: %2").arg(toText(address_of(news.name)), news.fault);
  message_->say(unreached_, Tone::warning);
}

}  // namespace tessera::gui
