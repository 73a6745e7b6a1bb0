// SPDX-License-Identifier: GPL-3.0-or-later
// One predicted iteration in time: a lane per block of GPUs, a bar per phase.
#include "gui/document/text.h"
#include "gui/models/colours.h"
#include "gui/views/chart.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

void drawPhases(Chart& chart, const PhaseModel& phases) {
  std::vector<ChartSpan> spans;
  for (const PhaseModel::Row& row : phases.rows()) {
    const QString text = toText(name_of(row.phase)) + "\n" + secondsText(row.seconds);
    spans.push_back({row.block, row.start_s, row.seconds, text, colourOf(row.phase)});
  }
  chart.setMinimumHeight(60 + 50 * static_cast<int>(phases.blocks().size()));
  QStringList lanes;
  for (const QString& block : phases.blocks()) lanes << QString(block).replace(" + ", "\n");
  chart.showSpans("seconds", lanes, spans, phases.step());
}

QWidget* makePhases(Session& session) {
  auto* chart = new Chart("Predicted iteration");
  const PhaseModel* phases = session.phases();
  QObject::connect(&session, &Session::planSelected, chart, [=] {
    drawPhases(*chart, *phases);
    chart->fit();
  });
  return chart;
}

const RegisteredView kPhaseView({"phases", Place::right, 1, 250, "", makePhases});

}  // namespace
}  // namespace tessera::gui
