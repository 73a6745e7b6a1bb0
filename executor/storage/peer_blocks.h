// The blocks of all ranks of this host, mapped into this process.
//
// Made once at start, collectively. Descriptors travel over Unix sockets, so ranks may be threads
// or processes. Addresses are valid for the lifetime of the object; when to read is up to the
// caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/storage/shared_block.h"

namespace tessera {

class PeerBlocks {
 public:
  /// Collective over `host`, a communicator on host memory whose ranks the indices below are. Each
  /// rank brings a block or nullptr; blocks are of one kind. Throws PeerLost when a peer's
  /// descriptor does not come.
  PeerBlocks(Communicator& host, const SharedBlock* mine);

  /// Start of the rank's block; nullptr where it brought none or lives on another host.
  std::byte* at(int rank) const { return data_[static_cast<std::size_t>(rank)]; }
  bool same_host(int rank) const { return same_host_[static_cast<std::size_t>(rank)]; }
  bool all_on_one_host() const;

 private:
  std::vector<std::byte*> data_;
  std::vector<bool> same_host_;
  std::vector<std::unique_ptr<BlockMapping>> mappings_;
};

}  // namespace tessera
