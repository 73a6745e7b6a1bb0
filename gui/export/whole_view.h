// SPDX-License-Identifier: GPL-3.0-or-later
// A view as its picture shows it: as large as all that it has, and without what one works it by.
//
// While it lives: tables, texts and what else scrolls are as large as their content; scroll bars,
// buttons, sliders and hints for keys are away; what a box or a field says is plain text in its
// place. Lines that would end in dots are whole. Afterwards all is as before. A window stays as it
// is. No events may run meanwhile. GUI thread.
#pragma once

#include <QAbstractScrollArea>
#include <QLabel>
#include <QPointer>
#include <QSplitter>
#include <QTableView>
#include <QWidget>
#include <functional>
#include <utility>
#include <vector>

namespace tessera::gui {

class WholeView {
 public:
  explicit WholeView(QWidget& view);
  ~WholeView();
  WholeView(const WholeView&) = delete;
  WholeView& operator=(const WholeView&) = delete;

 private:
  void replaceControls();
  void replace(QWidget& control, const QString& text);
  void hide(QWidget& widget);
  void keepAtLeast(QWidget& widget, QSize size);
  void keepPictures();
  QList<QSplitter*> splitters() const;
  void grow(QAbstractScrollArea& area);
  QSize wholeOf(QAbstractScrollArea& area);
  QSize wholeOf(QTableView& table);
  void settle();
  void shareOut();

  QWidget& view_;
  QPointer<QWidget> focus_;
  std::vector<std::pair<QSplitter*, QList<int>>> shares_;  // before
  std::vector<std::function<void()>> undo_;                // the last first
};

}  // namespace tessera::gui
