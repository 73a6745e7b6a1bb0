#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "cost_models/documents/out_of_memory.h"
#include "cost_models/documents/problem.h"
#include "executor/storage/held_bytes.h"
#include "executor/storage/releasable_memory.h"

namespace tessera {
namespace {

class HostMemory final : public ReleasableMemory {
 public:
  explicit HostMemory(std::int64_t bytes)
      : bytes_(bytes), size_(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))) {
    data_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(data_ != MAP_FAILED, "reservation");
    held_.emplace(held_host_bytes(), bytes_);
  }
  ~HostMemory() override { munmap(data_, size_); }
  HostMemory(const HostMemory&) = delete;
  void* data() const override { return data_; }
  std::int64_t bytes() const override { return bytes_; }
  bool mapped() const override { return mapped_; }

  void release() override {
    if (!mapped_) return;
    check(madvise(data_, size_, MADV_DONTNEED) == 0, "release");
    check(mprotect(data_, size_, PROT_NONE) == 0, "release");
    mapped_ = false;
    held_.reset();
  }

  void map() override {
    if (mapped_) return;
    check(mprotect(data_, size_, PROT_READ | PROT_WRITE) == 0, "mapping");
    mapped_ = true;
    held_.emplace(held_host_bytes(), bytes_);
  }

 private:
  void check(bool good, const char* what) const {
    if (good) return;
    const int why = errno;
    const std::string message = std::string(what) + " of " + std::to_string(size_) +
                                " bytes of memory: " + std::strerror(why);
    if (why == ENOMEM) throw OutOfMemory("arenas", bytes_, message);
    throw Error(ExitCode::missing, message);
  }

  std::int64_t bytes_;
  std::size_t size_;
  void* data_ = nullptr;
  bool mapped_ = true;
  std::optional<Held> held_;
};

}  // namespace

std::unique_ptr<ReleasableMemory> make_releasable_host_memory(std::int64_t bytes) {
  return std::make_unique<HostMemory>(bytes);
}

}  // namespace tessera
