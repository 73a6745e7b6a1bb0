#include "executor/sharding/shard_reader.h"

namespace tessera {

void ShardReader::read(const ShardMap& map, const ShardBucket& bucket,
                       const std::function<std::byte*(int)>& row) const {
  const auto size = static_cast<std::int64_t>(own().element_size());
  // Ranks begin with different owners, so that nobody's links are asked by all at once.
  for (int next = 1; next <= map.shards; ++next) {
    const int owner = (map.rank + next) % map.shards;
    CopyBatch batch{.peer = owner};
    for (const ShardSegment& segment : bucket.of_rank[static_cast<std::size_t>(owner)]) {
      if (segment.count == 0) continue;
      batch.add(row(segment.row) + segment.first * size, shards_->at(owner) + segment.shard * size,
                static_cast<std::size_t>(segment.count * size));
    }
    if (!batch.to.empty()) shards_->copy(batch);
  }
}

}  // namespace tessera
