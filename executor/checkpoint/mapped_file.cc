#include "executor/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {

std::optional<MappedFile> MappedFile::open(const std::filesystem::path& path, Problems& problems) {
  const auto fail = [&](const char* found, const char* expected) {
    problems.push_back({.file = path.string(), .found = found, .expected = expected});
    return std::nullopt;
  };
  // O_NONBLOCK: opening a named pipe must not hang before it is refused.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail(std::strerror(errno), "a readable file");
  struct stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return fail("not a regular file", "a regular file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = nullptr;
  if (size > 0) data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int map_error = errno;
  ::close(descriptor);
  if (data == MAP_FAILED) return fail(std::strerror(map_error), "a file that can be mapped");
  return MappedFile(static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace tessera
