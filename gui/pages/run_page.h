// SPDX-License-Identifier: GPL-3.0-or-later
// Follows a run: its figures step by step, what its ranks do, prediction beside measurement.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QWidget>

#include "gui/document/newest.h"
#include "gui/models/run_lessons.h"
#include "gui/models/session.h"
#include "gui/views/message_bar.h"

namespace tessera::gui {

class RunPage : public QWidget {
  Q_OBJECT

 public:
  explicit RunPage(Session& session, QWidget* parent = nullptr);

 signals:
  void openRequested();
  void compareRequested();

 private:
  QWidget* header();
  QWidget* charts();
  QWidget* tables();
  void showState();
  void askToStop();
  void learn();
  void advise();
  void showLesson(const QString& title, const Lesson& lesson);

  Session& session_;
  QLabel* folder_;
  MessageBar *state_, *rules_, *gaps_, *message_;
  QPushButton *stop_, *learn_, *advise_;
  Newest<Lesson> lesson_;
};

}  // namespace tessera::gui
