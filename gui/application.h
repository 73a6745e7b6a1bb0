// SPDX-License-Identifier: GPL-3.0-or-later
// The application, which goes on where something that a key or a click did has thrown.
//
// What throws in an event would leave QApplication::exec() and end the program, and with it all
// that is in no file. It is told instead. GUI thread.
#pragma once

#include <QApplication>
#include <QString>
#include <functional>
#include <utility>

namespace tessera::gui {

class Application : public QApplication {
 public:
  using QApplication::QApplication;

  /// Hears what was thrown, in words.
  void tellFaults(std::function<void(const QString&)> tell) { tell_ = std::move(tell); }
  bool notify(QObject* receiver, QEvent* event) override;

 private:
  void told(const QString& what);

  std::function<void(const QString&)> tell_;
};

}  // namespace tessera::gui
