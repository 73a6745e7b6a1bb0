// SPDX-License-Identifier: GPL-3.0-or-later
// A message above the pictures: its first line on one or two rows that never make the window wider,
// the rest on demand.
//
// Hidden while it says nothing. Buttons beside it are what can be done about it. GUI thread.
#pragma once

#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <utility>
#include <vector>

#include "gui/models/colours.h"
#include "gui/views/stale_cover.h"

namespace tessera::gui {

class MessageBar : public QFrame {
  Q_OBJECT

 public:
  explicit MessageBar(const QString& name, QWidget* parent = nullptr);

  /// The first line is shown, `details` (or the other lines) behind a button.
  void say(const QString& text, Tone tone, const QString& details = {});
  /// A button that is there while it has a text.
  void offer(const QString& action);
  /// Several ones below the line, each with what its tooltip says more.
  void offerAll(const std::vector<std::pair<QString, QString>>& actions);
  const QString& text() const { return first_; }
  /// What it says answers an earlier question: hatched until something is said or this is false.
  void setStale(bool stale);
  /// Takes the application's theme; a widget with colours of its own is not told of another one.
  void colour();

 signals:
  /// By its number; of a single one 0.
  void offerTaken(int number);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void elide();

  QString first_;
  Tone tone_ = Tone::calm;
  QLabel* line_;
  QPushButton *offer_, *more_;
  QWidget* offers_;
  std::vector<std::pair<QString, QString>> offered_;
  QPlainTextEdit* details_;
  StaleCover* cover_;
};

}  // namespace tessera::gui
