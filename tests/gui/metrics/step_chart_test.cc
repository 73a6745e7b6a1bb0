// SPDX-License-Identifier: GPL-3.0-or-later
// The crosshair's text beside what it reads.
#include "gui/run_views/step_chart.h"

#include <gtest/gtest.h>

#include <QCoreApplication>

namespace tessera::gui {
namespace {

// What is read is not covered by what reads it.
TEST(StepChart, ItsTextStandsWhereTheLineIsNot) {
  StepChart chart("a");
  chart.resize(500, 220);
  chart.show();
  ChartLine line{"a", Qt::blue, {}};
  const auto crosses = [&] {
    const QRect box = chart.textBox();
    EXPECT_TRUE(chart.axisRect()->rect().contains(box));
    int inside = 0;
    for (const QPointF& point : line.points) {
      inside += box.contains(QPoint(static_cast<int>(chart.xAxis->coordToPixel(point.x())),
                                    static_cast<int>(chart.yAxis->coordToPixel(point.y()))))
                    ? 1
                    : 0;
    }
    return inside;
  };
  // High until the middle, then low; and the other way round.
  for (const double first : {0.0, 1.0}) {
    line.points.clear();
    for (int step = 0; step < 200; ++step) {
      line.points.emplace_back(step, step < 100 ? first : 1 - first);
    }
    chart.showSteps("", {line});
    QCoreApplication::processEvents();
    for (const int step : {20, 60, 130, 180}) {
      chart.point(step);
      EXPECT_EQ(crosses(), 0) << first << " " << step;
    }
  }
}

}  // namespace
}  // namespace tessera::gui
