// SPDX-License-Identifier: GPL-3.0-or-later
// Asks for a run on another host: the end of a tunnel on this one, the token, and which of the runs
// that are served there. Lists them as soon as both are whole. GUI thread.
#pragma once

#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QTimer>
#include <stop_token>

#include "gui/remote/remote_runs.h"
#include "gui/threads/newest.h"

namespace tessera::gui {

class RemoteDialog : public QDialog {
  Q_OBJECT

 public:
  /// `address` and `token`: what the fields begin with.
  RemoteDialog(const QString& address, const std::string& token, QWidget* parent = nullptr);
  /// Ends a request that is on its way.
  ~RemoteDialog() override { stop_.request_stop(); }

  /// With the run that was chosen.
  RemoteName name() const;
  std::string token() const;

 private:
  void edited();
  void ask();
  void take(const ServedRuns& runs);

  QLineEdit *address_, *token_;
  QListWidget* runs_;
  QLabel* problem_;
  QPushButton* open_;
  QString wanted_;  // the run that the address named
  QTimer typing_;
  std::stop_source stop_;
  Newest<ServedRuns> asking_;  // last: its work ends before anything else goes
};

}  // namespace tessera::gui
