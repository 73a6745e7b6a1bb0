// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/scatter_view.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/views/elided_label.h"
#include "gui/views/fixed_text.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

constexpr int kRestMs = 250, kNearPixels = 9, kClickPixels = 3;
constexpr double kLogFrom = 12;  // of the largest to the smallest: small ones would lie on the axis

bool contains(const std::vector<PlanPoint>& points, int row) {
  return std::any_of(points.begin(), points.end(),
                     [&](const PlanPoint& point) { return point.row == row; });
}

/// Of one coordinate.
struct Extent {
  double least = 0, most = 0;
  bool is_log() const { return least > 0 && most / least >= kLogFrom; }
};

Extent extentOf(const std::vector<PlanPoint>& points, double PlanPoint::*coordinate) {
  if (points.empty()) return {};
  Extent extent{points.front().*coordinate, points.front().*coordinate};
  for (const PlanPoint& point : points) {
    extent.least = std::min(extent.least, point.*coordinate);
    extent.most = std::max(extent.most, point.*coordinate);
  }
  return extent;
}

/// 1, 2, 5, 10, ... or powers of two, as far as the extent goes.
QSharedPointer<QCPAxisTicker> logTicker(const Extent& extent, bool powers_of_two) {
  auto ticker = QSharedPointer<QCPAxisTickerText>::create();
  const double from = 0.7 * extent.least, to = 1.4 * extent.most;
  const auto put = [&](double tick) {
    if (tick >= from && tick <= to) ticker->addTick(tick, QString::number(tick));
  };
  if (powers_of_two) {
    for (double tick = 1; tick <= to; tick *= 2) put(tick);
    return ticker;
  }
  for (double decade = std::pow(10, std::floor(std::log10(from))); decade <= to; decade *= 10) {
    for (const double factor : {1, 2, 5}) put(factor * decade);
  }
  return ticker;
}

QComboBox* axisChoice(const QString& name, Measure first) {
  auto* box = new QComboBox;
  for (const Measure measure : kEveryMeasure) box->addItem(nameOf(measure));
  box->setCurrentIndex(static_cast<int>(first));
  box->setAccessibleName(name);
  return box;
}

}  // namespace

PlanScatter::PlanScatter(QWidget* parent) : Chart({}, parent) {
  setAccessibleName(Words::tr("Plans as points"));
  rest_.setSingleShot(true);
  rest_.setInterval(kRestMs);
  connect(&rest_, &QTimer::timeout, this, [this] {
    if (cursor_ >= 0) emit rowChosen(cursor_);
  });
}

void PlanScatter::showPlans(const PlanTableModel& plans, Measure x, Measure y, int chosen) {
  if (x != x_ || y != y_) fit();
  plans_ = &plans;
  x_ = x;
  y_ = y;
  points_ = pointsOf(plans, x, y);
  std::sort(points_.begin(), points_.end(), [](const PlanPoint& a, const PlanPoint& b) {
    return std::pair(a.x, a.y) < std::pair(b.x, b.y);
  });
  if (chosen != chosen_ || !contains(points_, cursor_)) cursor_ = chosen;
  chosen_ = chosen;
  setAccessibleDescription(cursor_ >= 0 && cursor_ < plans.rowCount() ? describeRow(plans, cursor_)
                                                                      : QString());
  draw();
}

void PlanScatter::draw() {
  if (points_.empty())
    return showNothing(plans_ == nullptr || plans_->rowCount() == 0
                           ? Words::tr("No plan is open.")
                           : Words::tr("No plan states both."));
  reset();
  const QColor text = palette().color(QPalette::Text), link = palette().color(QPalette::Link);
  const QColor base = palette().color(QPalette::Base);
  const QColor faint = palette().color(QPalette::Disabled, QPalette::Text);
  const std::vector<PlanPoint> front = unbeaten(points_);
  std::vector<PlanPoint> answer, others;
  for (const PlanPoint& point : points_) {
    if (point.row == 0) answer.push_back(point);
    if (point.row != 0 && !contains(front, point.row)) others.push_back(point);
  }
  QCPGraph* line = addGraph();
  line->setPen(QPen(link, 2));
  line->removeFromLegend();
  for (const PlanPoint& point : front) line->addData(point.x, point.y);
  using Style = QCPScatterStyle;
  drawPoints(Words::tr("another plan"), others, Style(Style::ssCircle, QPen(faint, 1.6), base, 8));
  drawPoints(Words::tr("no plan here beats it in both"), front,
             Style(Style::ssDisc, QPen(link, 1), link, 9));
  drawPoints(Words::tr("row 1, the answer"), answer,
             Style(Style::ssDiamond, QPen(text, 1.8), link, 13));
  drawRing(chosen_, 19, Qt::SolidLine);
  if (hasFocus() && cursor_ != chosen_) drawRing(cursor_, 19, Qt::DotLine);
  setLabels(unitOf(*plans_, x_), unitOf(*plans_, y_));
  addLegend();
  setTicks(xAxis, x_, &PlanPoint::x);
  setTicks(yAxis, y_, &PlanPoint::y);
  finish([this] {
    setRange(xAxis, &PlanPoint::x);
    setRange(yAxis, &PlanPoint::y);
  });
}

