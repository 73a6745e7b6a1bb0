// Without kernels every sum is the inner group's.
#include "executor/storage/peer_sums.h"

namespace tessera {

std::unique_ptr<Communicator> with_peer_sums(std::unique_ptr<Communicator> inner,
                                             Communicator& /*host*/, int /*device*/,
                                             void* /*stream*/) {
  return inner;
}

}  // namespace tessera
