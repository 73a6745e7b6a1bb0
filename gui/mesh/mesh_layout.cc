// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/mesh/mesh_layout.h"

#include <algorithm>
#include <cmath>

namespace tessera::gui {
namespace {

constexpr double kNodeGap = 0.25, kPodGap = 1.0;     // cells
constexpr double kGpuPixels = 7, kNodePixels = 2.2;  // of a cell, from which they are drawn
constexpr double kRim = 0.06;                        // of the picture, around what is fitted

int rows_of(int count, int columns) { return (count + columns - 1) / columns; }

/// Columns of `count` blocks of that size for a picture of the aspect.
int columns_for(int count, double width, double height, double aspect) {
  int best = 1;
  double least = -1;
  for (int columns = 1; columns <= count; ++columns) {
    const double wide = columns * width, high = rows_of(count, columns) * height;
    const double scale = std::max(wide / aspect, high);  // height of the picture that holds it
    if (least < 0 || scale < least * (1 - 1e-9)) {
      least = scale;
      best = columns;
    }
  }
  return best;
}

// Within the layout, or in the middle where it is smaller than the picture.
QPointF held(QPointF corner, const MeshLayout& layout, double scale, QSizeF picture) {
  const auto hold = [](double at, double whole, double sight) {
    return whole <= sight ? (whole - sight) / 2 : std::clamp(at, 0.0, whole - sight);
  };
  return {hold(corner.x(), layout.size().width(), picture.width() / scale),
          hold(corner.y(), layout.size().height(), picture.height() / scale)};
}

double least_scale(const MeshLayout& layout, QSizeF picture) {
  return std::min(picture.width() / layout.size().width(),
                  picture.height() / layout.size().height());
}

}  // namespace

MeshLayout::MeshLayout(int ranks, int gpus_per_node, double aspect, int nodes_per_leaf)
    : ranks_(ranks), per_node_(gpus_per_node) {
  if (ranks <= 0 || gpus_per_node <= 0) {
    *this = {};
    return;
  }
  const bool few = nodes() <= kFewNodes;
  if (!few && nodes_per_leaf > 1) per_pod_ = nodes_per_leaf;
  node_columns_ = few || per_node_ < 4 ? per_node_ : rows_of(per_node_, per_node_ % 2 == 0 ? 2 : 1);
  node_rows_ = rows_of(per_node_, node_columns_);
  const int in_pod = std::min(nodes(), per_pod_);
  // Pods are as wide as they are high, about.
  pod_columns_ = few ? 1
                     : columns_for(in_pod, node_columns_ + kNodeGap, node_rows_ + kNodeGap,
                                   pods() == 1 ? aspect : 1.4);
  const QRectF first = pod(0);
  columns_ = columns_for(pods(), first.width() + kPodGap, first.height() + kPodGap, aspect);
  size_ = {columns_ * (first.width() + kPodGap) - kPodGap,
           rows_of(pods(), columns_) * (first.height() + kPodGap) - kPodGap};
}

QRectF MeshLayout::pod(int pod) const {
  const int in_pod = std::min(nodes(), per_pod_);
  const int beside = std::min(in_pod, pod_columns_), below = rows_of(in_pod, pod_columns_);
  const double width = beside * (node_columns_ + kNodeGap) - kNodeGap;
  const double height = below * (node_rows_ + kNodeGap) - kNodeGap;
  const int row = pod / columns_;
  return {(pod % columns_) * (width + kPodGap), row * (height + kPodGap), width, height};
}

QPointF MeshLayout::nodeCorner(int node) const {
  const int inside = node % per_pod_, row = inside / pod_columns_;
  return pod(podOf(node)).topLeft() + QPointF((inside % pod_columns_) * (node_columns_ + kNodeGap),
                                              row * (node_rows_ + kNodeGap));
}

QRectF MeshLayout::node(int node) const {
  return {nodeCorner(node), QSizeF(node_columns_, node_rows_)};
}

QRectF MeshLayout::gpu(int rank) const {
  const int inside = rank % per_node_, row = inside / node_columns_;
  return {nodeCorner(rank / per_node_) + QPointF(inside % node_columns_, row), QSizeF(1, 1)};
}

int MeshLayout::nodeAt(QPointF place) const {
  if (empty()) return -1;
  const QRectF first = pod(0);
  const int column = static_cast<int>(std::floor(place.x() / (first.width() + kPodGap)));
  const int row = static_cast<int>(std::floor(place.y() / (first.height() + kPodGap)));
  if (column < 0 || column >= columns_ || row < 0) return -1;
  const int in = row * columns_ + column;
  if (in >= pods()) return -1;
  const QPointF inside = place - pod(in).topLeft();
  const int x = static_cast<int>(std::floor(inside.x() / (node_columns_ + kNodeGap)));
  const int y = static_cast<int>(std::floor(inside.y() / (node_rows_ + kNodeGap)));
  if (x < 0 || x >= pod_columns_ || y < 0 || y * pod_columns_ + x >= per_pod_) return -1;
  const int found = in * per_pod_ + y * pod_columns_ + x;
  return found < nodes() && node(found).contains(place) ? found : -1;
}

int MeshLayout::rankAt(QPointF place) const {
  const int found = nodeAt(place);
  if (found < 0) return -1;
  const QPointF inside = place - nodeCorner(found);
  const int x = std::min(static_cast<int>(inside.x()), node_columns_ - 1);
  const int y = std::min(static_cast<int>(inside.y()), node_rows_ - 1);
  const int gpu = y * node_columns_ + x, rank = found * per_node_ + gpu;
  return gpu < per_node_ && rank < ranks_ ? rank : -1;
}

// Over gaps as well: half a cell further each time.
int MeshLayout::beside(int rank, int right, int down) const {
  if (rank < 0 || rank >= ranks_) return empty() ? -1 : 0;
  const QPointF step(0.5 * right, 0.5 * down);
  const QRectF all(QPointF(0, 0), size_);
  for (QPointF at = gpu(rank).center() + 2 * step; all.contains(at); at += step) {
    const int found = rankAt(at);
    if (found >= 0 && found != rank) return found;
  }
  return rank;
}

MeshSight sightOfAll(const MeshLayout& layout, QSizeF picture) {
  if (layout.empty()) return {};
  MeshSight sight{std::min(least_scale(layout, picture), MeshSight::kMostScale), {}};
  sight.corner = held({}, layout, sight.scale, picture);
  return sight;
}

MeshSight sightOf(const MeshLayout& layout, const QRectF& cells, QSizeF picture) {
  if (layout.empty()) return {};
  const double closest =
      std::min(picture.width() / cells.width(), picture.height() / cells.height());
  MeshSight sight;
  sight.scale = std::clamp(closest * (1 - 2 * kRim), sightOfAll(layout, picture).scale,
                           MeshSight::kMostScale);
  const QPointF half(picture.width() / 2 / sight.scale, picture.height() / 2 / sight.scale);
  sight.corner = held(cells.center() - half, layout, sight.scale, picture);
  return sight;
}

MeshSight zoomed(const MeshSight& sight, const MeshLayout& layout, double factor, QPointF pixel,
                 QSizeF picture) {
  if (layout.empty()) return sight;
  const QPointF at = sight.cells(pixel);
  MeshSight closer;
  closer.scale =
      std::clamp(sight.scale * factor, sightOfAll(layout, picture).scale, MeshSight::kMostScale);
  closer.corner = held(at - pixel / closer.scale, layout, closer.scale, picture);
  return closer;
}

MeshSight moved(const MeshSight& sight, const MeshLayout& layout, QPointF pixels, QSizeF picture) {
  return {sight.scale, held(sight.corner + pixels / sight.scale, layout, sight.scale, picture)};
}

// A cluster of few nodes has no use for shares.
MeshLevel levelOf(const MeshSight& sight, const MeshLayout& layout) {
  if (sight.scale >= kGpuPixels || layout.nodes() <= MeshLayout::kFewNodes) return MeshLevel::gpus;
  return sight.scale >= kNodePixels || layout.pods() == 1 ? MeshLevel::nodes : MeshLevel::pods;
}

MeshSight atLevel(MeshLevel level, const MeshSight& sight, const MeshLayout& layout, QPointF middle,
                  QSizeF picture) {
  if (level == MeshLevel::pods) return sightOfAll(layout, picture);
  const double wanted = level == MeshLevel::nodes ? 1.6 * kNodePixels : 4 * kGpuPixels;
  return zoomed(sight, layout, wanted / sight.scale, middle, picture);
}

}  // namespace tessera::gui
