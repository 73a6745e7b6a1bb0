// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/export/whole_view.h"

#include <QAbstractButton>
#include <QAbstractSlider>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QHeaderView>
#include <QLayout>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QScrollArea>
#include <QScrollBar>
#include <QTextBlock>
#include <algorithm>
#include <numeric>

#include "gui/views/elided_label.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

// Of a view's own pixels. Cells of a matrix of 64 ranks and the lanes of as many have room.
constexpr QSize kMost{6000, 14000};
/// Of pictures that have no size of their own: what a slide has room for.
constexpr QSize kLeast{960, 540};

bool scrolls(const QWidget& part) {
  return qobject_cast<const QAbstractScrollArea*>(&part) != nullptr ||
         part.findChild<QAbstractScrollArea*>() != nullptr;
}

QString withoutKeys(QString text) { return text.remove('&'); }

QMargins frameOf(const QAbstractScrollArea& area) {
  const QSize beside = area.size() - area.viewport()->size();
  const int frame = 2 * area.frameWidth();
  const QScrollBar &across = *area.horizontalScrollBar(), &down = *area.verticalScrollBar();
  return {0, 0, std::max(frame, beside.width() - (down.isVisible() ? down.width() : 0)),
          std::max(frame, beside.height() - (across.isVisible() ? across.height() : 0))};
}

// Without wrapping: columns of a text stay below one another.
QSize textSize(const QPlainTextEdit& text) {
  const QFontMetricsF metrics(text.font());
  double width = 0;
  int lines = 0;
  for (QTextBlock block = text.document()->begin(); block.isValid(); block = block.next()) {
    width = std::max(width, metrics.horizontalAdvance(block.text()));
    ++lines;
  }
  const double margin = 2 * text.document()->documentMargin();
  return QSizeF(width + margin + text.cursorWidth() + 1,
                (lines + 1) * metrics.lineSpacing() + margin)
      .toSize();
}

}  // namespace

WholeView::WholeView(QWidget& view) : view_(view), focus_(QApplication::focusWidget()) {
  if (view.isWindow()) return;
  const QSize before = view.size();
  for (QSplitter* splitter : splitters()) shares_.emplace_back(splitter, splitter->sizes());
  undo_.emplace_back([this, before] { view_.resize(before); });
  QList<QAbstractScrollArea*> areas = view.findChildren<QAbstractScrollArea*>();
  if (auto* own = qobject_cast<QAbstractScrollArea*>(&view)) areas << own;
  areas.removeIf([](const QAbstractScrollArea* area) {  // a list that opens is none of the view's
    return area->isHidden() || area->window() != area->parentWidget()->window() || area->isWindow();
  });
  replaceControls();
  for (QLabel* label : view.findChildren<QLabel*>()) {
    if (dynamic_cast<ElidedLabel*>(label) == nullptr || label->isHidden()) continue;
    const int wide = label->fontMetrics().horizontalAdvance(label->text()) + 2;
    keepAtLeast(*label, {wide, 0});
  }
  keepPictures();
  // With more room tables may show more columns.
  for (int pass = 0; pass < 2; ++pass) {
    for (QAbstractScrollArea* area : areas) grow(*area);
    settle();
    QSize whole = view.minimumSizeHint().expandedTo(view.minimumSize()).expandedTo(before);
    if (areas.isEmpty()) whole = whole.expandedTo(kLeast);
    view.resize(whole.boundedTo(kMost));
    shareOut();
    settle();
  }
}

WholeView::~WholeView() {
  while (!undo_.empty()) {
    undo_.back()();
    undo_.pop_back();
  }
  if (view_.isWindow()) return;
  settle();
  for (const auto& [splitter, sizes] : shares_) splitter->setSizes(sizes);  // outer ones first
  settle();
  if (focus_ && focus_ != QApplication::focusWidget()) focus_->setFocus();
}

void WholeView::keepAtLeast(QWidget& widget, QSize size) {
  const QSize least = widget.minimumSize(), most = widget.maximumSize();
  undo_.emplace_back([&widget, least, most] {
    widget.setMaximumSize(most);
    widget.setMinimumSize(least);
  });
  size = size.boundedTo(kMost);
  widget.setMaximumSize(most.expandedTo(size));
  widget.setMinimumSize(least.expandedTo(size));
}

// A picture beside a table does not give way to its rows.
void WholeView::keepPictures() {
  for (QSplitter* splitter : splitters()) {
    for (int i = 0; i < splitter->count(); ++i) {
      QWidget& part = *splitter->widget(i);
      if (!part.isHidden() && !scrolls(part)) keepAtLeast(part, part.size());
    }
  }
}

QList<QSplitter*> WholeView::splitters() const {
  QList<QSplitter*> all = view_.findChildren<QSplitter*>();
  if (auto* own = qobject_cast<QSplitter*>(&view_)) all.prepend(own);
  return all;
}

void WholeView::hide(QWidget& widget) {
  if (widget.isHidden()) return;
  undo_.emplace_back([&widget] { widget.show(); });
  widget.hide();
}

// In the same place of its layout.
void WholeView::replace(QWidget& control, const QString& text) {
  if (control.isHidden()) return;
  QLayout* const layout = control.parentWidget()->layout();
  auto* label = new QLabel(text);
  label->setTextFormat(Qt::PlainText);
  label->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);  // as wide as it may be
  QLayoutItem* const item = layout != nullptr ? layout->replaceWidget(&control, label) : nullptr;
  if (item == nullptr) {
    delete label;
    return hide(control);
  }
  delete item;
  undo_.emplace_back([&control, label, layout] {
    delete layout->replaceWidget(label, &control);
    delete label;
  });
  hide(control);
  label->show();
}

