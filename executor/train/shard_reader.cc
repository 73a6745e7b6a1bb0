#include "executor/train/shard_reader.h"

#include <map>

namespace tessera {

void ShardReader::read(const ShardMap& map, const ShardBucket& bucket,
                       const torch::Tensor& memory) const {
  const auto size = static_cast<std::int64_t>(memory.element_size());
  auto* const whole = static_cast<std::byte*>(memory.mutable_data_ptr());
  const std::map<int, std::int64_t> places = places_of(bucket);
  // Ranks begin with different owners, so that nobody's links are asked by all at once.
  for (int next = 1; next <= map.shards; ++next) {
    const int owner = (map.rank + next) % map.shards;
    CopyBatch batch{.peer = owner};
    for (const ShardSegment& segment : bucket.of_rank[static_cast<std::size_t>(owner)]) {
      if (segment.count == 0) continue;
      batch.add(whole + (places.at(segment.row) + segment.first) * size,
                shards_->at(owner) + segment.shard * size,
                static_cast<std::size_t>(segment.count * size));
    }
    if (!batch.to.empty()) shards_->copy(batch);
  }
}

}  // namespace tessera
