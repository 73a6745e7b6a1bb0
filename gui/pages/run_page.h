// SPDX-License-Identifier: GPL-3.0-or-later
// Follows a run: its figures step by step, what its ranks do, prediction beside measurement. While
// none is open it says what can be done.
#pragma once

#include <QAction>
#include <QLabel>
#include <QPushButton>
#include <QStackedWidget>
#include <QWidget>

#include "gui/control/quickstart.h"
#include "gui/control/run_start.h"
#include "gui/lessons/lesson_buttons.h"
#include "gui/models/session.h"
#include "gui/run_views/no_run.h"
#include "gui/views/elided_label.h"
#include "gui/views/message_bar.h"

namespace tessera::gui {

class RunPage : public QWidget {
  Q_OBJECT

 public:
  explicit RunPage(Session& session, QWidget* parent = nullptr);

  /// Starting, pausing, going on, stopping, resuming; enabled where they can be done.
  QList<QAction*> controls() const { return {start_, pause_, go_, stop_, resume_}; }
  /// Starts a run of a tiny model that is made for it, or ends its preparation.
  QAction* quickstart() const { return quickstart_; }
  /// What the run that is followed teaches.
  LessonButtons* lessons() const { return lessons_; }
  /// While no run is open: the one that was followed last.
  void offer(const QString& place) { no_run_->offer(place); }

 signals:
  /// A run, or what comes before one, was asked for: this page tells how it goes on.
  void asked();
  /// A run that was asked for here has begun.
  void startedIn(const QString& folder);
  void openRequested();
  void againRequested(const QString& place);
  void remoteRequested();
  void compareRequested();
  /// The plan of a change that the run's advice names.
  void planWanted(const tessera::gui::PlanQuery& question);

 private:
  void hear();
  QWidget* header();
  NoRun* noRun();
  QWidget* views();
  QWidget* charts();
  QWidget* tables();
  QAction* control(const QString& text, const QString& key, void (RunPage::*does)());
  QPushButton* buttonOf(QAction* action);
  void showState();
  void showGaps();
  void takePlan(int offer);
  void showControls();
  QString whyNotTold(bool goes_on, bool stopping) const;
  QString whyNotResumedNow(const QString& starting) const;
  void showRemote();
  void hearStarting();
  void askToStart();
  void start(const StartRequest& request);
  void askForQuickstart();
  void pause();
  void goOn();
  void askToStop();
  void askToResume();

  Session& session_;
  QStackedWidget* body_;  // the run's views, or what can be done without one
  NoRun* no_run_;
  ElidedLabel* folder_;
  MessageBar *state_, *rules_, *gaps_, *message_;
  QAction *start_, *pause_, *go_, *stop_, *resume_, *quickstart_;
  LessonButtons* lessons_;
  QString unreached_;   // the message that a run elsewhere is not reached, as it was said last
  QString not_told_;    // that it was not told something, likewise
  bool away_ = false;   // it was not reached when it was asked last
  StartRequest typed_;  // that was asked for last; a folder in which a run began is not in it
  RunStart starting_;
  Quickstart preparing_;
};

}  // namespace tessera::gui