void WholeView::replaceControls() {
  for (QWidget* widget : view_.findChildren<QWidget*>()) {
    const QWidget* const above = widget->parentWidget();
    if (qobject_cast<const QAbstractScrollArea*>(above) != nullptr ||
        qobject_cast<const QAbstractSpinBox*>(above) != nullptr ||
        qobject_cast<const QComboBox*>(above) != nullptr ||
        qobject_cast<const QLineEdit*>(above) != nullptr) {
      continue;
    }
    if (isForTheScreenOnly(*widget) || qobject_cast<QAbstractSlider*>(widget) != nullptr) {
      hide(*widget);
    } else if (const auto* box = qobject_cast<QComboBox*>(widget)) {
      replace(*widget, box->currentText());
    } else if (auto* number = qobject_cast<QAbstractSpinBox*>(widget)) {
      replace(*widget, number->text());
    } else if (const auto* line = qobject_cast<QLineEdit*>(widget)) {
      line->text().isEmpty() ? hide(*widget) : replace(*widget, line->text());
    } else if (const auto* button = qobject_cast<QAbstractButton*>(widget)) {
      button->isChecked() ? replace(*widget, withoutKeys(button->text())) : hide(*widget);
    }
  }
}

void WholeView::grow(QAbstractScrollArea& area) {
  const auto down = area.verticalScrollBarPolicy(), across = area.horizontalScrollBarPolicy();
  undo_.emplace_back([&area, down, across] {
    area.setVerticalScrollBarPolicy(down);
    area.setHorizontalScrollBarPolicy(across);
  });
  const QSize whole = wholeOf(area).grownBy(frameOf(area));
  area.setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  area.setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  keepAtLeast(area, whole);
}

// Of what it scrolls.
QSize WholeView::wholeOf(QAbstractScrollArea& area) {
  if (auto* table = qobject_cast<QTableView*>(&area)) return wholeOf(*table);
  if (auto* text = qobject_cast<QPlainTextEdit*>(&area)) {
    const auto wrap = text->lineWrapMode();
    undo_.emplace_back([text, wrap] { text->setLineWrapMode(wrap); });
    text->setLineWrapMode(QPlainTextEdit::NoWrap);
    return textSize(*text);
  }
  if (auto* scroll = qobject_cast<QScrollArea*>(&area); scroll != nullptr && scroll->widget()) {
    const QSize inner = scroll->widget()->size();
    return scroll->widgetResizable() ? inner.expandedTo(scroll->widget()->minimumSizeHint())
                                     : inner;
  }
  const auto hidden = [](const QScrollBar& bar) { return bar.maximum() - bar.minimum(); };
  return QSize(0, area.viewport()->height() + hidden(*area.verticalScrollBar()));
}

// Every column has room for its widest cell, whoever made it how wide; the last has what is left.
QSize WholeView::wholeOf(QTableView& table) {
  QHeaderView& header = *table.horizontalHeader();
  int wide = 0;
  for (int column = 0; column < table.model()->columnCount(); ++column) {
    if (table.isColumnHidden(column)) continue;
    const int width = table.columnWidth(column);
    const int wants = std::max(static_cast<QAbstractItemView&>(table).sizeHintForColumn(column),
                               header.sectionSizeHint(column));
    const bool last =
        header.stretchLastSection() && header.visualIndex(column) == header.count() - 1;
    const auto mode = header.sectionResizeMode(column);
    const bool stretches = last || mode == QHeaderView::Stretch;
    if (mode == QHeaderView::Stretch) {
      undo_.emplace_back(
          [&header, column] { header.setSectionResizeMode(column, QHeaderView::Stretch); });
      header.setSectionResizeMode(column, QHeaderView::Interactive);
      const bool stretched = header.stretchLastSection();
      undo_.emplace_back([&header, stretched] { header.setStretchLastSection(stretched); });
      header.setStretchLastSection(true);
    }
    if (stretches || wants > width) {
      undo_.emplace_back([&table, column, width] { table.setColumnWidth(column, width); });
      table.setColumnWidth(column, wants);
    }
    wide += stretches ? wants : std::max(width, wants);
  }
  return {wide, table.verticalHeader()->length()};
}

// Nothing of it is heard above the view, whose own place does not change.
void WholeView::settle() {
  for (int round = 0; round < 3; ++round) {
    QWidgetList parts = view_.findChildren<QWidget*>();
    parts.prepend(&view_);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      QCoreApplication::sendPostedEvents(*part, QEvent::LayoutRequest);
    }
  }
}

// Every part of a splitter has what it needs, and pictures the rest.
void WholeView::shareOut() {
  for (QSplitter* splitter : splitters()) {
    const bool across = splitter->orientation() == Qt::Horizontal;
    const QList<int> before = splitter->sizes();
    QList<int> sizes = before;
    const int all = std::accumulate(before.begin(), before.end(), 0);
    int needed = 0, drawn = -1;
    for (int i = 0; i < sizes.size(); ++i) {
      const QWidget& part = *splitter->widget(i);
      const QSize least = part.minimumSizeHint().expandedTo(part.minimumSize());
      sizes[i] = part.isHidden() ? 0 : (across ? least.width() : least.height());
      needed += sizes[i];
      if (drawn < 0 && !scrolls(part) && !part.isHidden()) drawn = i;
    }
    if (drawn >= 0) sizes[drawn] += std::max(0, all - needed);
    // Where there is none they share the rest as before.
    for (int i = 0; drawn < 0 && i < sizes.size(); ++i) sizes[i] = std::max(sizes[i], before[i]);
    splitter->setSizes(sizes);
  }
}

}  // namespace tessera::gui
