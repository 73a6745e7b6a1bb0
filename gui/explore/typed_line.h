// SPDX-License-Identifier: GPL-3.0-or-later
// Whether two edits of a form are one: what is typed into a line before it is left.
//
// A number is such a line, too. GUI thread.
#pragma once

#include <QLineEdit>
#include <QObject>
#include <QWidget>

namespace tessera::gui {

class TypedLine : public QObject {
  Q_OBJECT

 public:
  /// Hears of the lines that the form has by now, in lists and numbers as well. A child of the
  /// form.
  explicit TypedLine(QWidget& form);

  /// To be asked once for every edit: it goes on with the one before, in the same line.
  bool goesOn();
  /// The next edit goes on with none: the form was filled anew.
  void forget() { last_ = nullptr; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  const QLineEdit* now_ = nullptr;   // typed in since the last edit
  const QLineEdit* last_ = nullptr;  // that the last edit was typed in, while it is not left
  bool left_ = false;                // with an edit that is still to come
};

}  // namespace tessera::gui
