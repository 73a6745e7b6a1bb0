// FSDP's shards where the other ranks of the host read them: a gather is then copies, which leave
// every multiprocessor to the computation.
//
// Made before the trainer, which moves the weights in. Who changes shards waits until nobody reads
// them and tells when they are final: ShardedParameters::changed. Owned beside the trainer, which
// refers to it; one thread.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "cost_models/layout/rank_map.h"
#include "executor/comm/communicator.h"
#include "executor/model/weights.h"
#include "executor/storage/peer_blocks.h"
#include "executor/storage/stream_copies.h"

namespace tessera {

struct PeerShards {
  std::unique_ptr<SharedBlock> block;
  std::unique_ptr<PeerBlocks> blocks;
  std::unique_ptr<StreamCopies> copies;
  torch::Tensor storage;                  // this rank's shards: the block
  std::vector<const std::byte*> of_rank;  // of every rank of the shard group, this one's too
};

/// Collective over `host`, whose ranks are the map's; nullptr where parameters are not sharded, or
/// not all ranks share a host. `make_block` as make_host_block or make_device_block.
std::unique_ptr<PeerShards> make_peer_shards(
    Communicator& host, const RankMap& map, const Weights& weights,
    const std::function<std::unique_ptr<SharedBlock>(std::int64_t)>& make_block);

/// cudaStream_t of torch's current stream; nullptr on the CPU.
void* current_stream(torch::Device device);

}  // namespace tessera
