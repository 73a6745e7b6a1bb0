// SPDX-License-Identifier: GPL-3.0-or-later
// What the window works out in the background, and how the wait for it ends.
#include <QFileInfo>
#include <QStatusBar>

#include "gui/document/words.h"
#include "gui/pages/main_window.h"

namespace tessera::gui {

std::vector<BackgroundWork> MainWindow::backgroundWork() {
  const auto of_plan = [](const QString& name, PlanWatch* job) {
    return BackgroundWork{name, [job] { return job->isBusy(); }, [job] { job->cancel(); },
                          [job] { return job->isCancelled(); }, [job] { job->goOn(); }};
  };
  const auto never = [] { return false; };
  OpenedTrace* const trace = session_.trace();
  LessonButtons* const lessons = run_->lessons();
  return {of_plan(Words::tr("Simulating the step"), session_.timeline()),
          of_plan(Words::tr("Working out the reshard"), session_.reshard()),
          of_plan(Words::tr("Counting the memory of every rank"), session_.peaks()),
          {Words::tr("Looking for the best plans on fewer GPUs"),
           [this] { return session_.front().isBusy(); }, [this] { session_.cancelFront(); },
           [this] { return session_.front().isCancelled(); }, [this] { session_.goOnWithFront(); }},
          {Words::tr("Reading the trace"),
           [trace] { return trace->isBusy(); },
           [trace] { trace->cancel(); },
           never,
           {}},
          {Words::tr("Learning from the run"),
           [lessons] { return lessons->isBusy(); },
           [lessons] { lessons->cancel(); },
           never,
           {}},
          {Words::tr("Writing a file"),
           [this] { return writing_.isBusy(); },
           [this] { writing_.cancel(); },
           never,
           {},
           [this] { return writing_.progress(); }}};
}

void MainWindow::hearWork() {
  statusBar()->addPermanentWidget(work_);
  for (const PlanWatch* job :
       {static_cast<PlanWatch*>(session_.timeline()), static_cast<PlanWatch*>(session_.reshard()),
        static_cast<PlanWatch*>(session_.peaks())}) {
    connect(job, &PlanWatch::changed, work_, &WorkStatus::look);
  }
  connect(&session_, &Session::frontChanged, work_, &WorkStatus::look);
  connect(session_.trace(), &OpenedTrace::changed, work_, &WorkStatus::look);
  connect(run_->lessons(), &LessonButtons::changed, work_, &WorkStatus::look);
  connect(&writing_, &FileWriting::changed, work_, &WorkStatus::look);
  connect(&writing_, &FileWriting::refused, this, &MainWindow::tellHere);
  connect(&writing_, &FileWriting::written, this, [this](const QString& file) {
    if (!exporting_) {
      statusBar()->showMessage(Words::tr("Saved %1").arg(QFileInfo(file).absoluteFilePath()), 5000);
    }
  });
  connect(work_, &WorkStatus::changed, this, &MainWindow::documentChanged);
}

// What is planned first: all else is of the plan that was there before.
void MainWindow::cancelWork() {
  session_.document().planning ? session_.cancel() : work_->cancel();
}

}  // namespace tessera::gui
