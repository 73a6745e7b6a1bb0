// SPDX-License-Identifier: GPL-3.0-or-later
// The ranks of a plan as a picture that is moved about in: pods, nodes or GPUs by how closely it is
// looked at, with a small map of all while a part is in sight.
//
// + - and the wheel zoom, a drag moves, PgUp and PgDn change the level, Home shows all, F the
// chosen rank. Arrows go from GPU to GPU, a click chooses, C asks for other colours. Keeps no facts
// but where one looks. GUI thread.
#pragma once

#include <QPixmap>
#include <QWidget>
#include <vector>

#include "gui/mesh/mesh_painter.h"

namespace tessera::gui {

class MeshCanvas : public QWidget {
  Q_OBJECT

 public:
  /// `model` outlives it.
  explicit MeshCanvas(const MeshModel& model, QWidget* parent = nullptr);

  void fitAll();
  void fitChosen();
  /// Closer by that factor; below 1 farther away.
  void zoomBy(double factor) { zoom(factor, area().center()); }
  MeshLevel level() const { return levelOf(sight_, layout_); }
  const MeshLayout& layout() const { return layout_; }
  const MeshSight& sight() const { return sight_; }
  /// The middle of a rank's cell, wherever it is.
  QPoint placeOf(int rank) const;
  /// Nodes whose names are drawn beside their rows: in rows lower than letters not all.
  std::vector<int> namedNodes() const;
  /// Of the small map; empty while all is in sight.
  QRectF minimap() const;

  QSize minimumSizeHint() const override { return {200, 120}; }

 signals:
  void chosen(int rank);
  void levelChanged();
  /// The next meaning of the colours (1) or the one before (-1).
  void colouringWanted(int step);

 protected:
  bool event(QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;

 private:
  enum class Drag { none, pressed, pan, map };

  void reset();
  void lookAt(const MeshSight& sight);
  void zoom(double factor, QPointF pixel);
  void changeLevel(int closer);
  void choose(int rank);
  void goInMap(QPointF pixel);
  QRectF area() const;
  QPointF cellsAt(QPointF pixel) const { return sight_.cells(pixel - area().topLeft()); }
  void drawLabels(QPainter& painter) const;
  void drawMinimap(QPainter& painter);
  QString says(QPointF pixel) const;

  const MeshModel& model_;
  MeshLayout layout_;
  MeshSight sight_;
  bool fitted_ = true;  // all is in sight, and stays so when the size changes
  QPixmap map_;         // null: to be drawn anew
  Drag drag_ = Drag::none;
  QPointF from_;
};

}  // namespace tessera::gui
