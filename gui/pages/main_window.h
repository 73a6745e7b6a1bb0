// SPDX-License-Identifier: GPL-3.0-or-later
// The window: the pages, the menu, what opens and saves.
#pragma once

#include <QMainWindow>
#include <QTabWidget>

#include "gui/models/session.h"
#include "gui/pages/explore_page.h"
#include "gui/pages/run_page.h"

namespace tessera::gui {

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  explicit MainWindow(QWidget* parent = nullptr);

  Session& session() { return session_; }
  ExplorePage& explore() { return *explore_; }
  RunPage& run() { return *run_; }
  void showPage(QWidget* page) { pages_->setCurrentWidget(page); }

  bool openPlan(const QString& file);
  /// Follows the folder; a plan.json in it is opened unless a plan is.
  bool openRun(const QString& folder, bool live = true);

 private:
  void addActions();
  void choosePlan();
  void chooseWhereToSave();
  void chooseRun();
  void chooseExport();

  Session session_;
  ExplorePage* explore_;
  RunPage* run_;
  QTabWidget* pages_;
};

}  // namespace tessera::gui
