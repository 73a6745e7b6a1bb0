// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/chart.h"

#include <algorithm>
#include <utility>

#include "gui/document/words.h"
#include "gui/models/colours.h"

namespace tessera::gui {
namespace {

QFont scaled(const QFont& font, double factor, bool bold = false) {
  QFont scaled = font;
  scaled.setPointSizeF(font.pointSizeF() * factor);
  scaled.setBold(bold);
  return scaled;
}

}  // namespace

Chart::Chart(const QString& title, QWidget* parent) : QCustomPlot(parent), title_text_(title) {
  if (!title.isEmpty()) {
    plotLayout()->insertRow(0);
    title_ = new QCPTextElement(this, title, scaled(font(), 1.0, true));
    title_->setTextFlags(Qt::AlignLeft | Qt::AlignVCenter);
    title_->setMargins({8, 6, 4, 0});
    plotLayout()->addElement(0, 0, title_);
  }
  plotLayout()->setRowSpacing(0);
  setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
  setAccessibleName(title);
  setFocusPolicy(Qt::StrongFocus);
  for (QCPAxis* axis : {xAxis, yAxis}) {
    connect(axis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this, [this] {
      if (!setting_) fitted_ = false;
    });
  }
  applyPalette();
  showNothing({});
}

void Chart::reset() {
  clearPlottables();
  clearItems();
  names_.clear();
  spans_.clear();
  setLabels({}, {});
  again_ = nullptr;
  inks_.clear();
  legend->setVisible(false);
  setting_ = true;
  for (QCPAxis* axis : {xAxis, yAxis}) {
    axis->setTicker(QSharedPointer<QCPAxisTicker>::create());
    axis->setRangeReversed(false);
    axis->setVisible(true);
    axis->grid()->setVisible(true);
    axis->setSubTicks(false);
  }
  setting_ = false;
}

void Chart::applyPalette() {
  const QColor text = palette().color(QPalette::Text);
  QColor faint = text;
  faint.setAlphaF(0.18F);
  setBackground(palette().brush(QPalette::Base));
  if (title_ != nullptr) title_->setTextColor(text);
  for (QCPAxis* axis : {xAxis, yAxis}) {
    axis->setBasePen(QPen(text, 1));
    axis->setTickPen(QPen(text, 1));
    axis->setSubTickPen(QPen(text, 1));
    axis->setTickLabelColor(text);
    axis->setLabelColor(text);
    axis->setTickLabelFont(scaled(font(), 0.85));
    axis->setLabelFont(scaled(font(), 0.85));
    axis->grid()->setPen(QPen(faint, 1));
    axis->grid()->setZeroLinePen(QPen(faint, 1));
  }
  legend->setBrush(palette().brush(QPalette::Base));
  legend->setBorderPen(Qt::NoPen);
  legend->setTextColor(text);
  legend->setFont(scaled(font(), 0.85));
}

void Chart::changeEvent(QEvent* event) {
  QCustomPlot::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) {
    applyPalette();
    for (const auto& colour : inks_) colour();
    replot();
  }
}

// Into a drawing as lines, not as the pixels that a screen has.
void Chart::paintEvent(QPaintEvent* event) {
  QCPPainter painter(this);
  if (!painter.isActive() || painter.paintEngine()->type() != QPaintEngine::SVG) {
    painter.end();
    return QCustomPlot::paintEvent(event);
  }
  painter.setMode(QCPPainter::pmVectorized);
  toPainter(&painter, width(), height());
}

void Chart::mouseDoubleClickEvent(QMouseEvent* event) {
  QCustomPlot::mouseDoubleClickEvent(event);
  fit();
}

void Chart::resizeEvent(QResizeEvent* event) {
  QCustomPlot::resizeEvent(event);
  if (const auto again = again_) return again();
  fitTexts();
  replot(QCustomPlot::rpQueuedRefresh);
}

