// SPDX-License-Identifier: GPL-3.0-or-later
// Writes a run file for the plan that is to be started: asks for what the plan leaves open, shows
// the file, and saves it where its button asks. GUI thread.
#pragma once

#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <memory>

#include "gui/control/run_file.h"

namespace tessera::gui {

class RunFileDialog : public QDialog {
  Q_OBJECT

 public:
  explicit RunFileDialog(std::shared_ptr<const Plan> plan, QWidget* parent = nullptr);

  /// The file that was written; empty while none was.
  const QString& file() const { return file_; }

 private:
  RunFileRequest request() const;
  QWidget* promptsRow();
  void check();
  void save();

  std::shared_ptr<const Plan> plan_;
  QString file_;
  QLineEdit* prompts_;
  QComboBox* reward_;
  QLineEdit *rate_, *critic_rate_;
  QSpinBox *steps_, *save_every_;
  QPlainTextEdit* text_;
  QLabel* problem_;
  QPushButton* save_;
};

}  // namespace tessera::gui
