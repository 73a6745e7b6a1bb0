#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "cost_models/documents/out_of_memory.h"
#include "cost_models/documents/problem.h"
#include "executor/storage/held_bytes.h"
#include "executor/storage/shared_block.h"

namespace tessera {
namespace {

[[noreturn]] void refuse(const char* what, std::int64_t bytes) {
  const int why = errno;
  const std::string message = std::string(what) + " of " + std::to_string(bytes) +
                              " bytes of shared memory: " + std::strerror(why);
  if (why == ENOMEM) throw OutOfMemory("arenas", bytes, message);
  throw Error(ExitCode::missing, message);
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
      : bytes_(bytes),
        file_(bytes),
        mapping_(file_.descriptor(), bytes),
        held_(held_host_bytes(), bytes) {}
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
  Held held_;
};

/// A file of this process's table of memory.
struct MappedFile {
  unsigned major = 0, minor = 0;
  unsigned long inode = 0;
};

/// The file whose beginning is mapped at `data`; inode 0 = none (proc(5), /proc/pid/maps).
MappedFile file_mapped_at(const void* data) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, offset = 0;
    MappedFile file;
    const int found = std::sscanf(line.c_str(), "%lx-%lx %*s %lx %x:%x %lu", &begin, &end, &offset,
                                  &file.major, &file.minor, &file.inode);
    if (found == 6 && begin == reinterpret_cast<std::uintptr_t>(data) && offset == 0) return file;
  }
  return {};
}

/// An open descriptor of the file, duplicated; -1 = none.
int descriptor_of(const MappedFile& file) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    struct stat found {};
    if (fstat(descriptor, &found) == 0 && found.st_ino == file.inode &&
        major(found.st_dev) == file.major && minor(found.st_dev) == file.minor) {
      return fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    }
  }
  return -1;
}

/// Memory of another block, named once more.
class SharedHostMemory final : public SharedBlock {
 public:
  SharedHostMemory(void* data, std::int64_t bytes, int descriptor)
      : data_(data), bytes_(bytes), descriptor_(descriptor) {}
  ~SharedHostMemory() override { close(descriptor_); }
  SharedHostMemory(const SharedHostMemory&) = delete;
  void* data() const override { return data_; }
  std::int64_t bytes() const override { return bytes_; }
  int descriptor() const override { return descriptor_; }
  std::unique_ptr<BlockMapping> map_peer(int descriptor, std::int64_t bytes) const override {
    return std::make_unique<HostMapping>(descriptor, bytes);
  }

 private:
  void* data_;
  std::int64_t bytes_;
  int descriptor_;
};

}  // namespace

std::unique_ptr<SharedBlock> make_host_block(std::int64_t bytes) {
  return std::make_unique<HostBlock>(bytes);
}

std::unique_ptr<SharedBlock> share_host_memory(void* data, std::int64_t bytes) {
  const MappedFile file = file_mapped_at(data);
  const int descriptor = file.inode == 0 ? -1 : descriptor_of(file);
  if (descriptor < 0) return nullptr;
  return std::make_unique<SharedHostMemory>(data, bytes, descriptor);
}

}  // namespace tessera
