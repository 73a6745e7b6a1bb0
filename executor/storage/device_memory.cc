// GPU blocks by the driver's virtual memory calls. The driver's library is never linked: its
// functions are asked for at run time.
#include <unistd.h>

#include <optional>
#include <string>

#include "cost_models/documents/out_of_memory.h"
#include "cost_models/documents/problem.h"
#include "executor/storage/cuda_calls.h"
#include "executor/storage/held_bytes.h"
#include "executor/storage/releasable_memory.h"
#include "executor/storage/shared_block.h"

namespace tessera {
namespace {

struct Driver {
  decltype(&cuGetErrorString) error_string =
      driver<decltype(&cuGetErrorString)>("cuGetErrorString");
  decltype(&cuMemGetAllocationGranularity) granularity =
      driver<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  decltype(&cuMemCreate) create = driver<decltype(&cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) release = driver<decltype(&cuMemRelease)>("cuMemRelease");
  decltype(&cuMemAddressReserve) reserve =
      driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) unreserve = driver<decltype(&cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemMap) map = driver<decltype(&cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = driver<decltype(&cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) set_access = driver<decltype(&cuMemSetAccess)>("cuMemSetAccess");
  decltype(&cuMemExportToShareableHandle) export_handle =
      driver<decltype(&cuMemExportToShareableHandle)>("cuMemExportToShareableHandle");
  decltype(&cuMemImportFromShareableHandle) import_handle =
      driver<decltype(&cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle");
  decltype(&cuMemRetainAllocationHandle) retain =
      driver<decltype(&cuMemRetainAllocationHandle)>("cuMemRetainAllocationHandle");
  decltype(&cuMemGetAddressRange) address_range =
      driver<decltype(&cuMemGetAddressRange)>("cuMemGetAddressRange");

  void check(CUresult code, const char* what) const {
    if (code == CUDA_SUCCESS) return;
    const char* text = "unknown error";
    error_string(code, &text);
    throw Error(ExitCode::internal, std::string(what) + ": " + text);
  }
};

const Driver& the_driver() {
  static const Driver loaded;
  return loaded;
}

/// A range of addresses with one allocation behind it, which this device may read and write.
class DeviceMapping final : public BlockMapping {
 public:
  /// Takes the allocation.
  DeviceMapping(CUmemGenericAllocationHandle handle, std::size_t size, std::size_t granularity,
                int device)
      : handle_(handle), size_(size) {
    const Driver& cuda = the_driver();
    try {
      cuda.check(cuda.reserve(&address_, size_, granularity, 0, 0), "cuMemAddressReserve");
      cuda.check(cuda.map(address_, size_, 0, handle_, 0), "cuMemMap");
      mapped_ = true;
      CUmemAccessDesc access{};
      access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      cuda.check(cuda.set_access(address_, size_, &access, 1), "cuMemSetAccess");
    } catch (...) {
      close();
      throw;
    }
  }
  ~DeviceMapping() override { close(); }
  DeviceMapping(const DeviceMapping&) = delete;
  void* data() const override { return reinterpret_cast<void*>(address_); }

 private:
  void close() {
    const Driver& cuda = the_driver();
    if (mapped_) cuda.unmap(address_, size_);
    if (address_ != 0) cuda.unreserve(address_, size_);
    cuda.release(handle_);
  }

  CUmemGenericAllocationHandle handle_;
  std::size_t size_;
  CUdeviceptr address_ = 0;
  bool mapped_ = false;
};

CUmemAllocationProp properties(int device) {
  CUmemAllocationProp made{};
  made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  made.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  return made;
}

std::size_t granularity_of(int device) {
  const CUmemAllocationProp wanted = properties(device);
  std::size_t granularity = 0;
  the_driver().check(
      the_driver().granularity(&granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
      "cuMemGetAllocationGranularity");
  return granularity;
}

std::size_t rounded(std::int64_t bytes, std::size_t granularity) {
  const auto wanted = static_cast<std::size_t>(bytes < 1 ? 1 : bytes);
  return (wanted + granularity - 1) / granularity * granularity;
}

HeldBytes bytes_of_blocks;

/// Memory of the device behind no address yet.
CUmemGenericAllocationHandle allocate(std::size_t size, const CUmemAllocationProp& wanted) {
  const Driver& cuda = the_driver();
  CUmemGenericAllocationHandle handle = 0;
  const CUresult code = cuda.create(&handle, size, &wanted, 0);
  const std::string what = "GPU memory of " + std::to_string(size) + " bytes";
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    throw OutOfMemory("arenas", static_cast<std::int64_t>(size), what + ": out of memory");
  }
  cuda.check(code, what.c_str());
  return handle;
}

/// Zeroes are there when it returns: no stream of ours waits for the default one.
void clear(void* data, std::size_t bytes) {
  check(cudaMemset(data, 0, bytes), "cudaMemset");
  check(cudaStreamSynchronize(nullptr), "cudaMemset");
}

std::unique_ptr<BlockMapping> map_memory(int descriptor, std::int64_t bytes, int device) {
  const Driver& cuda = the_driver();
  const std::size_t granularity = granularity_of(device);
  CUmemGenericAllocationHandle handle = 0;
  cuda.check(
      cuda.import_handle(&handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
      "cuMemImportFromShareableHandle");
  return std::make_unique<DeviceMapping>(handle, rounded(bytes, granularity), granularity, device);
}

class DeviceBlock final : public SharedBlock {
 public:
  DeviceBlock(std::int64_t bytes, int device) : bytes_(bytes), device_(device) {
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaFree(nullptr), "CUDA context");
    const Driver& cuda = the_driver();
    const std::size_t granularity = granularity_of(device), size = rounded(bytes, granularity);
    const CUmemAllocationProp wanted = properties(device);
    const CUmemGenericAllocationHandle handle = allocate(size, wanted);
    mapping_ = std::make_unique<DeviceMapping>(handle, size, granularity, device);
    cuda.check(
        cuda.export_handle(&descriptor_, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "cuMemExportToShareableHandle");
    clear(mapping_->data(), size);
    held_.emplace(bytes_of_blocks, static_cast<std::int64_t>(size));
  }
  ~DeviceBlock() override {
    if (descriptor_ >= 0) close(descriptor_);
  }
  DeviceBlock(const DeviceBlock&) = delete;

  void* data() const override { return mapping_->data(); }
  std::int64_t bytes() const override { return bytes_; }
  int descriptor() const override { return descriptor_; }

  std::unique_ptr<BlockMapping> map_peer(int descriptor, std::int64_t bytes) const override {
    return map_memory(descriptor, bytes, device_);
  }

 private:
  std::int64_t bytes_;
  int device_;
  int descriptor_ = -1;
  std::unique_ptr<DeviceMapping> mapping_;
  std::optional<Held> held_;
};

/// Memory of another block, exported once more.
class SharedDeviceMemory final : public SharedBlock {
 public:
  SharedDeviceMemory(void* data, std::int64_t bytes, int device, int descriptor)
      : data_(data), bytes_(bytes), device_(device), descriptor_(descriptor) {}
  ~SharedDeviceMemory() override { close(descriptor_); }
  SharedDeviceMemory(const SharedDeviceMemory&) = delete;
  void* data() const override { return data_; }
  std::int64_t bytes() const override { return bytes_; }
  int descriptor() const override { return descriptor_; }
  std::unique_ptr<BlockMapping> map_peer(int descriptor, std::int64_t bytes) const override {
    return map_memory(descriptor, bytes, device_);
  }

 private:
  void* data_;
  std::int64_t bytes_;
  int device_, descriptor_;
};

/// Reserved addresses; an allocation behind them only while mapped.
class ReleasableDeviceMemory final : public ReleasableMemory {
 public:
  ReleasableDeviceMemory(std::int64_t bytes, int device) : bytes_(bytes), device_(device) {
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaFree(nullptr), "CUDA context");
    const std::size_t granularity = granularity_of(device);
    size_ = rounded(bytes, granularity);
    const Driver& cuda = the_driver();
    cuda.check(cuda.reserve(&address_, size_, granularity, 0, 0), "cuMemAddressReserve");
    try {
      map();
      clear(data(), size_);
    } catch (...) {
      close();
      throw;
    }
  }
  ~ReleasableDeviceMemory() override { close(); }
  ReleasableDeviceMemory(const ReleasableDeviceMemory&) = delete;
  void* data() const override { return reinterpret_cast<void*>(address_); }
  std::int64_t bytes() const override { return bytes_; }
  bool mapped() const override { return mapped_; }

  void release() override {
    if (!mapped_) return;
    const Driver& cuda = the_driver();
    cuda.check(cuda.unmap(address_, size_), "cuMemUnmap");
    mapped_ = false;
    held_.reset();
    cuda.check(cuda.release(handle_), "cuMemRelease");
  }

  void map() override {
    if (mapped_) return;
    check(cudaSetDevice(device_), "cudaSetDevice");  // the calling thread may be a new one
    const Driver& cuda = the_driver();
    CUmemAllocationProp wanted = properties(device_);
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;  // never exported
    handle_ = allocate(size_, wanted);
    try {
      cuda.check(cuda.map(address_, size_, 0, handle_, 0), "cuMemMap");
    } catch (...) {
      cuda.release(handle_);
      throw;
    }
    mapped_ = true;
    held_.emplace(bytes_of_blocks, static_cast<std::int64_t>(size_));
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    cuda.check(cuda.set_access(address_, size_, &access, 1), "cuMemSetAccess");
  }

 private:
  void close() {
    const Driver& cuda = the_driver();
    if (mapped_) {
      cuda.unmap(address_, size_);
      cuda.release(handle_);
    }
    cuda.unreserve(address_, size_);
  }

  std::int64_t bytes_;
  int device_;
  std::size_t size_ = 0;
  CUdeviceptr address_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
  bool mapped_ = false;
  std::optional<Held> held_;
};

}  // namespace

std::int64_t device_block_bytes() { return bytes_of_blocks.bytes; }

std::unique_ptr<SharedBlock> make_device_block(std::int64_t bytes, int device) {
  return std::make_unique<DeviceBlock>(bytes, device);
}

std::unique_ptr<ReleasableMemory> make_releasable_device_memory(std::int64_t bytes, int device) {
  return std::make_unique<ReleasableDeviceMemory>(bytes, device);
}

std::unique_ptr<SharedBlock> share_device_memory(void* data, std::int64_t bytes, int device) {
  const Driver& cuda = the_driver();
  CUdeviceptr begin = 0;
  std::size_t size = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(data);
  const bool known = cuda.address_range(&begin, &size, address) == CUDA_SUCCESS;
  if (known && (begin != address || size < static_cast<std::size_t>(bytes))) return nullptr;
  CUmemGenericAllocationHandle handle = 0;
  if (cuda.retain(&handle, data) != CUDA_SUCCESS) return nullptr;  // not made by cuMemCreate
  int descriptor = -1;
  const CUresult exported =
      cuda.export_handle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  cuda.release(handle);
  if (exported != CUDA_SUCCESS) return nullptr;
  return std::make_unique<SharedDeviceMemory>(data, bytes, device, descriptor);
}

}  // namespace tessera
