// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/layout/kept_layout.h"

#include <QScreen>
#include <QSplitter>
#include <QTabWidget>
#include <algorithm>

namespace tessera::gui {
namespace {

constexpr int kMostPixels = 1 << 16;
constexpr QMargins kFrame{4, 32, 4, 4};  // of a window, as desktops draw it

// Tabs within the pages.
QList<QTabWidget*> tabs_in(const QMainWindow& window) {
  auto tabs = window.findChildren<QTabWidget*>();
  tabs.removeAll(qobject_cast<QTabWidget*>(window.centralWidget()));
  return tabs;
}

// What was kept of the part of that name; empty where nothing was, or no numbers up to `most`.
QList<int> numbers_of(const QString& name, const QStringList& kept, int most) {
  QList<int> numbers;
  for (const QString& line : kept) {
    const QStringList words = line.split(' ', Qt::SkipEmptyParts);
    if (name.isEmpty() || words.isEmpty() || words.front() != name) continue;
    for (const QString& word : words.mid(1)) {
      bool whole = false;
      const int number = word.toInt(&whole);
      if (!whole || number < 0 || number > most) return {};
      numbers << number;
    }
    return numbers;
  }
  return numbers;
}

// As large as the screen lets it be, and on it.
void fit_screen(QWidget& window) {
  const QScreen* screen = window.screen();
  if (screen == nullptr || window.isMaximized() || window.isFullScreen()) return;
  const QRect room = screen->availableGeometry().marginsRemoved(kFrame);
  QRect place(window.pos(), window.size().boundedTo(room.size()));
  place.moveRight(std::min(place.right(), room.right()));
  place.moveBottom(std::min(place.bottom(), room.bottom()));
  place.moveLeft(std::max(place.left(), screen->availableGeometry().left()));
  place.moveTop(std::max(place.top(), screen->availableGeometry().top()));
  window.resize(place.size());
  if (place.topLeft() != window.pos()) window.move(place.topLeft());
}

}  // namespace

WindowLayout layout_of(const QMainWindow& window) {
  WindowLayout layout;
  layout.geometry = QString::fromLatin1(window.saveGeometry().toBase64());
  for (const QSplitter* split : window.findChildren<QSplitter*>()) {
    if (split->objectName().isEmpty()) continue;
    QStringList words{split->objectName()};
    for (const int size : split->sizes()) words << QString::number(size);
    layout.splits << words.join(' ');
  }
  for (const QTabWidget* tabs : tabs_in(window)) {
    if (tabs->objectName().isEmpty()) continue;
    layout.tabs << QString("%1 %2").arg(tabs->objectName()).arg(tabs->currentIndex());
  }
  return layout;
}

void give_size(QWidget& window, const QSize& size) {
  window.setWindowState(window.windowState() & ~(Qt::WindowMaximized | Qt::WindowFullScreen));
  window.resize(size);
}

void restore(QMainWindow& window, const WindowLayout& layout) {
  window.restoreGeometry(QByteArray::fromBase64(layout.geometry.toLatin1()));
  fit_screen(window);  // it may have been another one
  for (QSplitter* split : window.findChildren<QSplitter*>()) {
    const QList<int> sizes = numbers_of(split->objectName(), layout.splits, kMostPixels);
    // A part that was never shown has no sizes: those that it begins with are better.
    const bool any = std::any_of(sizes.begin(), sizes.end(), [](int size) { return size > 0; });
    if (any && sizes.size() == split->count()) split->setSizes(sizes);
  }
  for (QTabWidget* tabs : tabs_in(window)) {
    const QList<int> front = numbers_of(tabs->objectName(), layout.tabs, tabs->count() - 1);
    if (front.size() == 1) tabs->setCurrentIndex(front.front());
  }
}

}  // namespace tessera::gui
