// SPDX-License-Identifier: GPL-3.0-or-later
// What tests of the window do by hand: wait, type, click, answer a dialog.
#pragma once

#include <QApplication>
#include <QDialog>
#include <QElapsedTimer>
#include <QLineEdit>
#include <QTest>
#include <QTimer>

#include "tests/gui/event_loop.h"

namespace tessera::gui {

/// Runs events for that long.
inline void rest(int ms) {
  QElapsedTimer timer;
  timer.start();
  while (timer.elapsed() < ms) QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
}

/// Does this to the next dialog once it is open: exec() keeps its caller from it.
template <class Does>
void with_dialog(QObject* context, const Does& does) {
  auto* timer = new QTimer(context);
  QObject::connect(timer, &QTimer::timeout, timer, [timer, does] {
    auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
    if (dialog == nullptr || !dialog->isVisible()) return;
    timer->stop();
    timer->deleteLater();
    does(*dialog);
  });
  timer->start(20);
}

/// Types a path into the next file dialog and takes it.
inline void answer_file_dialog(QObject* context, const QString& path) {
  with_dialog(context, [path](QDialog& dialog) {
    dialog.findChild<QLineEdit*>("fileNameEdit")->setText(path);
    QMetaObject::invokeMethod(&dialog, "accept");
    if (dialog.isVisible()) dialog.reject();  // the test then says what is missing
  });
}

}  // namespace tessera::gui
