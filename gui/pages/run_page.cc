// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/run_page.h"

#include <QDialog>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFontDatabase>
#include <QGridLayout>
#include <QMessageBox>
#include <QSplitter>
#include <QVBoxLayout>

#include "gui/document/text.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

Tone toneOf(RunState state) {
  switch (state) {
    case RunState::lost:
    case RunState::failed:
      return Tone::bad;
    case RunState::stalled:
    case RunState::stopped:
    case RunState::unseen:
      return Tone::warning;
    case RunState::none:
    case RunState::loading:
    case RunState::running:
    case RunState::finished:
      break;
  }
  return Tone::calm;
}

}  // namespace

RunPage::RunPage(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      folder_(new QLabel("No run is open")),
      state_(new MessageBar("State of the run")),
      rules_(new MessageBar("Rules that are violated")),
      gaps_(new MessageBar("Largest difference from the prediction")),
      message_(new MessageBar("What is wrong with the run's files")),
      stop_(new QPushButton("&Stop the run")),
      learn_(new QPushButton("&Learn")),
      advise_(new QPushButton("&Advise...")) {
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(header());
  layout->addWidget(state_);
  layout->addWidget(message_);
  layout->addWidget(rules_);
  layout->addWidget(gaps_);
  auto* split = new QSplitter;
  split->addWidget(charts());
  split->addWidget(tables());
  split->setSizes({640, 640});
  layout->addWidget(split, 1);
  RunFollower* run = session.run();
  connect(run, &RunFollower::folderChanged, this, [this] {
    message_->say({}, Tone::calm);
    showState();
  });
  connect(run, &RunFollower::polled, this, &RunPage::showState);
  connect(run, &RunFollower::problemsFound, this,
          [this](const QString& text) { message_->say(text, Tone::bad); });
  connect(stop_, &QPushButton::clicked, this, &RunPage::askToStop);
  connect(learn_, &QPushButton::clicked, this, &RunPage::learn);
  connect(advise_, &QPushButton::clicked, this, &RunPage::advise);
  connect(run->rules(), &QAbstractItemModel::modelReset, this, [this, run] {
    const QString banner = run->rules()->banner();
    rules_->say(banner, Tone::warning, banner.isEmpty() ? QString() : run->rules()->describe());
  });
  connect(run->comparison(), &QAbstractItemModel::modelReset, this, [this, run] {
    const QStringList gaps = run->comparison()->gaps();
    gaps_->say(gaps.isEmpty() ? QString() : gaps.first(), Tone::calm, gaps.join("\n"));
  });
  showState();
}

QWidget* RunPage::header() {
  auto* bar = new QWidget;
  auto* layout = new QHBoxLayout(bar);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* open = new QPushButton("&Open run...");
  connect(open, &QPushButton::clicked, this, &RunPage::openRequested);
  folder_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  folder_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  layout->addWidget(folder_, 1);
  auto* beside = new QPushButton("&Beside it...");
  beside->setToolTip("Draw another run beside this one");
  connect(beside, &QPushButton::clicked, this, &RunPage::compareRequested);
  learn_->setToolTip("Refit the constants from what this run measured (tessera learn)");
  advise_->setToolTip("What to change about this run (tessera advise)");
  for (QPushButton* button : {open, beside, learn_, advise_, stop_}) layout->addWidget(button);
  return bar;
}

QWidget* RunPage::charts() {
  auto* panel = new QWidget;
  auto* grid = new QGridLayout(panel);
  grid->setContentsMargins(0, 0, 0, 0);
  int cell = 0;
  for (const ViewKind& kind : viewsOf(Place::charts)) {
    grid->addWidget(makeTitledView(kind, session_), cell / 2, cell % 2);
    ++cell;
  }
  return panel;
}

QWidget* RunPage::tables() {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  for (const ViewKind& kind : viewsOf(Place::tables)) {
    layout->addWidget(makeTitledView(kind, session_), kind.stretch);
  }
  return panel;
}

void RunPage::showState() {
  RunFollower& run = *session_.run();
  const int running = run.ranks()->running();
  const bool stopping = running > 0 && run.stopRequested();
  stop_->setEnabled(running > 0 && !stopping);
  stop_->setText(stopping ? "Stopping..." : "&Stop the run");
  const bool can_learn =
      run.plan() != nullptr && !run.steps()->steps().empty() && !lesson_.isBusy();
  learn_->setEnabled(can_learn);
  advise_->setEnabled(can_learn);
  if (run.folder().empty()) return;
  const auto& steps = run.steps()->steps();
  const QString folder = QString::fromStdString(run.folder().string());
  folder_->setText(QString("<b>%1</b>&nbsp;&nbsp; step %2")
                       .arg(folder.toHtmlEscaped())
                       .arg(steps.empty() ? 0 : steps.back()));
  folder_->setToolTip(folder);
  const RunSummary& summary = run.summary();
  state_->say(run.isLoading() ? QString("reading the folder") : summary.text,
              toneOf(summary.state));
}

// Of the run's own plan, with what has been measured so far.
void RunPage::learn() {
  const RunFollower& run = *session_.run();
  lesson_.start([folder = run.folder(), plan = *run.plan()] { return learned_from(folder, plan); },
                [this](const Lesson& lesson) { showLesson("Learned from this run", lesson); });
  showState();
}

void RunPage::advise() {
  const QString into = QFileDialog::getExistingDirectory(
      this, "Folder for the learned calibration.json and the run's plan.json");
  if (into.isEmpty()) return;
  const RunFollower& run = *session_.run();
  lesson_.start([folder = run.folder(), plan = *run.plan(),
                 into = into.toStdString()] { return advice_for(folder, plan, into); },
                [this](const Lesson& lesson) { showLesson("What to change", lesson); });
  showState();
}

void RunPage::showLesson(const QString& title, const Lesson& lesson) {
  showState();
  if (!lesson.problem.isEmpty()) {
    message_->say(lesson.problem, Tone::bad);
    return;
  }
  auto* dialog = new QDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(title);
  dialog->resize(900, 520);
  auto* text = new QPlainTextEdit(lesson.text);
  text->setReadOnly(true);
  text->setLineWrapMode(QPlainTextEdit::NoWrap);
  text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  text->setAccessibleName(title);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Close);
  buttons->button(QDialogButtonBox::Save)->setText("Save the calibration...");
  auto* layout = new QVBoxLayout(dialog);
  layout->addWidget(text);
  layout->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
  connect(buttons, &QDialogButtonBox::accepted, dialog, [this, dialog, lesson] {
    const QString file =
        QFileDialog::getSaveFileName(dialog, "Save the calibration", "calibration.json");
    if (file.isEmpty()) return;
    try {
      write_calibration(*lesson.learned, file.toStdString());
      dialog->accept();
    } catch (const Error& error) {
      message_->say(problemsText(error.problems()), Tone::bad);
    }
  });
  dialog->open();
}

void RunPage::askToStop() {
  const auto answer = QMessageBox::question(
      this, "Stop the run", "Ask all ranks to end after the phase that they are in?",
      QMessageBox::Yes | QMessageBox::No, QMessageBox::No);
  if (answer == QMessageBox::Yes) session_.run()->requestStop();
  showState();
}

}  // namespace tessera::gui
