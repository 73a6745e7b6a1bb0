// SPDX-License-Identifier: GPL-3.0-or-later
// What the page of a run says while none is open: what can be done, with a button for each.
#pragma once

#include <QAction>
#include <QLabel>
#include <QPushButton>
#include <QWidget>

namespace tessera::gui {

class NoRun : public QWidget {
  Q_OBJECT

 public:
  /// `start` starts a run of the plan that is looked at, `quickstart` one of a tiny model, or ends
  /// its preparation; their buttons go with them.
  NoRun(QAction* start, QAction* quickstart, QWidget* parent = nullptr);

  /// The run that was followed last: a folder, or a place on another host.
  void offer(const QString& place);

 signals:
  void againRequested(const QString& place);
  void openRequested();
  void remoteRequested();

 private:
  QPushButton* again_;
  QLabel* last_;  // what again_ follows
};

}  // namespace tessera::gui
