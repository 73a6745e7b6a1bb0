#include "cli/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <utility>

namespace tessera {

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (::isatty(STDERR_FILENO) != 0) thread_ = std::thread([this] { show(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Progress::show() {
  using namespace std::chrono_literals;
  constexpr int kQuietSeconds = 2;
  std::unique_lock lock(mutex_);
  for (int seconds = 1;; ++seconds) {
    if (changed_.wait_for(lock, 1s, [this] { return ended_; })) {
      if (seconds > kQuietSeconds) std::fprintf(stderr, "\r\033[K");
      return;
    }
    if (seconds >= kQuietSeconds) std::fprintf(stderr, "\r%s ... %d s", what_.c_str(), seconds);
  }
}

}  // namespace tessera
