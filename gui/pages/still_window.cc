// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/still_window.h"

#include <QApplication>

namespace tessera::gui {

StillWindow::StillWindow(QMainWindow& window)
    : seen_(new QLabel(&window)), focus_(QApplication::focusWidget()) {
  QWidget& pages = *window.centralWidget();
  seen_->setObjectName("still");
  seen_->setPixmap(pages.grab());
  seen_->setGeometry(pages.geometry());
  seen_->show();
  for (QTabWidget* tabs : window.findChildren<QTabWidget*>()) {
    shown_.emplace_back(tabs, tabs->currentIndex());
  }
}

StillWindow::~StillWindow() {
  for (const auto& [tabs, shown] : shown_) {
    if (tabs) tabs->setCurrentIndex(shown);
  }
  delete seen_;
  if (focus_) focus_->setFocus();
}

void bringToFront(QWidget& view) {
  for (QWidget* above = view.parentWidget(); above != nullptr; above = above->parentWidget()) {
    auto* tabs = qobject_cast<QTabWidget*>(above);
    for (int tab = 0; tabs != nullptr && tab < tabs->count(); ++tab) {
      QWidget* page = tabs->widget(tab);
      if (page != &view && !page->isAncestorOf(&view)) continue;
      tabs->setCurrentIndex(tab);
      QCoreApplication::processEvents();
    }
  }
}

}  // namespace tessera::gui
