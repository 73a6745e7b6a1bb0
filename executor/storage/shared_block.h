// A rank's memory that the other processes of its host can map and read.
//
// Host memory is a memory file; GPU memory a cuMem allocation exported as a file descriptor. Both
// are made once per arena and mapped by every peer at start (peer_blocks.h). Owned by the rank; a
// peer's mapping stays valid after the owner freed its own. Sizes in bytes. Free of torch.
#pragma once

#include <cstdint>
#include <memory>

namespace tessera {

/// A peer's block as this process sees it; unmapped on destruction.
class BlockMapping {
 public:
  virtual ~BlockMapping() = default;
  virtual void* data() const = 0;
};

class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  virtual void* data() const = 0;
  virtual std::int64_t bytes() const = 0;
  /// Stands for the block in other processes; stays the block's own.
  virtual int descriptor() const = 0;
  /// Maps a peer's block of this kind, given its descriptor in this process (which stays the
  /// caller's), so that this rank's device, or its threads, can read it.
  virtual std::unique_ptr<BlockMapping> map_peer(int descriptor, std::int64_t bytes) const = 0;
};

/// Zero filled. Error (missing) when the host has not that much memory to give.
std::unique_ptr<SharedBlock> make_host_block(std::int64_t bytes);

/// On GPU `device`, zero filled; every GPU of the host may read it. Error (missing) when it does
/// not fit, or the driver cannot export memory. In the library tessera::storage_cuda.
std::unique_ptr<SharedBlock> make_device_block(std::int64_t bytes, int device);

/// Bytes of this process' device blocks that exist, which no allocator of torch's counts. In
/// tessera::storage_cuda.
std::int64_t device_block_bytes();

/// The block of make_host_block that begins at `data`, once more: for who holds only its memory.
/// The owner keeps the memory. nullptr where no block of this process begins there.
std::unique_ptr<SharedBlock> share_host_memory(void* data, std::int64_t bytes);
/// Shares memory of make_device_block. In tessera::storage_cuda.
std::unique_ptr<SharedBlock> share_device_memory(void* data, std::int64_t bytes, int device);

}  // namespace tessera
