// SPDX-License-Identifier: GPL-3.0-or-later
// The application, which goes on where something that a key or a click did has thrown.
//
// What throws in an event would leave QApplication::exec() and end the program, and with it all
// that is in no file. It is told instead. Tips that Qt shows by itself, of widgets and of cells,
// are plain text, and so are questions: their texts may be a stranger's. GUI thread.
#pragma once

#include <QApplication>
#include <QString>
#include <exception>
#include <functional>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera::gui {

class Application : public QApplication {
 public:
  Application(int& argc, char** argv);

  /// Hears what was thrown, in words.
  void tellFaults(std::function<void(const QString&)> tell) { tell_ = std::move(tell); }
  bool notify(QObject* receiver, QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  /// Of the first that was thrown: what a program ends with that shows nobody a window; ok = none.
  ExitCode fault() const { return fault_; }

 private:
  void told(const std::exception& fault, ExitCode code);

  ExitCode fault_ = ExitCode::ok;
  std::function<void(const QString&)> tell_;
};

}  // namespace tessera::gui
