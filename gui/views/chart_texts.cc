// SPDX-License-Identifier: GPL-3.0-or-later
// The texts around a chart: what has no room ends with dots, and pointing to it tells all of it.
#include <QHelpEvent>
#include <QToolTip>
#include <algorithm>

#include "gui/models/colours.h"
#include "gui/views/chart.h"
#include "gui/views/fixed_text.h"

namespace tessera::gui {
namespace {

constexpr int kEntryWidth = 105, kMostColumns = 5;              // of a legend
constexpr int kTightWidth = 78;                                 // of an entry that gives way
constexpr int kIconWidth = 19, kApart = 10, kSideMargins = 16;  // of its entries, in pixels
constexpr int kTitleMargins = 14;

QString elided(const QFont& font, const QString& text, int width) {
  return QFontMetrics(font).elidedText(text, Qt::ElideRight, std::max(0, width));
}

}  // namespace

// The legend stands in a row of its own below the axes.
void Chart::addLegend() {
  legend->setVisible(true);
  if (!legend_below_) {
    const int row = plotLayout()->rowCount();
    plotLayout()->addElement(row, 0, legend);
    plotLayout()->setRowStretchFactor(row, 0.001);
    legend_below_ = true;
  }
  legend->setColumnSpacing(kApart);
  legend->setMargins({kSideMargins / 2, 0, kSideMargins / 2, 4});
  legend->setRowSpacing(0);
  legend->setIconSize(12, 10);
  // Without entries it would be as narrow as its margins, and the axes above it with it.
  legend->setMaximumSize(QWIDGETSIZE_MAX / 2, QWIDGETSIZE_MAX);
  legend_tight_ = false;
}

// Where a small chart has no room for both, the names of bars stay and those of colours are
// shortened, or go: pointing to the chart tells them then. `above`: pixels within the axes that no
// bar may take.
void Chart::addLegendBelow(int categories, int above) {
  constexpr int kBetween = 3;  // pixels between names
  const int least = QFontMetrics(yAxis->tickLabelFont()).capHeight() + kBetween;
  addLegend();
  for (const bool tight : {false, true}) {
    legend_tight_ = tight;
    layOut();
    if (axisRect()->height() - above >= least * categories) return;
  }
  legend->clear();
  legend->setVisible(false);
  layOut();
}

// Places everything now: what is drawn next depends on where the axes are.
void Chart::layOut() {
  if (fitted_) setRanges();
  fitTexts();
  for (const auto phase :
       {QCPLayoutElement::upPreparation, QCPLayoutElement::upMargins, QCPLayoutElement::upLayout}) {
    plotLayout()->update(phase);
  }
}

// As many columns as the longest name leaves room for, more where the rows would take a fifth of
// the chart, and as many as names can be told apart in where it gives way.
void Chart::fitLegend() {
  if (!legend_below_ || !legend->visible()) return;
  const QFontMetrics text(legend->font());
  const int room = std::max(1, width() - kSideMargins);
  int widest = 1, count = 0;
  for (int i = 0; i < legend->itemCount(); ++i) {  // empty cells are counted, too
    if (auto* entry = qobject_cast<QCPPlottableLegendItem*>(legend->item(i))) {
      const auto [whole, fresh] =
          names_.try_emplace(entry->plottable(), entry->plottable()->name());
      const int whole_text = text.horizontalAdvance(whole->second) + 1;  // it is rounded
      widest = std::max(widest, whole_text + kIconWidth + kApart);
      ++count;
    }
  }
  int columns = std::clamp(room / widest, 1, kMostColumns);
  const int most_rows = std::max(1, height() / (5 * text.height()));
  while (columns < kMostColumns && (count + columns - 1) / columns > most_rows &&
         room / (columns + 1) >= kEntryWidth) {
    ++columns;
  }
  if (legend_tight_) columns = std::max(columns, std::min(room / kTightWidth, kMostColumns));
  for (int i = 0; i < legend->itemCount(); ++i) {
    auto* entry = qobject_cast<QCPPlottableLegendItem*>(legend->item(i));
    if (entry == nullptr) continue;
    entry->setMargins({0, 0, 0, 2});  // what hangs below the letters
    entry->plottable()->setName(elided(legend->font(), names_.at(entry->plottable()),
                                       room / columns - kIconWidth - kApart));
  }
  legend->setWrap(columns);  // before the order, which arranges
  legend->setFillOrder(QCPLayoutGrid::foColumnsFirst);
}

void Chart::setLabels(const QString& x, const QString& y) {
  x_label_ = x;
  y_label_ = y;
}

// Labels stand at the middle of their axes.
void Chart::fitTexts() {
  if (title_ != nullptr) {
    title_->setText(elided(title_->font(), title_text_, width() - kTitleMargins));
  }
  const QRect plot = axisRect()->rect();
  constexpr int kTickApart = 20, kMostTicks = 5;
  yAxis->ticker()->setTickCount(std::clamp(plot.height() / kTickApart, 1, kMostTicks));
  const auto room = [](int middle, int all) { return 2 * std::min(middle, all - middle) - 4; };
  xAxis->setLabel(elided(xAxis->labelFont(), x_label_, room(plot.center().x(), width())));
  yAxis->setLabel(elided(yAxis->labelFont(), y_label_, room(plot.center().y(), height())));
  fitLegend();
}

QString Chart::hintAt(const QPoint& at) const {
  const auto unless = [](const QString& drawn, const QString& whole) {
    return drawn == whole ? QString() : plainTip(whole);
  };
  if (title_ != nullptr && title_->outerRect().contains(at)) {
    return unless(title_->text(), title_text_);
  }
  for (int i = 0; legend->visible() && i < legend->itemCount(); ++i) {
    auto* entry = qobject_cast<QCPPlottableLegendItem*>(legend->item(i));
    if (entry == nullptr || !entry->outerRect().contains(at)) continue;
    const auto whole = names_.find(entry->plottable());
    return whole == names_.end() ? QString() : unless(entry->plottable()->name(), whole->second);
  }
  const QRect plot = axisRect()->rect();
  if (at.y() > plot.bottom()) return unless(xAxis->label(), x_label_);
  if (at.x() < plot.left()) return unless(yAxis->label(), y_label_);
  const double time = xAxis->pixelToCoord(at.x()), lane = yAxis->pixelToCoord(at.y());
  for (const ChartSpan& span : spans_) {
    const bool inside = time >= span.start && time < span.start + span.length;
    if (inside && std::abs(lane - span.lane) <= kSpanHalf) {
      return plainTip(QString(span.label).replace('\n', ", "));
    }
  }
  return legend->visible() ? QString() : coloursHint();
}

QString Chart::coloursHint() const {
  QStringList entries;
  for (const QCPAbstractPlottable* each : axisRect()->plottables()) {
    const auto* bars = qobject_cast<const QCPBars*>(each);
    if (bars == nullptr) continue;
    const auto whole = names_.find(bars);
    entries << swatch(bars->brush().color(), whole == names_.end() ? bars->name() : whole->second);
  }
  return entries.join("<br>");
}

bool Chart::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QCustomPlot::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), hintAt(help->pos()), this);
  return true;
}

}  // namespace tessera::gui