void PlanScatter::drawPoints(const QString& name, const std::vector<PlanPoint>& points,
                             const QCPScatterStyle& style) {
  if (points.empty()) return;
  QCPGraph* graph = addGraph();
  graph->setName(name);
  graph->setLineStyle(QCPGraph::lsNone);
  graph->setScatterStyle(style);
  for (const PlanPoint& point : points) graph->addData(point.x, point.y);
}

void PlanScatter::drawRing(int row, double size, Qt::PenStyle pen) {
  for (const PlanPoint& point : points_) {
    if (point.row != row) continue;
    QCPGraph* graph = addGraph();
    graph->removeFromLegend();
    graph->setLineStyle(QCPGraph::lsNone);
    graph->setScatterStyle({QCPScatterStyle::ssCircle,
                            QPen(palette().color(QPalette::Text), 2, pen), Qt::NoBrush, size});
    graph->addData(point.x, point.y);
  }
}

void PlanScatter::setTicks(QCPAxis* axis, Measure measure, double PlanPoint::*coordinate) {
  const Extent extent = extentOf(points_, coordinate);
  if (extent.is_log()) {
    axis->setTicker(logTicker(extent, measure == Measure::gpus));
  } else if (measure == Measure::gpus) {  // no half ones
    auto ticker = QSharedPointer<QCPAxisTickerFixed>::create();
    ticker->setScaleStrategy(QCPAxisTickerFixed::ssMultiples);
    axis->setTicker(ticker);
  }
}

void PlanScatter::setRange(QCPAxis* axis, double PlanPoint::*coordinate) {
  const auto [least, most] = extentOf(points_, coordinate);
  if (extentOf(points_, coordinate).is_log()) {
    const double room = std::pow(most / least, 0.06);
    axis->setScaleType(QCPAxis::stLogarithmic);
    axis->setRange(least / room, most * room);
    return;
  }
  const double room = most > least ? 0.08 * (most - least) : std::max(0.1 * most, 1e-9);
  axis->setScaleType(QCPAxis::stLinear);
  axis->setRange(least - room, most + room);
}

QPoint PlanScatter::placeOf(int row) const {
  for (const PlanPoint& point : points_) {
    if (point.row != row) continue;
    return {static_cast<int>(std::lround(xAxis->coordToPixel(point.x))),
            static_cast<int>(std::lround(yAxis->coordToPixel(point.y)))};
  }
  return {-1000, -1000};
}

std::vector<int> PlanScatter::rowsAt(const QPoint& place) const {
  std::vector<std::pair<double, int>> near;
  for (const PlanPoint& point : points_) {
    const double away = std::hypot(xAxis->coordToPixel(point.x) - place.x(),
                                   yAxis->coordToPixel(point.y) - place.y());
    if (away <= kNearPixels) near.emplace_back(away, point.row);
  }
  std::sort(near.begin(), near.end());
  std::vector<int> rows;
  for (const auto& [away, row] : near) rows.push_back(row);
  return rows;
}

bool PlanScatter::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return Chart::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  QStringList texts;
  for (const int row : rowsAt(help->pos())) texts << describeRow(*plans_, row);
  if (texts.isEmpty()) return Chart::event(event);
  QToolTip::showText(help->globalPos(), plainTip(texts.join("\n\n")), this);
  return true;
}

// From one point to the next by x, whatever lies between.
void PlanScatter::step(int by) {
  if (points_.empty()) return;
  const auto at = std::find_if(points_.begin(), points_.end(),
                               [this](const PlanPoint& point) { return point.row == cursor_; });
  const auto last = static_cast<int>(points_.size()) - 1;
  const int next =
      at == points_.end() ? 0 : std::clamp(static_cast<int>(at - points_.begin()) + by, 0, last);
  cursor_ = points_[static_cast<std::size_t>(next)].row;
  setAccessibleDescription(describeRow(*plans_, cursor_));
  rest_.start();
  draw();
  emit rowPointed(cursor_);
}

void PlanScatter::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Down:
      return step(-1);
    case Qt::Key_Right:
    case Qt::Key_Up:
      return step(1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
      rest_.stop();
      if (cursor_ >= 0) emit rowChosen(cursor_);
      return;
    default:
      Chart::keyPressEvent(event);
  }
}

