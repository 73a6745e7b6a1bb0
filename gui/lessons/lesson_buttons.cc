// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/lesson_buttons.h"

#include <QHBoxLayout>

#include "gui/document/words.h"
#include "gui/lessons/advice_dialog.h"
#include "gui/lessons/lesson_dialog.h"
#include "planner/plan/plan.h"

namespace tessera::gui {

LessonButtons::LessonButtons(RunFollower* run)
    : run_(run),
      learn_(new QPushButton(Words::tr("&Learn"))),
      advise_(new QPushButton(Words::tr("&Advise..."))) {
  learn_->setToolTip(Words::tr("Refit the constants from what this run measured (tessera learn)"));
  advise_->setToolTip(Words::tr("What to change about this run (tessera advise)"));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(learn_);
  layout->addWidget(advise_);
  connect(learn_, &QPushButton::clicked, this, &LessonButtons::learn);
  connect(advise_, &QPushButton::clicked, this, &LessonButtons::advise);
  connect(run, &RunFollower::folderChanged, this, &LessonButtons::cancel);
  connect(run, &RunFollower::polled, this, &LessonButtons::allow);
  allow();
}

void LessonButtons::allow() {
  const bool can = run_->plan() != nullptr && !run_->steps()->steps().empty() && !isBusy();
  learn_->setEnabled(can);
  advise_->setEnabled(can);
}

void LessonButtons::cancel() {
  lesson_.cancel();
  allow();
  emit changed();
}

// Of the run's own plan, with what has been measured so far.
void LessonButtons::learn() {
  lesson_.start(
      [folder = run_->folder(), plan = *run_->plan()] { return learned_from(folder, plan); },
      [this](const Lesson& lesson) {
        if (!isTold(lesson)) return;
        openLesson(*this, Words::tr("Learned from this run"), lesson,
                   [this](const QString& problem) { emit refused(problem); });
      });
  allow();
  emit changed();
}

void LessonButtons::advise() {
  lesson_.start(
      [folder = run_->folder(), plan = *run_->plan()] { return advice_for(folder, plan); },
      [this](const Lesson& lesson) {
        if (!isTold(lesson)) return;
        auto* dialog = new AdviceDialog(
            lesson, [this](const PlanQuery& question) { emit planWanted(question); }, this);
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->open();
      });
  allow();
  emit changed();
}

bool LessonButtons::isTold(const Lesson& lesson) {
  allow();
  emit changed();
  if (!lesson.problem.isEmpty()) emit refused(lesson.problem);
  return lesson.problem.isEmpty();
}

}  // namespace tessera::gui
