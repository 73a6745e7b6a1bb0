// Gives a block's descriptor to processes that ask for it by name.
//
// Whoever connects to the abstract Unix socket of that name, as the same user on the same host, is
// sent the block's size (8 bytes) with its descriptor, and can map the memory. A thread of its own
// answers; the block outlives it.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "executor/storage/shared_block.h"
#include "executor/vllm/listening_socket.h"

namespace tessera {

class BlockGiver {
 public:
  /// Throws Error(io) where there are no sockets.
  explicit BlockGiver(const SharedBlock& block);
  ~BlockGiver();
  BlockGiver(const BlockGiver&) = delete;
  BlockGiver& operator=(const BlockGiver&) = delete;

  /// The socket's name, without the NUL that it begins with.
  const std::string& name() const { return socket_.name(); }

 private:
  void answer() const;

  int descriptor_;
  std::int64_t bytes_;
  ListeningSocket socket_;
  int wake_ = -1;
  std::thread thread_;
};

}  // namespace tessera
