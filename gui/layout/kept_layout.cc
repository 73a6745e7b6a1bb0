// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/layout/kept_layout.h"

#include <QSplitter>
#include <QTabWidget>
#include <algorithm>

namespace tessera::gui {
namespace {

constexpr int kMostPixels = 1 << 16;

// Tabs within the pages.
QList<QTabWidget*> tabs_in(const QMainWindow& window) {
  auto tabs = window.findChildren<QTabWidget*>();
  tabs.removeAll(qobject_cast<QTabWidget*>(window.centralWidget()));
  return tabs;
}

QList<int> numbers_in(const QString& text, int most) {
  QList<int> numbers;
  for (const QString& word : text.split(' ', Qt::SkipEmptyParts)) {
    bool whole = false;
    const int number = word.toInt(&whole);
    if (!whole || number < 0 || number > most) return {};
    numbers << number;
  }
  return numbers;
}

}  // namespace

WindowLayout layout_of(const QMainWindow& window) {
  WindowLayout layout;
  layout.geometry = QString::fromLatin1(window.saveGeometry().toBase64());
  for (const QSplitter* split : window.findChildren<QSplitter*>()) {
    QStringList sizes;
    for (const int size : split->sizes()) sizes << QString::number(size);
    layout.splits << sizes.join(' ');
  }
  for (const QTabWidget* tabs : tabs_in(window)) {
    layout.tabs << QString::number(tabs->currentIndex());
  }
  return layout;
}

void restore(QMainWindow& window, const WindowLayout& layout) {
  window.restoreGeometry(QByteArray::fromBase64(layout.geometry.toLatin1()));
  const auto splits = window.findChildren<QSplitter*>();
  for (qsizetype i = 0; splits.size() == layout.splits.size() && i < splits.size(); ++i) {
    const QList<int> sizes = numbers_in(layout.splits[i], kMostPixels);
    // A part that was never shown has no sizes: those that it begins with are better.
    const bool any = std::any_of(sizes.begin(), sizes.end(), [](int size) { return size > 0; });
    if (any && sizes.size() == splits[i]->count()) splits[i]->setSizes(sizes);
  }
  const auto tabs = tabs_in(window);
  for (qsizetype i = 0; tabs.size() == layout.tabs.size() && i < tabs.size(); ++i) {
    const QList<int> front = numbers_in(layout.tabs[i], tabs[i]->count() - 1);
    if (front.size() == 1) tabs[i]->setCurrentIndex(front.front());
  }
}

}  // namespace tessera::gui
