// A line on a terminal that says that long work is going on.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tessera {

/// While it lives, from two seconds on, "WHAT ... N s" on standard error, where that is a terminal;
/// wiped at the end. Owns a thread.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void show();

  std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace tessera
