// SPDX-License-Identifier: GPL-3.0-or-later
// A window that shows on its screen what it shows, while its pages and tabs change below.
//
// At the end what was in front is in front again, with the keys where they were. GUI thread.
#pragma once

#include <QLabel>
#include <QMainWindow>
#include <QPointer>
#include <QTabWidget>
#include <utility>
#include <vector>

namespace tessera::gui {

class StillWindow {
 public:
  explicit StillWindow(QMainWindow& window);
  ~StillWindow();
  StillWindow(const StillWindow&) = delete;
  StillWindow& operator=(const StillWindow&) = delete;

  /// Draws what is below, which comes on no screen: no event is between.
  template <class Draw>
  void away(const Draw& draw) {
    seen_->hide();
    draw();
    seen_->show();
  }

 private:
  QLabel* seen_;
  std::vector<std::pair<QPointer<QTabWidget>, int>> shown_;
  QPointer<QWidget> focus_;
};

/// A view in a tab that is not shown has no size.
void bringToFront(QWidget& view);

}  // namespace tessera::gui
