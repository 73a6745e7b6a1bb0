// How a training rank sends weights to vLLM's workers: rounds of messages to each of them.
//
// Sockets between CPU ranks, NCCL between GPUs, with the same messages in the same order; the other
// end is integrations/vllm/tessera_vllm/links.py. A link is used by one thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/comm/nccl_world.h"

namespace tessera {

/// Messages of a round; `peer` is a worker's index among those of all servers.
using WeightRound = std::vector<SendBlock>;

class WeightLink {
 public:
  virtual ~WeightLink() = default;
  /// Where workers find this rank; empty where they need no name.
  virtual std::string name() const = 0;
  /// Meets the workers, which join at the same time. Throws PeerLost or Error(missing) where they
  /// do not come.
  virtual void join() = 0;
  /// Begins to send, a round's largest messages first, which stay as they are until the workers
  /// have told that everything is there.
  virtual void send(std::span<const WeightRound> rounds) = 0;
  /// Once they have: nothing is under way when it returns. Throws Error(missing) where it is.
  virtual void finish() = 0;
};

/// Each worker connects to a Unix socket of this rank. Messages lie in the host's memory.
std::unique_ptr<WeightLink> make_socket_link(int workers, double timeout_s);

/// The world of the ranks that send, and behind these `senders` ranks of all workers.
std::unique_ptr<WeightLink> make_world_link(
    std::function<std::unique_ptr<Communicator>()> make_world, int senders);

/// NCCL as a run's devices have it: set where ranks have GPUs.
struct NcclCalls {
  std::function<NcclId()> make_id;
  std::function<std::unique_ptr<Communicator>(const NcclId& id, int rank, int size,
                                              double timeout_s)>
      make_world;
};

}  // namespace tessera
