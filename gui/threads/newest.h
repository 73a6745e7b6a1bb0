// SPDX-License-Identifier: GPL-3.0-or-later
// Work in the background of which only the newest result is heard.
//
// The owner and take() belong to one thread with an event loop, the window's; the work runs in a
// thread of its own, as a rule one at a time. What has not begun when newer work comes never runs,
// and what has is told to stop by its token, where it takes one. What the work throws it throws
// there, in the event that would have taken the result.
#pragma once

#include <QObject>
#include <QThreadPool>
#include <functional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "gui/threads/outcome.h"

namespace tessera::gui {

template <class Result>
class Newest {
 public:
  /// `threads`: as many works may run, so that new ones do not wait for those that nobody hears.
  explicit Newest(int threads = 1) { pool_.setMaxThreadCount(threads); }
  /// Stops the work that runs, and waits for its end.
  ~Newest() {
    cancel();
    pool_.waitForDone();
  }
  Newest(const Newest&) = delete;
  Newest& operator=(const Newest&) = delete;

  /// `work`: gives a Result, of a std::stop_token or of nothing.
  template <class Work>
  void start(Work work, std::function<void(Result)> take) {
    cancel();
    busy_ = true;
    const quint64 mine = generation_;
    const auto deliver = [this, mine, take = std::move(take)](Outcome<Result> outcome) {
      if (mine != generation_) return;
      busy_ = false;
      take(outcome.take());
    };
    if constexpr (std::is_invocable_v<Work&, const std::stop_token&>) {
      const auto stoppable = [work = std::move(work), stop = stop_.get_token()]() mutable {
        return Result(work(stop));
      };
      run_in(pool_, context_, stoppable, deliver);
    } else {
      run_in(pool_, context_, std::function<Result()>(std::move(work)), deliver);
    }
  }
  /// What was started so far is not heard, and ends as soon as it asks its token.
  void cancel() {
    ++generation_;
    stop_.request_stop();
    stop_ = std::stop_source();
    busy_ = false;
    pool_.clear();
  }
  bool isBusy() const { return busy_; }

 private:
  QObject context_;
  quint64 generation_ = 0;
  std::stop_source stop_;  // of what was started last
  bool busy_ = false;
  QThreadPool pool_;  // last: its work ends before anything else goes
};

}  // namespace tessera::gui
