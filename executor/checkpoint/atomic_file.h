// A file, or a folder, that appears under its name only when it is complete and on disk.
//
// Bytes go to a temporary file beside the target; publish() flushes it (fsync) and renames it over
// the target, commit() flushes the directory too. Without either the temporary file is removed. One
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "cost_models/documents/problem_list.h"

namespace tessera {

class AtomicFile {
 public:
  /// Creates the temporary file; nullopt with one Problem when that fails.
  static std::optional<AtomicFile> create(const std::filesystem::path& target, Problems& problems);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Writes at a place of the file, where bytes that are left out before it are 0; false with one
  /// Problem (errno's text) when the disk refuses.
  bool write(std::span<const std::byte> bytes, std::int64_t at, Problems& problems);

  /// Makes the file visible under its name, which is on disk once its directory is flushed: for
  /// files of a folder that a later file completes. Call once.
  bool publish(Problems& problems);
  /// The same, with the directory flushed.
  bool commit(Problems& problems);

 private:
  AtomicFile(std::filesystem::path target, std::filesystem::path temporary, int descriptor);
  bool failed(Problems& problems, const char* doing) const;

  std::filesystem::path target_, temporary_;
  int descriptor_ = -1;
};

/// A small file in one go.
bool write_file_atomically(const std::filesystem::path& target, std::string_view text,
                           Problems& problems);

/// A new folder in one go: `fill` writes its files into a partial folder beside it, whose path it
/// is given, and returns whether it could. False with Problems where `folder` exists or anything
/// fails; nothing is left then.
bool write_folder_atomically(const std::filesystem::path& folder,
                             const std::function<bool(const std::filesystem::path&)>& fill,
                             Problems& problems);

/// Flushes a directory's entries to disk.
bool sync_directory(const std::filesystem::path& directory, Problems& problems);

}  // namespace tessera
