// SPDX-License-Identifier: GPL-3.0-or-later
// The load of links over the step that one moves about in (time_canvas.h): the lane under the
// pointer or that arrows go to is looked at, PgUp and PgDn turn the page. GUI thread.
#pragma once

#include <memory>

#include "gui/document/view_state.h"
#include "gui/step_views/link_painter.h"
#include "gui/step_views/time_canvas.h"

namespace tessera::gui {

class LinkCanvas : public TimeCanvas {
  Q_OBJECT

 public:
  explicit LinkCanvas(QWidget* parent = nullptr);

  /// Another step; nullptr, or one in which nothing crosses a link: `why` is shown.
  void setIndex(std::shared_ptr<const TimelineIndex> index, const QString& why);
  /// What all views look at: the rank's lanes are marked, one of them comes into sight.
  void look(const ViewState& view);
  /// The lane that is looked at; -1 = none.
  void goTo(int lane);

  const LinkSteps& steps() const { return picture_.steps; }
  const LinkPicture& picture() const { return picture_; }

 signals:
  /// A click on its name.
  void laneClicked(int lane);

 protected:
  bool empty() const override { return steps().empty(); }
  void draw(QPainter& painter, const TimePicture& at) override;
  double nextMoment(double ns, int step) const override;
  std::optional<std::pair<double, double>> chosenTime() const override;
  QString says(double ns) const override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void measure();
  void scrollTo(std::ptrdiff_t first);
  void bringIntoSight(std::size_t lane);

  std::shared_ptr<const TimelineIndex> index_;  // what the steps are of
  LinkPicture picture_;
};

}  // namespace tessera::gui
