// SPDX-License-Identifier: GPL-3.0-or-later
// The mesh with an arrow for each sender and receiver of a reshard's part.
//
// A row for each node, a cell for each GPU; where flows are between nodes a cell is a node. The
// width of an arrow grows with its bytes; of many the largest are drawn, and the caption says so.
// GUI thread.
#pragma once

#include <QPainter>
#include <QWidget>
#include <optional>
#include <utility>

#include "gui/reshard/flow_matrix_model.h"

namespace tessera::gui {

class FlowMesh : public QWidget {
  Q_OBJECT

 public:
  explicit FlowMesh(const FlowMatrixModel& flows, QWidget* parent = nullptr);

  /// `columns`: cells in a row.
  void setMesh(int columns);
  /// The end whose arrows stand out, -1 = all; and the one flow that does most.
  void choose(int end, std::optional<std::pair<int, int>> flow);
  /// "4 arrows: 1.2 GiB within nodes (grey), ..."
  QString caption() const;

  QSize sizeHint() const override { return {520, 320}; }
  QSize minimumSizeHint() const override { return {220, 140}; }

 signals:
  /// By a click; -1 = none.
  void endClicked(int end);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF cellOf(int end) const;
  int endAt(QPointF point) const;
  bool isBetweenNodes(const Flow& flow) const;
  void drawArrow(QPainter& painter, const Flow& flow, double share, bool strong) const;

  const FlowMatrixModel& flows_;
  int columns_ = 1, chosen_ = -1;
  std::optional<std::pair<int, int>> flow_;
};

}  // namespace tessera::gui
