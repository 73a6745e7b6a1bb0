// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/mesh/mesh_canvas.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QToolTip>
#include <algorithm>

#include "gui/document/words.h"
#include "gui/timeline/zoom_keys.h"

namespace tessera::gui {
namespace {

constexpr double kLabelWidth = 58, kLabelHeight = 18;
constexpr double kRim = 4;                       // pixels beside the last row and column
constexpr double kMapWidth = 0.26, kMapRim = 6;  // of the canvas; pixels

QString nodeName(int node) { return Words::tr("node %1").arg(node); }

}  // namespace

MeshCanvas::MeshCanvas(const MeshModel& model, QWidget* parent) : QWidget(parent), model_(model) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(Words::tr("Mesh of ranks"));
  connect(&model, &QAbstractItemModel::modelReset, this, &MeshCanvas::reset);
  connect(&model, &QAbstractItemModel::dataChanged, this,
          [this](const QModelIndex&, const QModelIndex&, const QList<int>& what) {
            if (what.contains(Qt::BackgroundRole)) map_ = {};
            const int rank = model_.chosenRank();
            setAccessibleDescription(rank < 0 ? QString() : model_.describe(rank));
            update();
          });
}

// Where it is the same cluster one goes on looking at the same part.
void MeshCanvas::reset() {
  map_ = {};
  const QSizeF size = area().size();
  const MeshLayout layout(model_.ranks(), model_.columnCount(),
                          size.width() / std::max(size.height(), 1.0), model_.nodesPerLeaf());
  if (layout != layout_) {
    layout_ = layout;
    fitAll();
  }
  update();
}

// A cluster of few nodes has their names beside them, and the GPUs' above.
QRectF MeshCanvas::area() const {
  const bool few = model_.columnCount() > 0 && model_.rowCount() <= MeshLayout::kFewNodes;
  return QRectF(rect()).adjusted(few ? kLabelWidth : 0, few ? kLabelHeight : 0, -kRim, -kRim);
}

void MeshCanvas::lookAt(const MeshSight& sight) {
  const MeshLevel before = level();
  sight_ = sight;
  fitted_ = sight_ == sightOfAll(layout_, area().size());
  update();
  if (level() != before) emit levelChanged();
}

void MeshCanvas::fitAll() { lookAt(sightOfAll(layout_, area().size())); }

void MeshCanvas::fitChosen() {
  const int rank = model_.chosenRank();
  if (rank < 0 || layout_.empty()) return;
  const QRectF node = layout_.node(rank / layout_.gpusPerNode());
  lookAt(sightOf(layout_, node, area().size()));
}

QPoint MeshCanvas::placeOf(int rank) const {
  return (sight_.pixels(layout_.gpu(rank)).center() + area().topLeft()).toPoint();
}

void MeshCanvas::zoom(double factor, QPointF pixel) {
  lookAt(zoomed(sight_, layout_, factor, pixel - area().topLeft(), area().size()));
}

void MeshCanvas::changeLevel(int closer) {
  const int wanted = std::clamp(static_cast<int>(level()) + closer, 0, 2);
  const QSizeF size = area().size();
  const QPointF middle(size.width() / 2, size.height() / 2);
  lookAt(atLevel(static_cast<MeshLevel>(wanted), sight_, layout_, middle, size));
}

void MeshCanvas::choose(int rank) {
  if (rank < 0) return;
  emit chosen(rank);
  const QRectF cell = sight_.pixels(layout_.gpu(rank));
  const QRectF sight(QPointF(0, 0), area().size());
  if (sight.contains(cell)) return;
  const QPointF off(std::max(cell.right() - sight.right(), 0.0) + std::min(cell.left(), 0.0),
                    std::max(cell.bottom() - sight.bottom(), 0.0) + std::min(cell.top(), 0.0));
  lookAt(moved(sight_, layout_, off, area().size()));
}

QRectF MeshCanvas::minimap() const {
  if (fitted_ || layout_.empty()) return {};
  const double width = kMapWidth * area().width();
  const double scale =
      std::min(width / layout_.size().width(), 0.3 * area().height() / layout_.size().height());
  const QSizeF size = layout_.size() * scale;
  return {
      QPointF(area().right() - kMapRim - size.width(), area().bottom() - kMapRim - size.height()),
      size};
}

void MeshCanvas::goInMap(QPointF pixel) {
  const QRectF map = minimap();
  const QPointF at = (pixel - map.topLeft()) * (layout_.size().width() / map.width());
  const QPointF middle(area().width() / 2 / sight_.scale, area().height() / 2 / sight_.scale);
  const MeshSight wanted{sight_.scale, at - middle};
  lookAt(moved(wanted, layout_, {}, area().size()));
}

std::vector<int> MeshCanvas::namedNodes() const {
  std::vector<int> named;
  const double letters = fontMetrics().size(Qt::TextSingleLine, nodeName(0)).height();
  double free = -letters;  // from here on no name stands
  for (int node = 0; node < layout_.nodes(); ++node) {
    const double middle = sight_.pixels(layout_.node(node)).center().y();
    if (!named.empty() && middle - letters / 2 < free) continue;
    named.push_back(node);
    free = middle + letters / 2;
  }
  return named;
}

