// SPDX-License-Identifier: GPL-3.0-or-later
// Work in a thread of a pool, whose outcome comes back to the thread of an object: what it
// returned, or what it threw, which is thrown there.
//
// Any thread may begin it. The pool's owner waits for what runs before `context` goes.
#pragma once

#include <QMetaObject>
#include <QObject>
#include <QThreadPool>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "gui/threads/vector_registers.h"

namespace tessera::gui {

template <class Result>
class Outcome {
 public:
  template <class Work>
  static Outcome of(Work& work) {
    Outcome outcome;
    try {
      outcome.result_ = work();
    } catch (...) {
      outcome.fault_ = std::current_exception();
    }
    return outcome;
  }
  /// Once. Throws what the work threw.
  Result take() {
    if (fault_) std::rethrow_exception(fault_);
    return *std::move(result_);
  }

 private:
  std::optional<Result> result_;
  std::exception_ptr fault_;
};

/// Calls `then` with the Outcome of `work()`, as an event of the context's thread.
template <class Work, class Then>
void run_in(QThreadPool& pool, QObject& context, Work work, Then then) {
  using Result = std::invoke_result_t<Work&>;
  pool.start([&context, work = std::move(work), then = std::move(then)]() mutable {
    clear_upper_vectors();
    const auto outcome = std::make_shared<Outcome<Result>>(Outcome<Result>::of(work));
    QMetaObject::invokeMethod(
        &context, [outcome, then]() mutable { then(std::move(*outcome)); }, Qt::QueuedConnection);
  });
}

}  // namespace tessera::gui
