// The messages by which training ranks send weights to the workers of all servers.
//
// Each slice of a worker (slices.h) is one message, straight out of a rank's block. Messages go in
// rounds of whole tensors, alike on all ranks, so that a worker turns what came in one round while
// the next is under way, in little memory. Pure functions of the layouts; no torch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "executor/vllm/slices.h"
#include "executor/vllm/weight_link.h"

namespace tessera {

/// Bytes that a worker gets in a round; a larger tensor is a round of its own.
inline constexpr std::int64_t kRoundBytes = std::int64_t{512} << 20;

/// For each worker where its rounds end among its slices; `workers` are of all servers. A worker
/// has as many rounds as the others.
void cut_rounds(const ParameterTable& table, DType dtype, int tp,
                std::span<VllmWorkerSlices> workers, std::int64_t round_bytes = kRoundBytes);

/// The ranks that send something to some worker, ascending.
std::vector<int> senders_to(std::span<const VllmWorkerSlices> workers);

/// What `rank`, whose block is at `block`, sends to whom in each round.
std::vector<WeightRound> rounds_of(int rank, const void* block,
                                   std::span<const VllmWorkerSlices> workers, DType dtype);

/// How the workers of a server reach those that send.
struct VllmLinkTable {
  std::vector<int> senders;          // ranks of the run
  std::vector<std::string> sockets;  // theirs; empty with NCCL
  std::string nccl_id;               // hexadecimal; empty with sockets
  int workers = 0;                   // of all servers
  int first_worker = 0;              // of this one
};

}  // namespace tessera
