// SPDX-License-Identifier: GPL-3.0-or-later
// The event loop in tests: waiting in it, and how long the window's thread is held.
//
// Functions of the thread that runs the event loop.
#pragma once

#include <time.h>

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <vector>

namespace tessera::gui {

constexpr int kPatienceMs = 30000;

/// Runs events until the condition holds; false when it does not in half a minute.
template <class Condition>
bool wait_for(const Condition& condition) {
  QElapsedTimer timer;
  timer.start();
  while (!condition() && timer.elapsed() < kPatienceMs) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
  }
  return condition();
}

/// Seconds that the thread computed: a busy machine stretches the clock on the wall.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// How many times as long as where limits of time were set this machine
/// computes, at least 1: by how long the C library sorts.
inline double slowness() {
  constexpr double kThere = 0.016;  // seconds
  double least = 1;
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<std::uint32_t> numbers(100'000);
    std::uint32_t last = 1;
    for (std::uint32_t& number : numbers) number = last = last * 1664525U + 1013904223U;
    const double start = thread_seconds();
    std::qsort(numbers.data(), numbers.size(), sizeof numbers[0], [](const void* a, const void* b) {
      const auto x = *static_cast<const std::uint32_t*>(a);
      const auto y = *static_cast<const std::uint32_t*>(b);
      return x < y ? -1 : static_cast<int>(x > y);
    });
    least = std::min(least, thread_seconds() - start);
  }
  return std::max(1.0, least / kThere);
}

/// Seconds that nothing may hold the event loop.
inline double most_held() { return 0.05 * slowness(); }

/// The longest time between two turns of the event loop while `work` runs it. Processors that are
/// shared slow a thread's own clock, too, so that tests take the least of a few.
inline double longest_hold(const std::function<void()>& work) {
  double longest = 0, last = thread_seconds();
  QTimer ticks;
  QObject::connect(&ticks, &QTimer::timeout, [&] {
    const double now = thread_seconds();
    longest = std::max(longest, now - last);
    last = now;
  });
  ticks.start(0);
  work();
  return longest;
}

}  // namespace tessera::gui
