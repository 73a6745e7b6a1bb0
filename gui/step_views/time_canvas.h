// SPDX-License-Identifier: GPL-3.0-or-later
// A picture over the time of a step that one moves about in: W A S D and F, the wheel, dragging;
// and a moment, which the pointer shows and a click or `.` and `,` keep.
//
// What is drawn, and what a moment says, is a subclass's. Keeps no facts but where one looks. GUI
// thread.
#pragma once

#include <QPainter>
#include <QPoint>
#include <QWidget>
#include <algorithm>
#include <optional>
#include <utility>

#include "gui/step_views/time_painter.h"

namespace tessera::gui {

class TimeCanvas : public QWidget {
  Q_OBJECT

 public:
  static constexpr int kRight = 14;  // pixels that are left free

  /// `left`: pixels before the time begins.
  TimeCanvas(const QString& name, int left, QWidget* parent = nullptr);

  void fitAll();
  /// What is chosen, else all.
  void fitChosen();
  const TimeAxis& axis() const { return axis_; }
  int timeWidth() const { return std::max(1, width() - left_ - kRight); }
  /// Where the pointer is, else what was kept.
  std::optional<double> moment() const;
  void keep(std::optional<double> ns);

  QSize minimumSizeHint() const override { return {320, 160}; }

 signals:
  void momentChanged();
  /// A click, or Enter at what was kept.
  void entered(double ns);

 protected:
  /// Another step: all of it is in sight, nothing is kept. 0 = there is none.
  void setEnd(double end_ns);
  /// What the moment shows is another.
  void moved();

  /// What is said where nothing can be drawn.
  void setWhy(const QString& why);

  /// Nothing can be drawn.
  virtual bool empty() const = 0;
  /// Precondition: not empty().
  virtual void draw(QPainter& painter, const TimePicture& at) = 0;
  /// Where the next thing happens behind a time (step 1) or before it (-1).
  virtual double nextMoment(double ns, int step) const = 0;
  virtual std::optional<std::pair<double, double>> chosenTime() const = 0;
  /// Of a moment, in lines.
  virtual QString says(double ns) const = 0;

  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  enum class Drag { none, pressed, pan };

  void setAxis(const TimeAxis& axis);
  void zoom(double factor);
  void pan(double pixels);
  void stepTo(int step);
  std::optional<double> timeUnder(QPoint point) const;

  int left_;
  QString why_;
  double end_ns_ = 0;
  TimeAxis axis_;
  bool fitted_ = true;  // all is in sight, and stays so when the size changes
  std::optional<double> kept_;
  Drag drag_ = Drag::none;
  QPoint from_, pointer_{-1, -1};
};

}  // namespace tessera::gui
