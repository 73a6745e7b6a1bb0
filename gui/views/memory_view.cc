// SPDX-License-Identifier: GPL-3.0-or-later
// Memory of one rank by phase, stacked by class or by role, against what plans may use.
#include <QComboBox>
#include <QLabel>
#include <QVBoxLayout>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/views/chart.h"
#include "gui/views/table.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

constexpr double kGib = 1LL << 30;

void drawMemory(Chart& chart, const MemoryModel& memory) {
  if (!memory.problem().isEmpty()) {
    chart.showNothing(memory.problem());
    return;
  }
  std::vector<ChartStack> stacks;
  for (const MemoryModel::Series& series : memory.series()) {
    ChartStack stack{series.name, series.colour, {}};
    for (const std::int64_t bytes : series.bytes) {
      stack.values.push_back(static_cast<double>(bytes) / kGib);
    }
    stacks.push_back(std::move(stack));
  }
  const QString which = memory.isFullest() ? Words::tr(" (fullest)") : QString();
  chart.showBars(
      Words::tr("GiB on rank %1%2").arg(memory.rank()).arg(which), memory.phases(), stacks,
      static_cast<double>(memory.limit()) / kGib,
      Words::tr("usable %1 of %2").arg(bytesText(memory.limit()), bytesText(memory.device())));
}

QWidget* makeMemory(Session& session) {
  auto* panel = new QWidget;
  auto* layout = new QVBoxLayout(panel);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* stacking = new QComboBox;
  auto* chart = new Chart("");
  auto* top = new QHBoxLayout;
  top->addWidget(new QLabel(Words::tr("<b>Memory by phase</b>&nbsp;&nbsp;stacked by")));
  stacking->addItems({Words::tr("class"), Words::tr("role")});
  stacking->setAccessibleName(Words::tr("What the memory bars are stacked by"));
  top->addWidget(stacking);
  top->addStretch(1);
  layout->addLayout(top);
  layout->addWidget(chart, 1);
  MemoryModel* memory = session.memory();
  QObject::connect(stacking, &QComboBox::currentIndexChanged, chart, [=](int index) {
    memory->setStacking(index == 0 ? MemoryModel::Stacking::classes : MemoryModel::Stacking::roles);
    drawMemory(*chart, *memory);
  });
  QObject::connect(&session, &Session::planSelected, chart, &Chart::fit);
  QObject::connect(&session, &Session::viewChanged, chart, [=] { drawMemory(*chart, *memory); });
  return panel;
}

const RegisteredView kMemoryView({"memory", Place::right, 0, 340, "", makeMemory,
                                  [](Session& session) { return csvOf(*session.memory()); }});

}  // namespace
}  // namespace tessera::gui
