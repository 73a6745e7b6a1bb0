// SPDX-License-Identifier: GPL-3.0-or-later
// Work in the background of which only the newest result is heard.
//
// The owner and take() belong to one thread with an event loop, the window's; the work runs in a
// thread of its own, one at a time. What has not begun when newer work comes never runs. What the
// work throws it throws there, in the event that would have taken the result.
#pragma once

#include <QMetaObject>
#include <QObject>
#include <QThreadPool>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace tessera::gui {

template <class Result>
class Newest {
 public:
  Newest() { pool_.setMaxThreadCount(1); }
  /// Waits for the work that runs.
  ~Newest() {
    pool_.clear();
    pool_.waitForDone();
  }
  Newest(const Newest&) = delete;
  Newest& operator=(const Newest&) = delete;

  void start(std::function<Result()> work, std::function<void(Result)> take) {
    cancel();
    busy_ = true;
    const quint64 mine = generation_;
    pool_.start([this, mine, work = std::move(work), take = std::move(take)] {
      std::shared_ptr<Result> result;
      std::exception_ptr fault;
      try {
        result = std::make_shared<Result>(work());
      } catch (...) {
        fault = std::current_exception();
      }
      const auto deliver = [this, mine, result, fault, take] {
        if (mine != generation_) return;
        busy_ = false;
        if (fault) std::rethrow_exception(fault);
        take(std::move(*result));
      };
      QMetaObject::invokeMethod(&context_, deliver, Qt::QueuedConnection);
    });
  }
  /// What was started so far is not heard.
  void cancel() {
    ++generation_;
    busy_ = false;
    pool_.clear();
  }
  bool isBusy() const { return busy_; }

 private:
  QObject context_;
  quint64 generation_ = 0;
  bool busy_ = false;
  QThreadPool pool_;  // last: its work ends before anything else goes
};

}  // namespace tessera::gui
