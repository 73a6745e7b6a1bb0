// SPDX-License-Identifier: GPL-3.0-or-later
// What to change about a run: each change with what it gains, the command that plans it, and a
// button that does so here. GUI thread.
#pragma once

#include <QDialog>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <functional>
#include <optional>
#include <vector>

#include "gui/lessons/run_lessons.h"

namespace tessera::gui {

class AdviceDialog : public QDialog {
 public:
  using Plans = std::function<void(const PlanQuery&)>;

  /// `plans`: is told whose answer is wanted, and the dialog goes. Precondition: an advice without
  /// a problem.
  AdviceDialog(const Lesson& lesson, Plans plans, QWidget* parent);

 private:
  QWidget* changes();
  QWidget* panelOf(std::size_t number);
  void copy(std::size_t number);
  bool save();
  void showCommands();

  Lesson lesson_;
  Plans plans_;
  std::optional<AdviceFiles> files_;  // once they are saved
  std::vector<QLineEdit*> commands_;  // by change
  QLabel* says_;                      // what was done last
};

}  // namespace tessera::gui
