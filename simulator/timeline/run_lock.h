// The lock of a run's folder: two runs never write into one.
//
// Advisory (flock), held by the process until it ends, whatever ends it; the file's text names the
// holder for people. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cost_models/documents/problem_list.h"

namespace tessera {

/// Who holds the lock of `file` now, as its text names the process; empty where nobody does.
std::string holder_of_lock(const std::filesystem::path& file);

class RunLock {
 public:
  /// Takes the lock of `file`, which is made where there is none; waits up to `patience_s` for a
  /// process that is about to end. nullopt with a Problem that names the holder.
  static std::optional<RunLock> take(const std::filesystem::path& file, double patience_s,
                                     Problems& problems);

  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;
  ~RunLock();

 private:
  explicit RunLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace tessera
