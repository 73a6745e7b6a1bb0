// SPDX-License-Identifier: GPL-3.0-or-later
// A line of text that gives way: what has no room ends with dots, and pointing to it tells all.
//
// text() is all of it. A tooltip that was set is shown instead. GUI thread.
#pragma once

#include <QLabel>

namespace tessera::gui {

class ElidedLabel : public QLabel {
 public:
  /// `mode`: which end gives way.
  explicit ElidedLabel(const QString& text = {}, Qt::TextElideMode mode = Qt::ElideRight);

  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  Qt::TextElideMode mode_;
};

}  // namespace tessera::gui
