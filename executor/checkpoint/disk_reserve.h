// Room on a disk that is kept for a run's last checkpoint, whoever else fills the disk meanwhile.
//
// A file of that size, ".reserve" beside the checkpoints, whose blocks are allocated and never
// written. Bytes. Owned by rank 0's training thread; a thread of its own allocates, because a file
// system in memory makes every page (28 GB took 4.5 s). Removed with the object, and by
// remove_leftovers() where a run was killed.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <future>
#include <string_view>

namespace tessera {

inline constexpr std::string_view kReserveName = ".reserve";

class DiskReserve {
 public:
  explicit DiskReserve(const std::filesystem::path& checkpoints);
  ~DiskReserve() { release(); }
  DiskReserve(const DiskReserve&) = delete;
  DiskReserve& operator=(const DiskReserve&) = delete;

  /// Begins to keep room for `bytes`, unless it does already. Only where twice as much is free
  /// beside it, for the checkpoints that come first, and where the file system can (fallocate(2)).
  void keep(std::int64_t bytes);
  /// Waits until what was begun is kept; whether there is room now.
  bool await();
  /// Gives the room back.
  void release();

 private:
  bool make(std::int64_t bytes) const;

  std::filesystem::path file_;
  std::atomic<bool> stopped_ = false;
  std::future<bool> made_;  // of what was begun and nobody has asked for yet
  bool kept_ = false;
};

}  // namespace tessera