void PlanScatter::mousePressEvent(QMouseEvent* event) {
  pressed_ = event->pos();
  Chart::mousePressEvent(event);
}

void PlanScatter::mouseReleaseEvent(QMouseEvent* event) {
  Chart::mouseReleaseEvent(event);
  if ((event->pos() - pressed_).manhattanLength() > kClickPixels) return;  // a drag
  const std::vector<int> rows = rowsAt(event->pos());
  if (rows.empty()) return;
  rest_.stop();
  cursor_ = rows.front();
  emit rowPointed(cursor_);
  emit rowChosen(cursor_);
}

void PlanScatter::focusInEvent(QFocusEvent* event) {
  Chart::focusInEvent(event);
  draw();
}

void PlanScatter::focusOutEvent(QFocusEvent* event) {
  Chart::focusOutEvent(event);
  draw();
}

void PlanScatter::changeEvent(QEvent* event) {
  Chart::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && plans_ != nullptr) draw();
}

ScatterView::ScatterView(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      scatter_(new PlanScatter),
      state_(new ElidedLabel),
      says_(new QLabel),
      axes_{axisChoice(Words::tr("Horizontal axis"), Measure::gpus),
            axisChoice(Words::tr("Vertical axis"), Measure::step)} {
  auto* top = new QHBoxLayout;
  top->addWidget(axes_[1]);
  top->addWidget(new QLabel(Words::tr("against")));
  top->addWidget(axes_[0]);
  top->addWidget(state_, 1);
  says_->setWordWrap(true);
  says_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  says_->setAccessibleName(Words::tr("The plan that is pointed to"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 4, 0, 0);
  layout->setSpacing(4);
  layout->addLayout(top);
  layout->addWidget(scatter_, 1);
  layout->addWidget(says_);
  for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
    connect(axes_[which], &QComboBox::currentIndexChanged, this,
            [this, which] { axisChosen(which); });
  }
  connect(scatter_, &PlanScatter::rowChosen, this, [this](int row) { session_.selectRow(row); });
  connect(scatter_, &PlanScatter::rowPointed, this, [this](int row) { say(row); });
  const PlanTableModel* plans = session.plans();
  connect(plans, &QAbstractItemModel::modelReset, scatter_, &Chart::fit);
  connect(plans, &QAbstractItemModel::dataChanged, this, [this] { redraw(); });
  connect(plans, &QAbstractItemModel::rowsInserted, this, [this] { redraw(); });
  connect(&session, &Session::documentChanged, this, [this] { redraw(); });
  connect(&session, &Session::frontChanged, this, [this] { redraw(); });
}

// Both axes never show the same: the other one takes what this one had.
void ScatterView::axisChosen(std::size_t which) {
  const Measure before = measures_[which];
  measures_[which] = kEveryMeasure[static_cast<std::size_t>(axes_[which]->currentIndex())];
  const std::size_t other = 1 - which;
  if (measures_[other] == measures_[which]) {
    measures_[other] = before;
    const QSignalBlocker quiet(axes_[other]);
    axes_[other]->setCurrentIndex(static_cast<int>(before));
  }
  redraw();
}

void ScatterView::redraw() {
  if (!isVisible()) return;
  const FrontSearch& front = session_.front();
  state_->setText(front.isLooking()            ? Words::tr("looking for plans on fewer GPUs")
                  : !front.problem().isEmpty() ? front.problem().section('\n', 0, 0)
                  : front.isCancelled()        ? Words::tr("cancelled")
                  : front.isBusy()             ? Words::tr("planning each in full, for its memory")
                                               : "");
  state_->setToolTip(front.problem());
  scatter_->showPlans(*session_.plans(), measures_[0], measures_[1], session_.selectedRow());
  say(scatter_->cursor());
  want();
}

// Only for who looks: a front takes as many searches as there are numbers of GPUs.
void ScatterView::want() {
  session_.wantFront();
  if (!session_.front().isLooking()) session_.wantEveryPlan();
}

void ScatterView::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  redraw();
}

void ScatterView::say(int row) {
  const PlanTableModel& plans = *session_.plans();
  const bool known = row >= 0 && row < plans.rowCount();
  says_->setText(known ? summaryOf(plans, row) : QString());
  says_->setToolTip(known ? describeRow(plans, row) : QString());
}

namespace {

const RegisteredView kScatterView(
    {"scatter", Place::tabs, 1, 1, QT_TRANSLATE_NOOP("Words", "Trade-offs"),
     [](Session& session) -> QWidget* { return new ScatterView(session); },
     [](Session& session) { return pointsCsv(*session.plans()); },
     [](Session& session) { return pointsJson(*session.plans()); }});

}  // namespace
}  // namespace tessera::gui
