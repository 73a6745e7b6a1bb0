// SPDX-License-Identifier: GPL-3.0-or-later
// Learn and Advise: what the run that is followed teaches is worked out in the background, and
// opened when it is there. GUI thread.
#pragma once

#include <QPushButton>
#include <QWidget>
#include <filesystem>
#include <functional>
#include <stop_token>

#include "gui/document/plan_query.h"
#include "gui/lessons/run_lessons.h"
#include "gui/models/run_follower.h"
#include "gui/threads/newest.h"

namespace tessera::gui {

class LessonButtons : public QWidget {
  Q_OBJECT

 public:
  /// `run` outlives it.
  explicit LessonButtons(RunFollower* run);

  bool isBusy() const { return lesson_.isBusy(); }
  /// Ends what is still worked out.
  void cancel();

 signals:
  /// Work began or ended.
  void changed();
  /// Why there is no lesson, or why it was not saved.
  void refused(const QString& why);
  /// The plan of a change is wanted.
  void planWanted(const tessera::gui::PlanQuery& question);

 private:
  void learn();
  void advise();
  /// Works a lesson out from the run's own plan and what has been measured so far; what is wrong
  /// with it is told, and `open` gets one that has no fault.
  void start(Lesson (*lesson_of)(const std::filesystem::path& run, const Plan& plan,
                                 const std::stop_token& stop),
             std::function<void(const Lesson& lesson)> open);
  void allow();

  RunFollower* run_;
  QPushButton *learn_, *advise_;
  Newest<Lesson> lesson_{2};  // a new one does not wait for one that nobody hears
};

}  // namespace tessera::gui
