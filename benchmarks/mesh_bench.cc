// SPDX-License-Identifier: GPL-3.0-or-later
// How long the window takes to draw the mesh of a large cluster, and to zoom into it.
//
// mesh_bench [NODES]: 8 GPUs a node, 2,048 nodes unless given; colours by tensor parallel groups.
// 600 x 320 (its place in a window of 1280 x 800) and 1,600 x 900, without a display, one zoom step
// a frame from all of the cluster to single GPUs. Prints milliseconds.
#include <QApplication>
#include <QImage>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "gui/document/plan_answer.h"
#include "gui/mesh/mesh_canvas.h"
#include "gui/models/colours.h"
#include "planner/plan/plan.h"

namespace {

using namespace tessera;
using namespace tessera::gui;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void zoom_in(const MeshModel& model, QSize size) {
  MeshCanvas canvas(model);
  canvas.resize(size);
  canvas.show();
  QImage image(size, QImage::Format_RGB32);
  std::vector<double> frames;
  for (int step = 0; step < 24; ++step) {
    const auto start = Clock::now();
    if (step > 0) canvas.zoomBy(1.25);
    canvas.render(&image);
    frames.push_back(ms_since(start));
  }
  const double first = frames.front();
  std::sort(frames.begin(), frames.end());
  std::printf("%4d x %4d: all at once %6.2f ms; zooming: median %6.2f ms, slowest %6.2f ms\n",
              size.width(), size.height(), first, frames[frames.size() / 2], frames.back());
}

}  // namespace

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  PlanQuery query{.model = "llama3.1-70b", .cluster = "meta-h100-24k", .workload = "grpo-7b-1k"};
  query.nodes = argc > 1 ? std::stoll(argv[1]) : 2048;
  PlanAnswer found = answer(query);
  if (!std::holds_alternative<SharedPlan>(found.result)) return 1;
  const SharedPlan plan = std::get<SharedPlan>(found.result);
  MeshModel model;
  auto start = Clock::now();
  model.setPlan(plan);
  std::printf("%d ranks made ready in %.1f ms\n", model.ranks(), ms_since(start));
  start = Clock::now();
  model.setColouring({plan->roles.front().role, Axis::tp});
  std::printf("coloured by %d groups in %.1f ms\n", model.groupCount(), ms_since(start));
  for (const QSize size : {QSize(600, 320), QSize(1600, 900)}) zoom_in(model, size);
}
