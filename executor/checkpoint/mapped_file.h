// A file's bytes mapped read-only into memory.
//
// Owner: whoever holds the value (move-only); views into it die with it. Safe to read from any
// number of threads. Only regular files are opened.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>

#include "cost_models/documents/problem_list.h"

namespace tessera {

class MappedFile {
 public:
  /// Maps the whole file; nullopt with one Problem when it cannot be opened or is no regular file.
  static std::optional<MappedFile> open(const std::filesystem::path& path, Problems& problems);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tessera
