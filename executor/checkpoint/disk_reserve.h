// Room on a disk that is kept for a run's last checkpoint, whoever else fills the disk meanwhile.
//
// A file of that size, ".reserve" beside the checkpoints, whose blocks are allocated and never
// written. Bytes. Owned by rank 0's training thread; removed with the object, and by
// remove_leftovers() where a run was killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace tessera {

inline constexpr std::string_view kReserveName = ".reserve";

class DiskReserve {
 public:
  explicit DiskReserve(const std::filesystem::path& checkpoints);
  ~DiskReserve() { release(); }
  DiskReserve(const DiskReserve&) = delete;
  DiskReserve& operator=(const DiskReserve&) = delete;

  /// Keeps room for `bytes`, unless it does already. Only where twice as much is free beside it,
  /// for the checkpoints that come first, and where the file system can (fallocate(2)).
  void keep(std::int64_t bytes);
  /// Gives the room back.
  void release();

 private:
  std::filesystem::path file_;
  bool kept_ = false;
};

}  // namespace tessera
