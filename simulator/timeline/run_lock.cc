#include "simulator/timeline/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

std::string holder_of(int descriptor) {
  std::array<char, 256> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  const std::string name(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return name.substr(0, name.find('\n'));
}

std::string own_name() {
  std::array<char, 128> host{};
  ::gethostname(host.data(), host.size() - 1);
  return "process " + std::to_string(::getpid()) + " on " + host.data() + "\n";
}

}  // namespace

std::string holder_of_lock(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return {};
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  std::string name = held ? holder_of(descriptor) : "";
  ::close(descriptor);
  return name;
}

std::optional<RunLock> RunLock::take(const std::filesystem::path& file, double patience_s,
                                     Problems& problems) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    problems.push_back({.file = file.string(),
                        .found = std::strerror(errno),
                        .expected = "a folder that can be written"});
    return std::nullopt;
  }
  RunLock lock(descriptor);
  const auto until = Clock::now() + std::chrono::duration<double>(patience_s);
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;  // a file system without locks
    if (Clock::now() >= until) {
      problems.push_back({.file = file.string(),
                          .found = "locked by " + holder_of(descriptor),
                          .expected = "no other run in this folder"});
      return std::nullopt;
    }
    std::this_thread::sleep_for(50ms);
  }
  const std::string name = own_name();
  // A name that cannot be written leaves the lock as good as it is.
  if (::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, name.data(), name.size(), 0) < 0) {
    return lock;
  }
  return lock;
}

RunLock::RunLock(RunLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tessera
