// SPDX-License-Identifier: GPL-3.0-or-later
// Asks for whom the plan that is shown is written, and where: verl, Megatron-LM, vLLM, SGLang or a
// launcher. Says which files that makes, or why that target cannot run the plan, and offers to ask
// the same question for an engine of its own. GUI thread.
#pragma once

#include <QComboBox>
#include <QDialog>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <optional>

#include "gui/document/shared_plan.h"
#include "gui/views/message_bar.h"
#include "planner/interop/export.h"

namespace tessera::gui {

class ExportJob : public QDialog {
  Q_OBJECT

 public:
  explicit ExportJob(SharedPlan plan, QWidget* parent = nullptr);

  /// Of several targets that take the plan this one, where it is one of them.
  void prefer(const QString& target);
  /// The name of the target that is chosen.
  QString target() const;
  /// What the question is to be asked for instead, with the dialog closed; empty = nothing.
  const QString& engineWanted() const { return engine_wanted_; }
  QString folder() const { return folder_->text().trimmed(); }
  /// Writes the files; what cannot be written is said, and the dialog stays as it is.
  void accept() override;

 private:
  void chooseFolder();
  void check();
  void allow();
  const ExportTarget& chosen() const;
  void offerEngine();

  SharedPlan plan_;
  QString engine_wanted_;
  std::optional<Export> made_;  // for the target that is chosen
  QComboBox* target_;
  QLineEdit* folder_;
  QPlainTextEdit* files_;
  MessageBar* fault_;
  QPushButton *write_, *plan_for_;
};

}  // namespace tessera::gui
