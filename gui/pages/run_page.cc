// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/run_page.h"

#include <QGridLayout>
#include <QMessageBox>
#include <QSplitter>
#include <QVBoxLayout>

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
      message_(new MessageBar("What is wrong with the run's files")),
      stop_(new QPushButton("&Stop the run")) {
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(header());
  layout->addWidget(state_);
  layout->addWidget(message_);
  auto* split = new QSplitter;
  split->addWidget(charts());
  split->addWidget(tables());
  split->setSizes({720, 560});
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
  layout->addWidget(open);
  layout->addWidget(stop_);
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

void RunPage::askToStop() {
  const auto answer = QMessageBox::question(
      this, "Stop the run", "Ask all ranks to end after the phase that they are in?",
      QMessageBox::Yes | QMessageBox::No, QMessageBox::No);
  if (answer == QMessageBox::Yes) session_.run()->requestStop();
  showState();
}

}  // namespace tessera::gui
