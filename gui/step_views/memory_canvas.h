// SPDX-License-Identifier: GPL-3.0-or-later
// A rank's memory over the step that one moves about in (time_canvas.h). GUI thread.
#pragma once

#include <memory>
#include <optional>

#include "gui/document/view_state.h"
#include "gui/step_views/memory_painter.h"
#include "gui/step_views/time_canvas.h"

namespace tessera::gui {

class MemoryCanvas : public TimeCanvas {
  Q_OBJECT

 public:
  explicit MemoryCanvas(QWidget* parent = nullptr);

  /// Another step, or another rank of it: then what is in sight stays. nullptr, or a rank without a
  /// role: `why` is shown.
  void setMemory(std::shared_ptr<const TimelineIndex> index, int rank, const MemoryLimits& limits,
                 const QString& why);
  /// The phase that another view chose, whose fullest moment is kept.
  void look(std::optional<Phase> phase);

  const MemorySteps& steps() const { return picture_.steps; }
  const MemoryLimits& limits() const { return picture_.limits; }
  const MemoryPicture& picture() const { return picture_; }
  /// The sample at the moment, else the peak. Precondition: there are steps.
  std::size_t shown() const;

 protected:
  bool empty() const override { return steps().empty(); }
  void draw(QPainter& painter, const TimePicture& at) override;
  double nextMoment(double ns, int step) const override;
  std::optional<std::pair<double, double>> chosenTime() const override;
  QString says(double ns) const override;

 private:
  std::shared_ptr<const TimelineIndex> index_;  // what the steps are of
  MemoryPicture picture_;
};

}  // namespace tessera::gui
