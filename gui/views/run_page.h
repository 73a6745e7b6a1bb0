// SPDX-License-Identifier: GPL-3.0-or-later
// Follows a run: its figures step by step, what its ranks do, prediction beside measurement.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QTableView>
#include <QWidget>

#include "gui/models/session.h"
#include "gui/views/chart.h"

namespace tessera::gui {

class RunPage : public QWidget {
  Q_OBJECT

 public:
  explicit RunPage(Session& session, QWidget* parent = nullptr);

 signals:
  void openRequested();

 private:
  QWidget* header();
  QWidget* charts();
  QWidget* tables();
  void showSteps();
  void showPhases();
  void showReshard();
  void showState();
  void askToStop();

  Session& session_;
  QLabel *folder_, *message_;
  QPushButton* stop_;
  Chart *reward_, *kl_, *throughput_, *phases_, *rate_, *bytes_;
  QTableView *ranks_, *comparison_;
};

}  // namespace tessera::gui
