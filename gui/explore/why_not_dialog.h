// SPDX-License-Identifier: GPL-3.0-or-later
// Asks why the plan that is shown has not another choice, of any setting that a question can fix,
// and answers it in the background.
//
// GUI thread.
#pragma once

#include <QComboBox>
#include <QDialog>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <optional>

#include "gui/document/newest.h"
#include "gui/plans/why_not_answer.h"

namespace tessera::gui {

class WhyNotDialog : public QDialog {
  Q_OBJECT

 public:
  WhyNotDialog(SharedPlan plan, PlanQuery question, QWidget* parent = nullptr);

  /// The question with the choice, once it was accepted.
  const std::optional<PlanQuery>& choice() const { return answer_.choice; }

 private:
  void ask();
  void take(const WhyNotAnswer& answer);

  SharedPlan plan_;
  PlanQuery question_;
  WhyNotAnswer answer_;
  QComboBox *setting_, *value_;
  QPlainTextEdit* says_;
  QPushButton *ask_, *plan_with_it_;
  Newest<WhyNotAnswer> work_;  // last: its work ends before anything else goes
};

}  // namespace tessera::gui
