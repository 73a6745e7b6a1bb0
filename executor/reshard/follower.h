// A thread that follows a counter: the background half of an overlapped reshard.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace tessera {

class Follower {
 public:
  /// `work` runs at once on a thread of its own and waits for the counter by await().
  explicit Follower(std::function<void(Follower&)> work)
      : thread_([this, work = std::move(work)] {
          try {
            work(*this);
          } catch (...) {
            error_ = std::current_exception();
          }
        }) {}
  ~Follower() {
    raise(-1);
    if (thread_.joinable()) thread_.join();
  }
  Follower(const Follower&) = delete;

  /// -1 ends every wait.
  void raise(int value) {
    {
      const std::lock_guard lock(mutex_);
      value_ = value;
    }
    changed_.notify_all();
  }
  /// Returns when the counter has reached `value`; false when the work is to end.
  bool await(int value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return value_ < 0 || value_ >= value; });
    return value_ >= 0;
  }
  /// Waits for the work and throws what it threw.
  void join() {
    thread_.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int value_ = 0;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace tessera
