// SPDX-License-Identifier: GPL-3.0-or-later
// Charts over the steps of a run: reward, KL divergence, throughput, phases, reshards.
//
// Each follows the session's run and draws anew when a step comes. GUI thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gui/models/session.h"
#include "gui/run_views/step_chart.h"

namespace tessera::gui {

/// When a chart over the steps of a run is drawn: at once where the run is short. The chart of a
/// long one is drawn in a turn of the event loop of its own, once however often that was asked for
/// meanwhile, and while nobody sees it not at all. The chart's child.
class ChartTurn : public QObject {
  Q_OBJECT

 public:
  /// `steps` outlives the chart.
  ChartTurn(Chart* chart, const RunModel* steps, std::function<void()> draw);
  void ask();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void take();

  Chart* chart_;
  const RunModel* steps_;
  std::function<void()> draw_;
  bool asked_ = false;
};

/// An empty chart that `draw` fills from the run whenever its steps change.
StepChart* chartOfSteps(Session& session, const QString& title,
                        void (*draw)(StepChart& chart, RunFollower& run));

/// A metric of the run that is followed, the same one of those beside it, and as dashed lines the
/// limits that the rules set it.
std::vector<ChartLine> linesOf(RunFollower& run, const std::string& metric, const QString& name,
                               const QColor& colour);

}  // namespace tessera::gui
