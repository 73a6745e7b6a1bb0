// SPDX-License-Identifier: GPL-3.0-or-later
// Where the GPUs of a cluster lie in a picture that is moved about in, and how closely it is looked
// at.
//
// Places are in units of a GPU's cell. A node is a block of cells, GPUs in the order of their
// ranks; nodes fill pods row by row: those that share a leaf switch, or 32 where the cluster states
// none; pods fill the plane. What fits on few rows has a row per node. Pure values.
#pragma once

#include <QPointF>
#include <QRectF>
#include <QSizeF>

namespace tessera::gui {

class MeshLayout {
 public:
  static constexpr int kUnstatedPod = 32, kFewNodes = 16;

  MeshLayout() = default;
  /// `ranks` may end within a node. `aspect`: width over height of the picture. `nodes_per_leaf`: 1
  /// where no two share a leaf switch.
  MeshLayout(int ranks, int gpus_per_node, double aspect, int nodes_per_leaf = 1);

  int ranks() const { return ranks_; }
  int gpusPerNode() const { return per_node_; }
  int nodes() const { return per_node_ == 0 ? 0 : (ranks_ + per_node_ - 1) / per_node_; }
  int nodesPerPod() const { return per_pod_; }
  int pods() const { return (nodes() + per_pod_ - 1) / per_pod_; }
  int podOf(int node) const { return node / per_pod_; }
  bool empty() const { return ranks_ == 0; }

  QSizeF size() const { return size_; }
  QRectF gpu(int rank) const;
  /// Around all its cells, and the pod's around all its nodes.
  QRectF node(int node) const;
  QRectF pod(int pod) const;
  /// -1 = none there.
  int rankAt(QPointF place) const;
  int nodeAt(QPointF place) const;
  /// The rank that lies beside, where the arrow (-1, 0), (0, 1) and so on leads; else the same.
  int beside(int rank, int right, int down) const;
  bool operator==(const MeshLayout&) const = default;

 private:
  QPointF nodeCorner(int node) const;

  int ranks_ = 0, per_node_ = 0, per_pod_ = kUnstatedPod;
  int node_columns_ = 1, node_rows_ = 1;  // cells of a node
  int pod_columns_ = 1;                   // nodes beside one another in a pod
  int columns_ = 1;                       // pods beside one another
  QSizeF size_;
};

/// What the picture shows at that closeness: shares of each pod, of each node, or every GPU.
enum class MeshLevel { pods, nodes, gpus };

/// Which part of the layout is in sight: pixels of a cell, and what lies at the picture's corner.
struct MeshSight {
  static constexpr double kMostScale = 110;

  double scale = 1;
  QPointF corner;  // in cells

  QRectF pixels(const QRectF& cells) const {
    return {(cells.x() - corner.x()) * scale, (cells.y() - corner.y()) * scale,
            cells.width() * scale, cells.height() * scale};
  }
  QPointF cells(QPointF pixel) const { return corner + pixel / scale; }
  bool operator==(const MeshSight&) const = default;
};

/// All of it in a picture of that size.
MeshSight sightOfAll(const MeshLayout& layout, QSizeF picture);
/// These cells in the middle, with a rim.
MeshSight sightOf(const MeshLayout& layout, const QRectF& cells, QSizeF picture);
/// Closer by `factor` (below 1: farther away), while what lies at `pixel` stays there.
MeshSight zoomed(const MeshSight& sight, const MeshLayout& layout, double factor, QPointF pixel,
                 QSizeF picture);
MeshSight moved(const MeshSight& sight, const MeshLayout& layout, QPointF pixels, QSizeF picture);
MeshLevel levelOf(const MeshSight& sight, const MeshLayout& layout);
/// The closeness at which that level begins, with the same middle.
MeshSight atLevel(MeshLevel level, const MeshSight& sight, const MeshLayout& layout, QPointF middle,
                  QSizeF picture);

}  // namespace tessera::gui
