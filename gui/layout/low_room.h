// SPDX-License-Identifier: GPL-3.0-or-later
// What scrolls up and down where the window has no room for all of its height, so that the window
// itself can be low. As wide as it must be. Owns its content. GUI thread.
#pragma once

#include <QScrollArea>

namespace tessera::gui {

class LowRoom : public QScrollArea {
 public:
  explicit LowRoom(QWidget* content);

  QSize minimumSizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QSize least() const;  // of the content
  void fit();
};

}  // namespace tessera::gui
