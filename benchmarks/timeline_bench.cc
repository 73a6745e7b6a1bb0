// SPDX-License-Identifier: GPL-3.0-or-later
// How long the window takes to make a timeline of many spans ready, and to paint it while it pans.
//
// timeline_bench [SPANS | FILE]: spans on 64 ranks of four streams, or those of a Chrome trace,
// painted 1,600 x 900 without a display at four zooms, 100 frames each. Prints milliseconds.
//
// timeline_bench write SPANS FILE writes such a trace: 64 processes of four threads, 99 bytes a
// span.
#include <sys/resource.h>

#include <QApplication>
#include <QImage>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "gui/models/colours.h"
#include "gui/step_views/timeline_painter.h"
#include "gui/timeline/lane_gap.h"
#include "gui/trace/trace_file.h"

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

void write_trace(std::size_t spans, const char* file) {
  constexpr std::size_t kThreads = 256;
  constexpr const char* kNames[] = {"aten::mm",
                                    "aten::addmm",
                                    "ncclDevKernel_AllGather",
                                    "flash_fwd_kernel",
                                    "void at::native::elementwise",
                                    "Memcpy HtoD"};
  std::FILE* const out = std::fopen(file, "w");
  if (out == nullptr) throw std::runtime_error("cannot be written");
  std::fputs("{\"schemaVersion\": 1, \"traceEvents\": [\n", out);
  std::vector<double> now(kThreads);
  for (std::size_t i = 0; i < spans; ++i) {
    const std::size_t thread = i % kThreads;
    const double length = 1.25 + static_cast<double>(i * 7919 % 97);
    std::fprintf(
        out, R"(%s{"ph":"X","cat":"kernel","name":"%s","pid":%zu,"tid":%zu,"ts":%.3f,"dur":%.3f})",
        i == 0 ? "" : ",\n", kNames[i / kThreads % std::size(kNames)], thread / 4, thread % 4,
        now[thread], length);
    now[thread] += length + static_cast<double>(i % 13);
  }
  std::fputs("]}\n", out);
  std::fclose(out);
}

double processor_ms() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto ms = [](const timeval& time) {
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

TimelineIndex opened(const char* file) {
  Problems problems;
  const auto start = Clock::now();
  auto index = read_trace(file, problems);
  if (!index) throw Error(std::move(problems));
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf("%zu spans read in %.0f ms, %.0f ms of processors, at most %ld MiB\n",
              index->name_of.size(), ms_since(start), processor_ms(), used.ru_maxrss / 1024);
  return *std::move(index);
}

TimelineIndex made(std::size_t spans) {
  Simulation simulation = simulation_of(spans);
  const auto start = Clock::now();
  TimelineIndex index = index_of(std::move(simulation));
  std::printf("%zu spans made ready in %.0f ms\n", index.name_of.size(), ms_since(start));
  return index;
}

}  // namespace

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  if (argc == 4) {
    write_trace(std::stoul(argv[2]), argv[3]);
    return 0;
  }
  const std::string of = argc > 1 ? argv[1] : "1000000";
  const bool number = of.find_first_not_of("0123456789") == std::string::npos;
  const TimelineIndex index = number ? made(std::stoul(of)) : opened(of.c_str());
  auto start = Clock::now();
  const auto found = matches_before(index, number ? "f77" : "flash");
  std::printf("search by name: %.1f ms, %u found\n", ms_since(start), found.back());
  start = Clock::now();
  const auto totals = totals_of(index, index.lanes, 0, index.end_ns);
  std::printf("totals of everything: %.1f ms, %zu rows\n", ms_since(start), totals.size());
  start = Clock::now();
  const IdleTotal idle = idle_of(index, index.lanes, 0, index.end_ns);
  std::printf("idle in everything: %.1f ms, %lld gaps\n", ms_since(start),
              static_cast<long long>(idle.gaps));
  TimelinePicture picture;
  picture.index = &index;
  picture.rows = TimelinePicture::rowsOf(index, std::vector<bool>(index.groups.size()));
  picture.size = {1600, 900};
  picture.palette = paletteOf(Theme::light);
  picture.font = QApplication::font();
  for (const double part : {1.0, 0.1, 0.01, 0.0005}) pan(picture, part);
}
