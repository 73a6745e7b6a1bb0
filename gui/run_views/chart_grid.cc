// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run_views/chart_grid.h"

#include <algorithm>

namespace tessera::gui {

ChartGrid::ChartGrid(QWidget* parent) : QWidget(parent), grid_(new QGridLayout(this)) {
  grid_->setContentsMargins(0, 0, 0, 0);
}

void ChartGrid::add(QWidget* chart, const QString& name, int stretch) {
  parts_.push_back({chart, name, stretch});
  arrange();
}

void ChartGrid::leaveOut(const QStringList& names) {
  if (names == left_out_) return;
  left_out_ = names;
  arrange();
}

void ChartGrid::arrange() {
  for (int row = 0; row < grid_->rowCount(); ++row) grid_->setRowStretch(row, 0);
  int cell = 0;
  for (const Part& part : parts_) {
    grid_->removeWidget(part.chart);
    const bool shown = !left_out_.contains(part.name);
    if (shown) {
      const int row = cell / 2;
      grid_->addWidget(part.chart, row, cell++ % 2);
      grid_->setRowStretch(row, std::max(grid_->rowStretch(row), part.stretch));
    }
    part.chart->setVisible(shown);  // once it has a parent: it is no window
  }
}

}  // namespace tessera::gui
