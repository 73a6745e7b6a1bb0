// SPDX-License-Identifier: GPL-3.0-or-later
// The ranked plans as points of two measures that the user chooses; those that no other beats in
// both are joined by a line.
//
// A click, or the arrow keys and Enter, choose a row; the row that the session looks at is ringed.
// Shapes and colours both tell what a point is. GUI thread.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QTimer>
#include <array>
#include <vector>

#include "gui/explore/plan_points.h"
#include "gui/models/session.h"
#include "gui/views/chart.h"

namespace tessera::gui {

/// The picture. Draws what it is shown, and says which row is pointed to or chosen.
class PlanScatter : public Chart {
  Q_OBJECT

 public:
  explicit PlanScatter(QWidget* parent = nullptr);

  QSize minimumSizeHint() const override { return {220, 120}; }
  /// `chosen`: the row that is looked at; -1 = none.
  void showPlans(const PlanTableModel& plans, Measure x, Measure y, int chosen);
  /// The rows under a place of the widget, the nearest first.
  std::vector<int> rowsAt(const QPoint& place) const;
  /// Where a row's point is; nowhere near the widget where it has none.
  QPoint placeOf(int row) const;
  /// The row that keys have come to; -1 = none.
  int cursor() const { return cursor_; }

 signals:
  void rowPointed(int row);
  void rowChosen(int row);

 protected:
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  void draw();
  void drawPoints(const QString& name, const std::vector<PlanPoint>& points,
                  const QCPScatterStyle& style);
  void drawRing(int row, double size, Qt::PenStyle pen);
  void setTicks(QCPAxis* axis, Measure measure, double PlanPoint::*coordinate);
  void setRange(QCPAxis* axis, double PlanPoint::*coordinate);
  void step(int by);

  const PlanTableModel* plans_ = nullptr;
  Measure x_ = Measure::gpus, y_ = Measure::step;
  std::vector<PlanPoint> points_;  // by x, then y
  int chosen_ = -1, cursor_ = -1;
  QPoint pressed_;
  QTimer rest_;  // the arrows may pass points without planning each
};

class ScatterView : public QWidget {
 public:
  explicit ScatterView(Session& session, QWidget* parent = nullptr);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void axisChosen(std::size_t which);
  void redraw();
  void want();
  void say(int row);

  Session& session_;
  PlanScatter* scatter_;
  QLabel *state_, *says_;
  std::array<Measure, 2> measures_{Measure::gpus, Measure::step};
  std::array<QComboBox*, 2> axes_;  // horizontal, vertical
};

}  // namespace tessera::gui