void Chart::keyPressEvent(QKeyEvent* event) {
  constexpr double kPart = 0.1, kIn = 0.8;
  const auto pan = [&](QCPAxis* axis, double part) {
    axis->moveRange(part * axis->range().size());
  };
  const auto zoom = [&](double factor) {
    for (QCPAxis* axis : {xAxis, yAxis}) axis->scaleRange(factor);
  };
  const double up = yAxis->rangeReversed() ? -kPart : kPart;
  switch (event->key()) {
    case Qt::Key_Left:
      pan(xAxis, -kPart);
      break;
    case Qt::Key_Right:
      pan(xAxis, kPart);
      break;
    case Qt::Key_Up:
      pan(yAxis, up);
      break;
    case Qt::Key_Down:
      pan(yAxis, -up);
      break;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      zoom(kIn);
      break;
    case Qt::Key_Minus:
      zoom(1 / kIn);
      break;
    case Qt::Key_Home:
      fit();
      return;
    default:
      QCustomPlot::keyPressEvent(event);
      return;
  }
  replot();
}

void Chart::showNothing(const QString& why) {
  reset();
  xAxis->setVisible(false);
  yAxis->setVisible(false);
  for (QCPAxis* axis : {xAxis, yAxis}) axis->grid()->setVisible(false);
  auto* label = new QCPItemText(this);
  label->position->setType(QCPItemPosition::ptAxisRectRatio);
  label->position->setCoords(0.5, 0.5);
  label->setText(why);
  ink([this, label] { label->setColor(palette().color(QPalette::Text)); });
  finish([this] {
    xAxis->setRange(0, 1);
    yAxis->setRange(0, 1);
  });
}

void Chart::showLines(const QString& unit, const std::vector<ChartLine>& lines, bool from_zero) {
  reset();
  for (const ChartLine& line : lines) {
    QCPGraph* graph = addGraph();
    graph->setName(line.name);
    const int width = line.isDense() ? 1 : 2;
    graph->setPen(QPen(line.colour, width, line.dashed ? Qt::DashLine : Qt::SolidLine));
    graph->setAntialiased(!line.isDense());
    const bool discs = line.points.size() < 60 && !line.dashed;
    if (discs) graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, 4));
    if (graphCount() > 1 && !line.dashed) graph->setLayer("grid");  // below the first
    setPoints(*graph, line.points);
  }
  if (lines.size() > 1) addLegend();
  setLabels(Words::tr("step"), unit);
  const bool empty =
      std::ranges::all_of(lines, [](const ChartLine& line) { return line.points.empty(); });
  finish([this, from_zero, empty] {
    if (empty) return setEmptyRanges();
    rescaleAxes();
    const QCPRange range = yAxis->range();
    const double room = range.size() > 0 ? 0.08 * range.size() : 0.5;
    yAxis->setRange(from_zero ? 0 : range.lower - room, range.upper + room);
  });
}

QCPBars* Chart::addStack(QCPAxis* key, QCPAxis* value, const ChartStack& stack, QCPBars* under) {
  auto* bars = new QCPBars(key, value);
  bars->setName(stack.name);
  bars->setBrush(stack.colour);
  bars->setPen(Qt::NoPen);
  bars->setAntialiased(false);
  bars->setWidth(0.72);
  if (under != nullptr) bars->moveAbove(under);
  return bars;
}

