// SPDX-License-Identifier: GPL-3.0-or-later
// A message above the pictures: one line that never makes the window wider, the rest on demand.
//
// Hidden while it says nothing. Buttons beside it are what can be done about it. GUI thread.
#pragma once

#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>

#include "gui/models/colours.h"

namespace tessera::gui {

class MessageBar : public QFrame {
  Q_OBJECT

 public:
  explicit MessageBar(const QString& name, QWidget* parent = nullptr);

  /// The first line is shown, `details` (or the other lines) behind a button.
  void say(const QString& text, Tone tone, const QString& details = {});
  /// A button that is there while it has a text.
  void offer(const QString& action);
  const QString& text() const { return first_; }

 signals:
  void offerTaken();

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void colour();
  void elide();

  QString first_;
  Tone tone_ = Tone::calm;
  QLabel* line_;
  QPushButton *offer_, *more_;
  QPlainTextEdit* details_;
};

}  // namespace tessera::gui
