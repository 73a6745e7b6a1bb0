// Collectives over one group of ranks.
//
// Three implementations pass one conformance suite: threads in one process (tests), MPI (ranks on
// CPUs) and NCCL (one GPU per rank). Counts are elements; pointers are host memory for threads and
// MPI, device memory for NCCL. Every member of the group must call the same operations in the same
// order. One thread per Communicator object at a time. Operations on host memory block; operations
// on device memory are ordered on the communicator's stream and return at once.
// A peer that died or did not come surfaces as PeerLost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "cost_models/spec/dtype.h"

namespace tessera {

enum class ReduceOp : std::uint8_t { sum, max };

/// A message of an exchange; `peer` is a rank within the group.
struct SendBlock {
  int peer = 0;
  const void* data = nullptr;
  std::size_t bytes = 0;
};
struct ReceiveBlock {
  int peer = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// One all-gather of a batch; `bytes` from every member.
struct GatherBlock {
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t bytes = 0;
};

/// A member of a group is gone (or did not arrive in time). `rank` is global, -1 if unknown.
class PeerLost : public std::runtime_error {
 public:
  PeerLost(int rank, const std::string& what) : std::runtime_error(what), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  // within the group
  virtual int size() const = 0;

  /// In place on `count` elements of every member. The result has the same bits on every member and
  /// in every run. bf16 and fp16 sums accumulate in fp32 (NCCL rounds its partial sums).
  virtual void all_reduce(void* data, std::size_t count, DType type, ReduceOp op) = 0;
  /// `receive` holds size() blocks of `count` elements in rank order. `send` may be its own block.
  virtual void all_gather(const void* send, void* receive, std::size_t count, DType type) = 0;
  /// `send` holds size() blocks of `count` elements; block r is reduced into rank r's `receive`.
  virtual void reduce_scatter(const void* send, void* receive, std::size_t count, DType type,
                              ReduceOp op) = 0;
  /// Several all-gathers at once, each as all_gather() of bytes.
  virtual void all_gather_batch(std::span<const GatherBlock> blocks) {
    for (const GatherBlock& block : blocks) {
      all_gather(block.send, block.receive, block.bytes, DType::uint8);
    }
  }
  virtual void broadcast(void* data, std::size_t count, DType type, int root) = 0;
  /// Block i of `send` goes to rank i; block j of `receive` came from rank j; `count` each.
  virtual void all_to_all(const void* send, void* receive, std::size_t count, DType type) = 0;
  /// All messages at once, without deadlock. Between one pair of ranks messages match in order; a
  /// message to oneself is a copy. Messages may be larger than 2 GiB.
  virtual void exchange(std::span<const SendBlock> sends,
                        std::span<const ReceiveBlock> receives) = 0;
  /// Returns when every member has called it (device work before it included).
  virtual void barrier() = 0;
  /// Makes every pending and later operation of this group throw PeerLost. Any thread may call it.
  virtual void abort() = 0;

  /// New groups of some members, given as ranks within this group in the order of the new group.
  /// Every member of this communicator calls it. Members name either all the same list, or each the
  /// list of its own group (lists equal or disjoint); who is not in the list it names gets nullptr.
  virtual std::unique_ptr<Communicator> split(std::span<const int> members) = 0;
};

}  // namespace tessera
