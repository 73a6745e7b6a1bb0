// SPDX-License-Identifier: GPL-3.0-or-later
// How long the window takes to make a timeline of many spans ready, and to paint it while it pans.
//
// timeline_bench [SPANS]: spans on 64 ranks of four streams, painted 1,600 x 900 without a display
// at four zooms, 100 frames each. Prints milliseconds.
#include <QApplication>
#include <QImage>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "gui/models/colours.h"
#include "gui/step_views/timeline_painter.h"

namespace {

using namespace tessera;
using namespace tessera::gui;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Simulation simulation_of(std::size_t spans) {
  constexpr int kRanks = 64;
  constexpr std::size_t kLanes = 4UL * kRanks;  // a rank's streams
  std::mt19937 random(1);
  Simulation simulation;
  const std::size_t in_lane = spans / kLanes;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (const Stream stream :
         {Stream::phases, Stream::compute, Stream::communication, Stream::copy}) {
      std::int64_t now = 0;
      for (std::size_t i = 0; i < in_lane; ++i) {
        const auto length = static_cast<std::int64_t>(1000 + random() % 100'000);
        simulation.timeline.spans.push_back({now, now + length, rank, stream,
                                             i % 2 == 0 ? Phase::gen : Phase::update_actor, 0, -1,
                                             "F" + std::to_string(i % 500), 0, 0});
        now += length + static_cast<std::int64_t>(random() % 20'000);
      }
    }
  }
  return simulation;
}

void pan(TimelinePicture& picture, double part) {
  QImage image(picture.size, QImage::Format_RGB32);
  const auto end = static_cast<double>(picture.index->end_ns);
  std::vector<double> frames;
  for (int frame = 0; frame < 100; ++frame) {
    const double from = (1 - part) * end * frame / 100;
    picture.axis = fitted(from, from + part * end, picture.width());
    const auto start = Clock::now();
    QPainter painter(&image);
    paint(painter, picture);
    painter.end();
    frames.push_back(ms_since(start));
  }
  std::sort(frames.begin(), frames.end());
  std::printf("%10.4f of the time in sight: median %6.2f ms, slowest %6.2f ms a frame\n", part,
              frames[frames.size() / 2], frames.back());
}

}  // namespace

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  const std::size_t spans = argc > 1 ? std::stoul(argv[1]) : 1'000'000;
  Simulation simulation = simulation_of(spans);
  auto start = Clock::now();
  const TimelineIndex index = index_of(std::move(simulation));
  std::printf("%zu spans made ready in %.0f ms\n", index.name_of.size(), ms_since(start));
  start = Clock::now();
  const auto found = matches_before(index, "f77");
  std::printf("search by name: %.1f ms, %u found\n", ms_since(start), found.back());
  start = Clock::now();
  const auto totals = totals_of(index, index.lanes, 0, index.end_ns);
  std::printf("totals of everything: %.1f ms, %zu rows\n", ms_since(start), totals.size());
  TimelinePicture picture;
  picture.index = &index;
  picture.rows = TimelinePicture::rowsOf(index, std::vector<bool>(index.groups.size()));
  picture.size = {1600, 900};
  picture.palette = paletteOf(Theme::light);
  picture.font = QApplication::font();
  for (const double part : {1.0, 0.1, 0.01, 0.0005}) pan(picture, part);
}
