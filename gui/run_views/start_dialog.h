// SPDX-License-Identifier: GPL-3.0-or-later
// Asks what a run of the plan that is shown needs: a run file, settings, a folder. Says what is
// missing, and the command that its button starts. GUI thread.
#pragma once

#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <memory>

#include "gui/control/run_start.h"

namespace tessera::gui {

class StartDialog : public QDialog {
  Q_OBJECT

 public:
  /// `typed`: what was asked for before, and did not start; its plan is not looked at.
  explicit StartDialog(std::shared_ptr<const Plan> plan, const StartRequest& typed = {},
                       QWidget* parent = nullptr);

  StartRequest request() const;

 private:
  QWidget* withButton(QWidget* field, const QString& what, void (StartDialog::*choose)());
  void chooseConfig();
  void writeConfig();
  void chooseFolder();
  void check();

  std::shared_ptr<const Plan> plan_;
  QComboBox* config_;
  QPlainTextEdit* settings_;
  QLineEdit* folder_;
  QPlainTextEdit* command_;
  QLabel* problem_;
  QPushButton* start_;
};

}  // namespace tessera::gui
