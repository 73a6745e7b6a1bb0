// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/mesh/flow_mesh.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"

namespace tessera::gui {
namespace {

constexpr std::size_t kMostArrows = 400;
constexpr double kBend = 0.2;  // of an arrow's length: those to and fro stay apart

}  // namespace

FlowMesh::FlowMesh(const FlowMatrixModel& flows, QWidget* parent) : QWidget(parent), flows_(flows) {
  setAccessibleName(Words::tr("Arrows of the reshard over the mesh"));
  connect(&flows, &QAbstractItemModel::modelReset, this, [this] { update(); });
}

void FlowMesh::setMesh(int columns) {
  columns_ = std::max(1, columns);
  chosen_ = -1;
  flow_.reset();
  update();
}

void FlowMesh::choose(int end, std::optional<std::pair<int, int>> flow) {
  chosen_ = end;
  flow_ = flow;
  update();
}

QRectF FlowMesh::cellOf(int end) const {
  constexpr double kMostCell = 90, kGap = 0.42;
  const int rows = std::max(1, (flows_.rowCount() + columns_ - 1) / columns_);
  const double cell = std::min({kMostCell, width() / (columns_ + (columns_ + 1) * kGap),
                                height() / (rows + (rows + 1) * kGap)});
  const double step_x = (width() - columns_ * cell) / (columns_ + 1) + cell;
  const double step_y = (height() - rows * cell) / (rows + 1) + cell;
  const int row = end / columns_, column = end % columns_;
  return {step_x - cell + column * step_x, step_y - cell + row * step_y, cell, cell};
}

int FlowMesh::endAt(QPointF point) const {
  for (int end = 0; end < flows_.rowCount(); ++end) {
    if (cellOf(end).contains(point)) return end;
  }
  return -1;
}

// A row of cells is a node, but for cells that are nodes themselves.
bool FlowMesh::isBetweenNodes(const Flow& flow) const {
  return flows_.byNode() || flow.from / columns_ != flow.to / columns_;
}

void FlowMesh::drawArrow(QPainter& painter, const Flow& flow, double share, bool strong) const {
  const QRectF source = cellOf(flow.from), target = cellOf(flow.to);
  const QPointF way = target.center() - source.center();
  const double length = std::hypot(way.x(), way.y());
  if (length <= 0) return;
  const QPointF along = way / length, across(-along.y(), along.x());
  const double thick = std::min(0.09 * source.width(), 1 + 2.6 * std::sqrt(share));
  const double head = 4 + 2.2 * thick, aside = 0.2 * source.width();
  // From the rim of one cell to that of the other; those that come back go on the other side.
  const QPointF from = source.center() + along * 0.42 * source.width() + across * aside;
  const QPointF tip = target.center() - along * 0.46 * target.width() + across * aside;
  const QPointF bend = (from + tip) / 2 + across * std::min(kBend * length, 1.1 * source.width());
  const QPointF last = tip - bend, back = last / std::max(1.0, std::hypot(last.x(), last.y()));
  QColor colour = isBetweenNodes(flow) ? QColor(0xd5, 0x5e, 0x00) : QColor(0x00, 0x72, 0xb2);
  if (themeOf(palette()) == Theme::dark) colour = colour.lighter(140);
  colour.setAlphaF(strong ? 0.88F : 0.16F);
  QPainterPath path(from);
  path.quadTo(bend, tip - back * head * 0.9);
  painter.setPen(QPen(colour, thick, Qt::SolidLine, Qt::FlatCap));
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(path);
  const QPointF side(-back.y() * 0.5 * head, back.x() * 0.5 * head);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour);
  painter.drawPolygon(QPolygonF({tip, tip - back * head + side, tip - back * head - side}));
}

void FlowMesh::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  painter.setRenderHint(QPainter::Antialiasing);
  std::vector<Flow> flows = flows_.travelling();
  const double most = flows.empty() ? 1 : static_cast<double>(flows.front().bytes);
  const auto strong = [&](const Flow& flow) {
    if (flow_) return *flow_ == std::pair(flow.from, flow.to);
    return chosen_ < 0 || flow.from == chosen_ || flow.to == chosen_;
  };
  std::stable_partition(flows.begin(), flows.end(), strong);
  flows.resize(std::min(flows.size(), kMostArrows));
  for (int end = 0; end < flows_.rowCount(); ++end) {
    const QRectF cell = cellOf(end);
    const bool chosen = end == chosen_;
    const QColor fill = palette().color(chosen ? QPalette::Highlight : QPalette::Button);
    painter.setPen(QPen(palette().color(QPalette::PlaceholderText), 1));
    painter.setBrush(fill);
    painter.drawRoundedRect(cell, 4, 4);
    painter.setPen(textOn(fill));
    painter.drawText(cell, Qt::AlignCenter, QString::number(end));
  }
  for (auto flow = flows.rbegin(); flow != flows.rend(); ++flow) {  // the strongest on top
    drawArrow(painter, *flow, static_cast<double>(flow->bytes) / most, strong(*flow));
  }
}

QString FlowMesh::caption() const {
  const std::vector<Flow> flows = flows_.travelling();
  if (flows.empty()) return Words::tr("Nothing travels.");
  std::int64_t within = 0, between = 0;
  for (const Flow& flow : flows) (isBetweenNodes(flow) ? between : within) += flow.bytes;
  QString text = flows_.byNode()
                     ? Words::tr(
                           "%1 pairs of nodes: %2 between them (orange); what moves within "
                           "a node is not drawn")
                           .arg(flows.size())
                           .arg(bytesText(between))
                     : Words::tr("%1 pairs: %2 within nodes (blue), %3 between nodes (orange)")
                           .arg(flows.size())
                           .arg(bytesText(within), bytesText(between));
  if (flows.size() > kMostArrows) text += Words::tr("; the %1 largest are drawn").arg(kMostArrows);
  return Words::tr("%1.").arg(text);
}

void FlowMesh::mousePressEvent(QMouseEvent* event) { emit endClicked(endAt(event->position())); }

bool FlowMesh::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int end = endAt(help->pos());
  QString text;
  if (end >= 0) {
    std::int64_t sent = 0, received = 0;
    for (const Flow& flow : flows_.travelling()) {
      if (flow.from == end) sent += flow.bytes;
      if (flow.to == end) received += flow.bytes;
    }
    text = Words::tr("%1 sends %2, receives %3, keeps %4")
               .arg(flows_.endName(end), bytesText(sent), bytesText(received),
                    bytesText(flows_.bytes(end, end)));
  }
  QToolTip::showText(help->globalPos(), text, this);
  return true;
}

}  // namespace tessera::gui
