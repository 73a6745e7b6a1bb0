#include "executor/train/peer_shards.h"

#include <c10/cuda/CUDAStream.h>

namespace tessera {

std::unique_ptr<PeerShards> make_peer_shards(
    Communicator& host, const RankMap& map, const Weights& weights,
    const std::function<std::unique_ptr<SharedBlock>(std::int64_t)>& make_block) {
  if (map.layout.dp_shard == 1) return nullptr;
  const ArenaLayout arena =
      arena_layout(weights.table, weights.layout, weights.coord, weights.dtype, /*stored=*/true);
  auto made = std::make_unique<PeerShards>();
  made->block = make_block(arena.bytes);
  made->blocks = std::make_unique<PeerBlocks>(host, made->block.get());
  if (!made->blocks->all_on_one_host()) return nullptr;
  const torch::Device device = weights.device();
  made->copies =
      device.is_cuda() ? make_device_stream_copies(device.index()) : make_host_stream_copies();
  made->storage =
      torch::from_blob(made->block->data(), {arena.bytes / arena.element_bytes},
                       torch::TensorOptions().dtype(scalar_type(weights.dtype)).device(device));
  for (const int rank : group_of(map, Axis::dp_shard, host.rank())) {
    made->of_rank.push_back(rank == host.rank() ? static_cast<std::byte*>(made->block->data())
                                                : made->blocks->at(rank));
  }
  return made;
}

void* current_stream(torch::Device device) {
  return device.is_cuda() ? c10::cuda::getCurrentCUDAStream(device.index()).stream() : nullptr;
}

}  // namespace tessera
