// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/lesson_buttons.h"

#include <QHBoxLayout>
#include <utility>

#include "gui/document/words.h"
#include "gui/lessons/advice_dialog.h"
#include "gui/lessons/lesson_dialog.h"
#include "planner/plan/plan.h"

namespace tessera::gui {

LessonButtons::LessonButtons(RunFollower* run)
    : run_(run),
      learn_(new QPushButton(Words::tr("&Learn"))),
      advise_(new QPushButton(Words::tr("&Advise..."))) {
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
  const QString none = run_->lacksPlan() ? "\n" + run_->whoseTimes() : QString();
  learn_->setToolTip(Words::tr("Refit the constants from what this run measured (tessera learn)") +
                     none);
  advise_->setToolTip(Words::tr("What to change about this run (tessera advise)") + none);
}

void LessonButtons::cancel() {
  lesson_.cancel();
  allow();
  emit changed();
}

void LessonButtons::start(Lesson (*lesson_of)(const std::filesystem::path& run, const Plan& plan,
                                              const std::stop_token& stop),
                          std::function<void(const Lesson& lesson)> open) {
  lesson_.start([lesson_of, folder = run_->folder(), plan = *run_->plan()](
                    const std::stop_token& stop) { return lesson_of(folder, plan, stop); },
                [this, open = std::move(open)](const Lesson& lesson) {
                  allow();
                  emit changed();
                  lesson.problem.isEmpty() ? open(lesson) : emit refused(lesson.problem);
                });
  allow();
  emit changed();
}

void LessonButtons::learn() {
  start(learned_from, [this](const Lesson& lesson) {
    openLesson(*this, Words::tr("Learned from this run"), lesson,
               [this](const QString& problem) { emit refused(problem); });
  });
}

void LessonButtons::advise() {
  start(advice_for, [this](const Lesson& lesson) {
    auto* dialog = new AdviceDialog(
        lesson, [this](const PlanQuery& question) { emit planWanted(question); }, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->open();
  });
}

}  // namespace tessera::gui