void Chart::showBars(const QString& unit, const QStringList& categories,
                     const std::vector<ChartStack>& stacks, std::optional<double> limit,
                     const QString& limit_label) {
  reset();
  auto ticker = QSharedPointer<QCPAxisTickerText>::create();
  for (int i = 0; i < categories.size(); ++i) ticker->addTick(i, categories[i]);
  yAxis->setTicker(ticker);
  yAxis->setRangeReversed(true);
  yAxis->grid()->setVisible(false);
  std::vector<double> totals(static_cast<std::size_t>(categories.size()), 0.0);
  QCPBars* under = nullptr;
  for (const ChartStack& stack : stacks) {
    under = addStack(yAxis, xAxis, stack, under);
    for (std::size_t i = 0; i < stack.values.size(); ++i) {
      under->addData(static_cast<double>(i), stack.values[i]);
      totals[i] += stack.values[i];
    }
  }
  const double most = totals.empty() ? 1 : *std::max_element(totals.begin(), totals.end());
  const double end = std::max({most, limit.value_or(0), 1e-9}) * 1.06;
  again_ = [=, this] { showBars(unit, categories, stacks, limit, limit_label); };
  const int above = limit ? QFontMetrics(limitFont()).size(0, limit_label).height() + 2 : 0;
  ranges_ = [this, end, above, count = static_cast<double>(categories.size())] {
    const double pixels = std::max(2 * above + 1, axisRect()->height());
    const double bars = count + 0.1;  // half a one below the first, a tenth more below the last
    xAxis->setRange(0, end);
    yAxis->setRange(-0.5 - bars * above / (pixels - above), count - 0.4);
  };
  setLabels(unit, {});
  addLegendBelow(static_cast<int>(categories.size()), above);
  if (limit) drawLimit(*limit, limit_label, end, most > *limit);
  finish(ranges_);
}

QFont Chart::limitFont() const { return scaled(font(), 0.85); }

// A dashed line, its label in the room above the bars: left of it, or from the axis on where there
// is too little room.
void Chart::drawLimit(double limit, const QString& text, double end, bool over) {
  auto* line = new QCPItemStraightLine(this);
  line->point1->setCoords(limit, 0);
  line->point2->setCoords(limit, 1);
  auto* label = new QCPItemText(this);
  label->setText(text);
  label->setFont(limitFont());
  ink([this, line, label, over] {
    const QColor ink = palette().color(QPalette::Text);
    line->setPen(
        QPen(over ? coloursOf(Tone::bad, themeOf(palette())).text : ink, 1.5, Qt::DashLine));
    label->setColor(ink);
    label->setBrush(palette().brush(QPalette::Base));
  });
  label->setPadding({3, 0, 3, 0});
  label->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
  const QSize size = QFontMetrics(label->font()).size(0, text);
  if (size.width() + 10 <= axisRect()->width() * limit / end) {
    label->setPositionAlignment(Qt::AlignRight | Qt::AlignTop);
    label->position->setCoords(limit - 0.005 * end, 0);
  } else {
    label->setPositionAlignment(Qt::AlignLeft | Qt::AlignTop);
    label->position->setTypeX(QCPItemPosition::ptAxisRectRatio);
    label->position->setCoords(0, 0);
  }
}

void Chart::showBeside(const QString& unit, const QStringList& categories,
                       const std::vector<ChartBars>& bars) {
  reset();
  auto ticker = QSharedPointer<QCPAxisTickerText>::create();
  for (int i = 0; i < categories.size(); ++i) ticker->addTick(i, categories[i]);
  yAxis->setTicker(ticker);
  yAxis->setRangeReversed(true);
  yAxis->grid()->setVisible(false);
  const double width = 0.76 / static_cast<double>(std::max<std::size_t>(1, bars.size()));
  double most = 1e-9;
  for (std::size_t b = 0; b < bars.size(); ++b) {
    QCPBars* drawn = addStack(yAxis, xAxis, {bars[b].name, bars[b].colour, {}}, nullptr);
    drawn->setWidth(width);
    auto* errors = new QCPErrorBars(yAxis, xAxis);
    errors->removeFromLegend();
    errors->setDataPlottable(drawn);
    errors->setErrorType(QCPErrorBars::etValueError);
    errors->setSymbolGap(0);
    ink([this, errors] { errors->setPen(QPen(palette().color(QPalette::Text), 1.4)); });
    const double shift = (static_cast<double>(b) + 0.5) * width - 0.38;
    for (std::size_t i = 0; i < bars[b].values.size(); ++i) {
      drawn->addData(static_cast<double>(i) + shift, bars[b].values[i]);
      errors->addData(bars[b].errors[i]);
      most = std::max(most, bars[b].values[i] + bars[b].errors[i]);
    }
  }
  addLegend();
  setLabels(unit, {});
  finish([this, most, count = static_cast<double>(categories.size())] {
    xAxis->setRange(0, most * 1.04);
    yAxis->setRange(-0.6, count - 0.4);
  });
}

