// SPDX-License-Identifier: GPL-3.0-or-later
// Hatching over what answers another question than the one that is asked.
//
// Covers its parent while it is visible; mouse and keys go through. Fades it at once, and says why
// in its middle where there is room for it. GUI thread.
#pragma once

#include <QPixmap>
#include <QPointer>
#include <QRegion>
#include <QWidget>

namespace tessera::gui {

class StaleCover : public QWidget {
 public:
  explicit StaleCover(QWidget* covered);

  void setStale(bool stale);
  /// A part of what is covered that answers no question, and stays clear.
  void leaveOut(QWidget* part);
  /// What a cover says, for readers of the screen as well.
  static QString says();

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QPixmap hatch() const;
  QRegion covered() const;

  QPointer<QWidget> left_out_;
};

}  // namespace tessera::gui
