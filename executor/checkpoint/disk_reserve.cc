#include "executor/checkpoint/disk_reserve.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kStep = std::int64_t{1} << 30;  // at most so much before a stop is seen

bool allocate(int fd, std::int64_t first, std::int64_t bytes, const std::atomic<bool>& stopped) {
  while (!stopped) {
    if (::fallocate(fd, 0, first, bytes) == 0) return true;
    if (errno != EINTR) return false;
  }
  return false;
}

}  // namespace

DiskReserve::DiskReserve(const fs::path& checkpoints) : file_(checkpoints / kReserveName) {}

void DiskReserve::keep(std::int64_t bytes) {
  using namespace std::chrono_literals;
  if (made_.valid() && made_.wait_for(0s) != std::future_status::ready) return;
  if (await() || bytes <= 0) return;
  std::error_code error;
  const fs::space_info space = fs::space(file_.parent_path(), error);
  if (error || static_cast<std::int64_t>(space.available) / 3 < bytes) return;
  try {
    made_ = std::async(std::launch::async, [this, bytes] { return make(bytes); });
  } catch (const std::system_error&) {  // no thread to be had: the next call tries again
  }
}

bool DiskReserve::make(std::int64_t bytes) const {
  const int fd = ::open(file_.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  bool made = true;
  for (std::int64_t at = 0; made && at < bytes; at += kStep) {
    made = allocate(fd, at, std::min(kStep, bytes - at), stopped_);
  }
  ::close(fd);
  if (!made) ::unlink(file_.c_str());
  return made;
}

bool DiskReserve::await() {
  if (made_.valid()) kept_ = made_.get();
  return kept_;
}

void DiskReserve::release() {
  stopped_ = true;
  if (await()) ::unlink(file_.c_str());
  kept_ = stopped_ = false;
}

}  // namespace tessera
