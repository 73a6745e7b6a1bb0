#include "executor/train/shard_reader.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <map>
#include <utility>

#include "executor/storage/block_copies.h"

namespace tessera {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::map<int, std::int64_t> places_of(const ShardBucket& bucket) {
  std::map<int, std::int64_t> places;
  for (std::size_t i = 0; i < bucket.rows.size(); ++i) places[bucket.rows[i]] = bucket.place[i];
  return places;
}

void copy_now(const CopyBatch& batch, const torch::Device& device) {
  if (!device.is_cuda()) {
    make_host_copies()->start(std::span(&batch, 1));
    return;
  }
  const c10::impl::VirtualGuardImpl guard(device.type());
  copy_on_stream(batch, guard.getStream(device).native_handle());
}

}  // namespace

void ShardReader::read(const ShardMap& map, const ShardBucket& bucket,
                       const torch::Tensor& memory) const {
  const auto size = static_cast<std::int64_t>(memory.element_size());
  auto* const whole = static_cast<std::byte*>(memory.mutable_data_ptr());
  const std::map<int, std::int64_t> places = places_of(bucket);
  // Ranks begin with different owners, so that nobody's links are asked by all at once.
  for (int next = 1; next <= map.shards; ++next) {
    const int owner = (map.rank + next) % map.shards;
    CopyBatch batch{.peer = owner};
    for (const ShardSegment& segment : bucket.of_rank[index(owner)]) {
      if (segment.count == 0) continue;
      batch.add(whole + (places.at(segment.row) + segment.first) * size,
                peers_.at(owner) + segment.shard * size,
                static_cast<std::size_t>(segment.count * size));
    }
    if (!batch.to.empty()) copy_now(batch, memory.device());
  }
}

std::unique_ptr<ShardReader> make_shard_reader(Communicator& host, std::int64_t elements,
                                               const torch::TensorOptions& options) {
  const torch::Device device = options.device();
  const std::int64_t bytes =
      std::max<std::int64_t>(elements, 1) * static_cast<std::int64_t>(options.dtype().itemsize());
  std::shared_ptr<SharedBlock> block =
      device.is_cuda() ? make_device_block(bytes, device.index()) : make_host_block(bytes);
  PeerBlocks peers(host, block.get());
  if (!peers.all_on_one_host()) return nullptr;
  torch::Tensor own = torch::from_blob(
      block->data(), {elements}, [block](void*) {}, options);
  return std::make_unique<ShardReader>(std::move(block), std::move(peers), std::move(own));
}

}  // namespace tessera
