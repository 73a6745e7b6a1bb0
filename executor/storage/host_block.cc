#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "cost_models/spec/problem.h"
#include "executor/storage/shared_block.h"

namespace tessera {
namespace {

[[noreturn]] void refuse(const char* what, std::int64_t bytes) {
  throw Error(ExitCode::missing, std::string(what) + " of " + std::to_string(bytes) +
                                     " bytes of shared memory: " + std::strerror(errno));
}

std::size_t mapped_size(std::int64_t bytes) {
  return static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
}

class HostMapping final : public BlockMapping {
 public:
  HostMapping(int descriptor, std::int64_t bytes) : size_(mapped_size(bytes)) {
    data_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (data_ == MAP_FAILED) refuse("mapping", bytes);
  }
  ~HostMapping() override { munmap(data_, size_); }
  HostMapping(const HostMapping&) = delete;
  void* data() const override { return data_; }

 private:
  std::size_t size_;
  void* data_ = nullptr;
};

/// Memory files start zero filled and take pages as they are touched.
class MemoryFile {
 public:
  explicit MemoryFile(std::int64_t bytes) : descriptor_(memfd_create("tessera", MFD_CLOEXEC)) {
    if (descriptor_ < 0) refuse("creation", bytes);
    if (ftruncate(descriptor_, static_cast<off_t>(mapped_size(bytes))) != 0) {
      close(descriptor_);
      refuse("reservation", bytes);
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

class HostBlock final : public SharedBlock {
 public:
  explicit HostBlock(std::int64_t bytes)
      : bytes_(bytes), file_(bytes), mapping_(file_.descriptor(), bytes) {}
  void* data() const override { return mapping_.data(); }
  std::int64_t bytes() const override { return bytes_; }
  int descriptor() const override { return file_.descriptor(); }
  std::unique_ptr<BlockMapping> map_peer(int descriptor, std::int64_t bytes) const override {
    return std::make_unique<HostMapping>(descriptor, bytes);
  }

 private:
  std::int64_t bytes_;
  MemoryFile file_;
  HostMapping mapping_;
};

}  // namespace

std::unique_ptr<SharedBlock> make_host_block(std::int64_t bytes) {
  return std::make_unique<HostBlock>(bytes);
}

}  // namespace tessera