void Chart::showColumns(const QString& unit, const std::vector<double>& positions,
                        const std::vector<ChartStack>& stacks) {
  reset();
  QCPBars* under = nullptr;
  const double width = positions.size() > 1 ? positions[1] - positions[0] : 1;
  for (const ChartStack& stack : stacks) {
    under = addStack(xAxis, yAxis, stack, under);
    under->setWidth(width * (positions.size() > 40 ? 1.0 : 0.8));
    for (std::size_t i = 0; i < positions.size() && i < stack.values.size(); ++i) {
      under->addData(positions[i], stack.values[i]);
    }
  }
  addLegend();
  setLabels(Words::tr("step"), unit);
  const double first = positions.empty() ? 0 : positions.front();
  const double last = positions.empty() ? 1 : positions.back();
  const bool empty = positions.empty() || stacks.empty();
  finish([this, width, first, last, empty] {
    if (empty) return setEmptyRanges();
    rescaleAxes();
    xAxis->setRange(first - 0.6 * width, last + 0.6 * width);
    yAxis->setRangeLower(0);
  });
}

void Chart::showSpans(const QString& unit, const QStringList& lanes,
                      const std::vector<ChartSpan>& spans, double end) {
  reset();
  auto ticker = QSharedPointer<QCPAxisTickerText>::create();
  for (int i = 0; i < lanes.size(); ++i) ticker->addTick(i, lanes[i]);
  yAxis->setTicker(ticker);
  yAxis->setRangeReversed(true);
  yAxis->grid()->setVisible(false);
  again_ = [=, this] { showSpans(unit, lanes, spans, end); };
  int widest = 0;
  for (const QString& lane : lanes) {
    widest = std::max(widest, fontMetrics().size(0, lane).width());
  }
  constexpr int kMargins = 40, kAbove = 95;  // ticks and the room at the right; title and axis
  const double lane =
      0.6 * (height() - kAbove) / static_cast<double>(std::max<qsizetype>(1, lanes.size()));
  const double inner = std::max(1, width() - widest - kMargins);
  for (const ChartSpan& span : spans) {
    auto* box = new QCPItemRect(this);
    box->topLeft->setCoords(span.start, span.lane - kSpanHalf);
    box->bottomRight->setCoords(span.start + span.length, span.lane + kSpanHalf);
    box->setBrush(span.colour);
    ink([this, box, chosen = span.chosen] {
      box->setPen(QPen(palette().color(chosen ? QPalette::Text : QPalette::Base), chosen ? 3 : 1));
    });
    // What is too narrow for its text has it upright, or its beginning.
    const QFont small = scaled(font(), 0.8);
    const QFontMetrics text(small);
    const double pixels = span.length / end * inner;
    if (pixels < text.height()) continue;
    const QString name = span.label.section('\n', 0, 0);
    const bool level = text.size(0, span.label).width() + 4 <= pixels;
    const bool upright = !level && text.size(0, name).width() <= lane;
    auto* label = new QCPItemText(this);
    label->position->setCoords(span.start + span.length / 2, span.lane);
    label->setText(level     ? span.label
                   : upright ? name
                             : text.elidedText(name, Qt::ElideRight, static_cast<int>(pixels)));
    if (upright) label->setRotation(-90);
    label->setFont(small);
    label->setColor(textOn(span.colour));
    label->setClipToAxisRect(true);
  }
  setLabels(unit, {});
  spans_ = spans;
  finish([this, end, count = static_cast<double>(std::max<qsizetype>(1, lanes.size()))] {
    xAxis->setRange(0, std::max(end, 1e-9) * 1.02);
    yAxis->setRange(-0.6, count - 0.4);
  });
}

}  // namespace tessera::gui
