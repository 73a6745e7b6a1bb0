#include "executor/checkpoint/disk_reserve.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace tessera {
namespace {

namespace fs = std::filesystem;

bool allocate(int fd, std::int64_t bytes) {
  for (;;) {
    if (::fallocate(fd, 0, 0, bytes) == 0) return true;
    if (errno != EINTR) return false;
  }
}

}  // namespace

DiskReserve::DiskReserve(const fs::path& checkpoints) : file_(checkpoints / kReserveName) {}

void DiskReserve::keep(std::int64_t bytes) {
  if (kept_ || bytes <= 0) return;
  std::error_code error;
  const fs::space_info space = fs::space(file_.parent_path(), error);
  if (error || static_cast<std::int64_t>(space.available) / 3 < bytes) return;
  const int fd = ::open(file_.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  kept_ = allocate(fd, bytes);
  ::close(fd);
  if (!kept_) ::unlink(file_.c_str());
}

void DiskReserve::release() {
  if (std::exchange(kept_, false)) ::unlink(file_.c_str());
}

}  // namespace tessera
