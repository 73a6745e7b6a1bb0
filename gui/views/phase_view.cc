// SPDX-License-Identifier: GPL-3.0-or-later
// One predicted iteration in time: a lane per block of GPUs, a bar per phase, which a click
// chooses.
#include <cmath>
#include <memory>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/views/chart.h"
#include "gui/views/table.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

void drawPhases(Chart& chart, const PhaseModel& phases, const ViewState& view) {
  std::vector<ChartSpan> spans;
  for (const PhaseModel::Row& row : phases.rows()) {
    const QString text = toText(name_of(row.phase)) + "\n" + secondsText(row.seconds);
    spans.push_back(
        {row.block, row.start_s, row.seconds, text, colourOf(row.phase), view.phase == row.phase});
  }
  chart.setMinimumHeight(60 + 50 * static_cast<int>(phases.blocks().size()));
  QStringList lanes;
  for (const QString& block : phases.blocks()) lanes << QString(block).replace(" + ", "\n");
  chart.showSpans(Words::tr("seconds"), lanes, spans, phases.step());
}

QWidget* makePhases(Session& session) {
  auto* chart = new Chart(Words::tr("Predicted iteration"));
  const PhaseModel* phases = session.phases();
  Session* shown = &session;
  QObject::connect(shown, &Session::planSelected, chart, [=] {
    drawPhases(*chart, *phases, shown->view());
    chart->fit();
  });
  QObject::connect(shown, &Session::viewChanged, chart,
                   [=](const ViewState& view) { drawPhases(*chart, *phases, view); });
  const auto pressed = std::make_shared<QPoint>();  // a drag is no click
  QObject::connect(chart, &QCustomPlot::mousePress, chart,
                   [=](const QMouseEvent* event) { *pressed = event->pos(); });
  QObject::connect(chart, &QCustomPlot::mouseRelease, chart, [=](const QMouseEvent* event) {
    if ((event->pos() - *pressed).manhattanLength() > 3) return;
    const double time = chart->xAxis->pixelToCoord(event->pos().x());
    const auto lane = std::lround(chart->yAxis->pixelToCoord(event->pos().y()));
    for (const PhaseModel::Row& row : phases->rows()) {
      const bool inside = time >= row.start_s && time < row.start_s + row.seconds;
      if (inside && row.block == lane) shown->look({shown->view().rank, row.phase});
    }
  });
  return chart;
}

const RegisteredView kPhaseView({"phases", Place::right, 1, 250, "", makePhases,
                                 [](Session& session) { return csvOf(*session.phases()); }});

}  // namespace
}  // namespace tessera::gui
