// SPDX-License-Identifier: GPL-3.0-or-later
// Asks why the plan that is shown has not another choice, of any setting that a question can fix,
// and answers it in the background; values that cannot be are grey and say why. The searches are
// the window's: a dialog that closes waits for none. GUI thread.
#pragma once

#include <QComboBox>
#include <QDialog>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <optional>

#include "gui/document/setting_checks.h"
#include "gui/plans/why_not_answer.h"
#include "gui/threads/newest.h"

namespace tessera::gui {

class WhyNotDialog : public QDialog {
  Q_OBJECT

 public:
  /// `searches` and `checks` outlive the dialog.
  WhyNotDialog(SharedPlan plan, PlanQuery question, Newest<WhyNotAnswer>& searches,
               SettingChecks& checks, QWidget* parent = nullptr);
  /// What it asked is not heard any more.
  ~WhyNotDialog() override { searches_.cancel(); }

  /// The question with the choice, once it was accepted.
  const std::optional<PlanQuery>& choice() const { return answer_.choice; }

 private:
  void ask();
  void take(const WhyNotAnswer& answer);
  void forget();
  void splitSetting();
  void offerValues();
  void markValues();

  SharedPlan plan_;
  PlanQuery question_;
  WhyNotAnswer answer_;
  QComboBox *setting_, *value_;
  QPlainTextEdit* says_;
  QPushButton *ask_, *plan_with_it_;
  Newest<WhyNotAnswer>& searches_;
  SettingChecks& checks_;
};

}  // namespace tessera::gui