void MeshCanvas::drawLabels(QPainter& painter) const {
  painter.setPen(palette().color(QPalette::Text));
  const QRectF whole = area();
  painter.setClipRect(QRectF(0, whole.top(), whole.left(), whole.height()));
  for (const int node : namedNodes()) {
    const QRectF row = sight_.pixels(layout_.node(node)).translated(whole.topLeft());
    painter.drawText(QRectF(2, row.top(), kLabelWidth - 6, row.height()),
                     Qt::AlignVCenter | Qt::AlignLeft | Qt::TextDontClip, nodeName(node));
  }
  painter.setClipRect(QRectF(whole.left(), 0, whole.width(), whole.top()));
  for (int gpu = 0; gpu < std::min(layout_.gpusPerNode(), layout_.ranks()); ++gpu) {
    const QRectF column = sight_.pixels(layout_.gpu(gpu)).translated(whole.topLeft());
    const QString text = Words::tr("GPU %1").arg(gpu), number = QString::number(gpu);
    const bool roomy = painter.fontMetrics().horizontalAdvance(text) < column.width();
    painter.drawText(QRectF(column.left(), 0, column.width(), kLabelHeight), Qt::AlignCenter,
                     roomy ? text : number);
  }
  painter.setClipping(false);
}

void MeshCanvas::drawMinimap(QPainter& painter) {
  const QRectF map = minimap();
  if (map.isEmpty()) return;
  const double ratio = devicePixelRatioF();
  const QSize size = (map.size() * ratio).toSize();
  if (map_.isNull() || map_.size() != size) {
    map_ = QPixmap(size);
    map_.setDevicePixelRatio(ratio);
    map_.fill(palette().color(QPalette::Base));
    QPainter on(&map_);
    paint_minimap(on, model_, layout_, QRectF(QPointF(0, 0), map.size()), palette());
  }
  painter.fillRect(map.adjusted(-3, -3, 3, 3), palette().color(QPalette::Base));
  painter.drawPixmap(map.topLeft(), map_);
  painter.setPen(palette().color(QPalette::Mid));
  painter.drawRect(map.adjusted(-3, -3, 3, 3));
  const double scale = map.width() / layout_.size().width();
  const QRectF seen(sight_.corner * scale, area().size() / sight_.scale * scale);
  painter.setPen(QPen(palette().color(QPalette::Text), 2));
  painter.drawRect(seen.translated(map.topLeft()).intersected(map));
}

void MeshCanvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  if (layout_.empty()) return;
  if (area().left() > 0) drawLabels(painter);
  paint_mesh(painter, {&model_, layout_, sight_, area(), palette()});
  drawMinimap(painter);
  if (!hasFocus()) return;
  painter.setPen(palette().color(QPalette::Highlight));
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

// The same part stays in sight, or all.
void MeshCanvas::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  const bool all = fitted_;
  reset();
  all ? fitAll() : lookAt(moved(sight_, layout_, {}, area().size()));
}

void MeshCanvas::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) map_ = {};
  QWidget::changeEvent(event);
}

void MeshCanvas::keyPressEvent(QKeyEvent* event) {
  const QPointF middle = area().center();
  const int rank = model_.chosenRank();
  if (const double wider = zoomOf(event->key()); wider != 1) return zoom(1 / wider, middle);
  switch (event->key()) {
    case Qt::Key_PageUp:
      return changeLevel(-1);
    case Qt::Key_PageDown:
      return changeLevel(1);
    case Qt::Key_Home:
      return fitAll();
    case Qt::Key_F:
      return fitChosen();
    case Qt::Key_C:
      emit colouringWanted(event->modifiers() & Qt::ShiftModifier ? -1 : 1);
      return;
    case Qt::Key_Left:
      return choose(layout_.beside(rank, -1, 0));
    case Qt::Key_Right:
      return choose(layout_.beside(rank, 1, 0));
    case Qt::Key_Up:
      return choose(layout_.beside(rank, 0, -1));
    case Qt::Key_Down:
      return choose(layout_.beside(rank, 0, 1));
    default:
      QWidget::keyPressEvent(event);
  }
}

void MeshCanvas::wheelEvent(QWheelEvent* event) {
  zoom(1 / zoomOfWheel(event->angleDelta().y()), event->position());
  event->accept();
}

void MeshCanvas::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  from_ = event->position();
  drag_ = minimap().contains(from_) ? Drag::map : Drag::pressed;
  if (drag_ == Drag::map) goInMap(from_);
}

void MeshCanvas::mouseMoveEvent(QMouseEvent* event) {
  if (drag_ == Drag::map) return goInMap(event->position());
  const QPointF way = event->position() - from_;
  if (drag_ == Drag::pressed && way.manhattanLength() > 4) drag_ = Drag::pan;
  if (drag_ != Drag::pan) return;
  lookAt(moved(sight_, layout_, -way, area().size()));
  from_ = event->position();
}

void MeshCanvas::mouseReleaseEvent(QMouseEvent* event) {
  if (drag_ == Drag::pressed) choose(layout_.rankAt(cellsAt(event->position())));
  drag_ = Drag::none;
}

// One level closer, there.
void MeshCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  const int wanted = std::min(static_cast<int>(level()) + 1, 2);
  lookAt(atLevel(static_cast<MeshLevel>(wanted), sight_, layout_,
                 event->position() - area().topLeft(), area().size()));
}

// Of what is drawn there: a GPU, a node or a pod.
QString MeshCanvas::says(QPointF pixel) const {
  const int node = layout_.nodeAt(cellsAt(pixel)), rank = layout_.rankAt(cellsAt(pixel));
  if (node < 0) return {};
  if (level() == MeshLevel::gpus) return rank < 0 ? QString() : model_.describe(rank);
  if (level() == MeshLevel::nodes) return describe_nodes(model_, layout_, node, node + 1);
  const int first = layout_.podOf(node) * layout_.nodesPerPod();
  return describe_nodes(model_, layout_, first,
                        std::min(first + layout_.nodesPerPod(), layout_.nodes()));
}

bool MeshCanvas::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), says(help->pos()), this);
  return true;
}

}  // namespace tessera::gui
