#include "executor/checkpoint/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

constexpr std::size_t kLargestWrite = std::size_t{1} << 30;  // Linux cuts one write at 2 GiB

std::filesystem::path directory_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target, std::filesystem::path temporary,
                       int descriptor)
    : target_(std::move(target)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

std::optional<AtomicFile> AtomicFile::create(const std::filesystem::path& target,
                                             Problems& problems) {
  struct stat status {};
  if (::stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    problems.push_back({.file = target.string(),
                        .found = S_ISDIR(status.st_mode) ? "a folder" : "a device or a pipe",
                        .expected = "a regular file, or a new one"});
    return std::nullopt;
  }
  std::string name = (directory_of(target) / ("." + target.filename().string() + ".XXXXXX"));
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) {
    problems.push_back({.file = target.string(),
                        .found = std::strerror(errno),
                        .expected = "a folder that can be written"});
    return std::nullopt;
  }
  ::fchmod(descriptor, 0644);
  return AtomicFile(target, name, descriptor);
}

bool AtomicFile::failed(Problems& problems, const char* doing) const {
  problems.push_back(
      {.file = target_.string(), .found = std::string(std::strerror(errno)) + " while " + doing});
  return false;
}

bool AtomicFile::write(std::span<const std::byte> bytes, std::int64_t at, Problems& problems) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), kLargestWrite), at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed(problems, "writing");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    at += written;
  }
  return true;
}

bool AtomicFile::publish(Problems& problems) {
  if (::fsync(descriptor_) != 0) return failed(problems, "flushing");
  if (::close(std::exchange(descriptor_, -1)) != 0 ||
      ::rename(temporary_.c_str(), target_.c_str()) != 0) {
    failed(problems, "renaming");
    ::unlink(temporary_.c_str());
    return false;
  }
  return true;
}

bool AtomicFile::commit(Problems& problems) {
  return publish(problems) && sync_directory(directory_of(target_), problems);
}

bool write_file_atomically(const std::filesystem::path& target, std::string_view text,
                           Problems& problems) {
  auto file = AtomicFile::create(target, problems);
  return file && file->write(std::as_bytes(std::span(text)), 0, problems) && file->commit(problems);
}

bool write_folder_atomically(const std::filesystem::path& folder,
                             const std::function<bool(const std::filesystem::path&)>& fill,
                             Problems& problems) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder, error))) {
    problems.push_back({.file = folder.string(),
                        .found = "something that exists",
                        .expected = "a new folder",
                        .hint = "nothing is ever overwritten"});
    return false;
  }
  fs::path partial = folder;
  partial += ".partial";
  fs::remove_all(partial, error);
  fs::create_directories(partial, error);
  if (error) {
    problems.push_back({.file = folder.string(),
                        .found = error.message(),
                        .expected = "a place that can be written"});
    return false;
  }
  const bool written = fill(partial);
  if (written) fs::rename(partial, folder, error);
  if (written && !error) {
    return sync_directory(folder.has_parent_path() ? folder.parent_path() : ".", problems);
  }
  if (error) problems.push_back({.file = folder.string(), .found = error.message()});
  fs::remove_all(partial, error);
  return false;
}

bool sync_directory(const std::filesystem::path& directory, Problems& problems) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  if (!synced) {
    problems.push_back({.file = directory.string(),
                        .found = std::string(std::strerror(errno)) + " while flushing the folder"});
  }
  if (descriptor >= 0) ::close(descriptor);
  return synced;
}

}  // namespace tessera
