// SPDX-License-Identifier: GPL-3.0-or-later
// How long the window's thread is held, for tests that the event loop goes on.
//
// Functions of the thread that runs the event loop.
#pragma once

#include <time.h>

#include <QObject>
#include <QTimer>
#include <algorithm>
#include <functional>

namespace tessera::gui {

/// Seconds that the thread computed: a busy machine stretches the clock on the wall.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

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
