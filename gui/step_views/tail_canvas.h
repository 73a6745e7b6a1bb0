// SPDX-License-Identifier: GPL-3.0-or-later
// The active sequences of the rollout's replicas that one moves about in (time_canvas.h), from the
// start of the generation on. GUI thread.
#pragma once

#include <memory>

#include "gui/step_views/tail_painter.h"
#include "gui/step_views/time_canvas.h"

namespace tessera::gui {

class TailCanvas : public TimeCanvas {
  Q_OBJECT

 public:
  explicit TailCanvas(QWidget* parent = nullptr);

  /// Another step; nullptr, or one without a generation: `why` is shown.
  void setRollout(std::shared_ptr<const TimelineIndex> index, const QString& why);
  /// The rank that all views look at; -1 = none.
  void look(int rank);

  const RolloutSteps& steps() const { return picture_.steps; }
  const TailPicture& picture() const { return picture_; }

 signals:
  void replicaClicked(int replica);

 protected:
  bool empty() const override { return steps().empty(); }
  void draw(QPainter& painter, const TimePicture& at) override;
  double nextMoment(double ns, int step) const override;
  /// From the moment when nine tenths have ended.
  std::optional<std::pair<double, double>> chosenTime() const override;
  QString says(double ns) const override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  std::shared_ptr<const TimelineIndex> index_;  // what the steps are of
  std::vector<std::int64_t> changes_;
  TailPicture picture_;
};

}  // namespace tessera::gui
