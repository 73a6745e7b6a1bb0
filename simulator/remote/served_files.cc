#include "simulator/remote/served_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace tessera {
namespace {

constexpr std::uint64_t kMostId = std::numeric_limits<std::int64_t>::max();

}  // namespace

const ServedName* find_served(std::string_view name) {
  const auto* found = std::find_if(kServedNames.begin(), kServedNames.end(),
                                   [&](const ServedName& served) { return served.name == name; });
  return found == kServedNames.end() ? nullptr : found;
}

std::optional<ServedFile> ServedFile::open(const std::filesystem::path& run,
                                           const ServedName& name) {
  // Not blocking: somebody may have put a pipe there.
  const int descriptor =
      ::open((run / name.name).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return std::nullopt;
  }
  const std::int64_t modified_ns =
      std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  return ServedFile(descriptor, RunFile{.name = std::string(name.name),
                                        .size = status.st_size,
                                        .modified_ns = modified_ns,
                                        .id = static_cast<std::int64_t>(status.st_ino & kMostId)});
}

ServedFile::ServedFile(ServedFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), file_(std::move(other.file_)) {}

ServedFile::~ServedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string ServedFile::read(std::int64_t offset, std::size_t size) const {
  std::string bytes(size, '\0');
  const ssize_t got = ::pread(descriptor_, bytes.data(), size, offset);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace tessera
