// SPDX-License-Identifier: GPL-3.0-or-later
// Hatching over pictures that answer another question than the one that is asked.
//
// Covers its parent while it is visible; mouse and keys go through. GUI thread.
#pragma once

#include <QWidget>

namespace tessera::gui {

class StaleCover : public QWidget {
 public:
  explicit StaleCover(QWidget* covered);

  void setStale(bool stale);

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;
};

}  // namespace tessera::gui
