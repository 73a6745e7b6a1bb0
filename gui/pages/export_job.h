// SPDX-License-Identifier: GPL-3.0-or-later
// Asks for whom the plan that is shown is written, and where: verl, Megatron-LM, vLLM, SGLang or a
// launcher. Says which files that makes, or why that target cannot run the plan. GUI thread.
#pragma once

#include <QComboBox>
#include <QDialog>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <optional>

#include "gui/document/shared_plan.h"
#include "planner/interop/export.h"

namespace tessera::gui {

class ExportJob : public QDialog {
  Q_OBJECT

 public:
  explicit ExportJob(SharedPlan plan, QWidget* parent = nullptr);

  QString folder() const { return folder_->text().trimmed(); }
  /// Writes the files. Throws Error(io). Precondition: the dialog was accepted.
  void write() const;

 private:
  void chooseFolder();
  void check();
  void allow();

  SharedPlan plan_;
  std::optional<Export> made_;  // for the target that is chosen
  QComboBox* target_;
  QLineEdit* folder_;
  QPlainTextEdit* files_;
  QPushButton* write_;
};

}  // namespace tessera::gui
