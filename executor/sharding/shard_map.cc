#include "executor/sharding/shard_map.h"

#include <algorithm>
#include <numeric>

#include "cost_models/documents/check.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/spec/expert_parallel.h"
#include "executor/arena/arena_layout.h"

namespace tessera {
namespace {

constexpr std::int64_t kAlignment = 128;  // 256 bytes of bf16

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::int64_t in_elements(const ArenaLayout& arena, std::int64_t bytes) {
  return bytes / arena.element_bytes;
}

std::int64_t bucket_of(const ParameterTable& table, const Parameter& parameter) {
  if (parameter.layer >= 0) return parameter.layer;
  const bool tied = std::any_of(table.rows.begin(), table.rows.end(), [](const Parameter& p) {
    return p.place == StagePlace::embedding_and_head;
  });
  return tied || parameter.place == StagePlace::embedding ? kFrontBucket : kBackBucket;
}

/// The front, then one bucket per layer and the back, with the rows' places. `apart`: routed
/// experts have buckets of their own.
std::vector<ShardBucket> make_buckets(const ParameterTable& table, const ArenaLayout& arena,
                                      int shards, bool apart) {
  std::vector<ShardBucket> buckets(1);
  std::int64_t arena_end = 0, last = kFrontBucket;
  for (const ArenaSlot& slot : arena.slots) {
    const Parameter& parameter = table.rows[index(slot.tensor)];
    const bool local = apart && parameter.experts > 0;
    const std::int64_t layer = bucket_of(table, parameter) + (local ? kExpertBuckets : 0);
    auto found = std::find_if(buckets.begin(), buckets.end(),
                              [&](const ShardBucket& b) { return b.layer == layer; });
    if (found == buckets.end()) {
      buckets.push_back({.layer = layer, .local = local});
      found = std::prev(buckets.end());
    }
    const bool joins = !found->rows.empty() && last == layer && slot.range.offset == arena_end;
    last = layer;
    if (!joins) found->extent = (found->extent + kAlignment - 1) / kAlignment * kAlignment;
    found->rows.push_back(slot.tensor);
    found->place.push_back(found->extent);
    found->extent += in_elements(arena, slot.range.bytes);
    arena_end = slot.range.offset + slot.range.bytes;
  }
  for (ShardBucket& bucket : buckets) bucket.of_rank.resize(index(shards));
  return buckets;
}

std::int64_t elements_of(const ArenaLayout& arena, int row) {
  return in_elements(arena, arena.slots[index(arena.slot_of[index(row)])].range.bytes);
}

/// Everything, at the arena's own offsets.
void keep_all(const ArenaLayout& arena, ShardMap& map) {
  for (ShardBucket& bucket : map.buckets) {
    for (std::size_t i = 0; i < bucket.rows.size(); ++i) {
      const ArenaSlot& slot = arena.slots[index(arena.slot_of[index(bucket.rows[i])])];
      bucket.of_rank[0].push_back({.row = slot.tensor,
                                   .first = 0,
                                   .count = elements_of(arena, slot.tensor),
                                   .block = bucket.place[i],
                                   .shard = in_elements(arena, slot.range.offset)});
    }
    bucket.block = bucket.extent;
  }
  map.elements = in_elements(arena, arena.bytes);
}

/// All of it on this rank; `place` says where a row lies in its shard space.
template <class Place>
void keep_local(const ArenaLayout& arena, int rank, const Place& place, ShardBucket& bucket) {
  for (std::size_t i = 0; i < bucket.rows.size(); ++i) {
    bucket.of_rank[index(rank)].push_back({.row = bucket.rows[i],
                                           .first = 0,
                                           .count = elements_of(arena, bucket.rows[i]),
                                           .block = bucket.place[i],
                                           .shard = place(i)});
  }
}

void cut_flat(const ArenaLayout& arena, ShardMap& map) {
  for (ShardBucket& bucket : map.buckets) {
    if (bucket.local) {
      keep_local(
          arena, map.rank, [&](std::size_t i) { return map.elements + bucket.place[i]; }, bucket);
      map.elements += (bucket.extent + 63) / 64 * 64;
      continue;
    }
    bucket.block = (bucket.extent + map.shards - 1) / map.shards;
    bucket.shard = map.elements;
    for (int rank = 0; rank < map.shards; ++rank) {
      const std::int64_t lo = rank * bucket.block, hi = lo + bucket.block;
      for (std::size_t i = 0; i < bucket.rows.size(); ++i) {
        const std::int64_t begin = bucket.place[i];
        const std::int64_t first = std::max(lo, begin);
        const std::int64_t last = std::min(hi, begin + elements_of(arena, bucket.rows[i]));
        if (first >= last) continue;
        bucket.of_rank[index(rank)].push_back({.row = bucket.rows[i],
                                               .first = first - begin,
                                               .count = last - first,
                                               .block = first - lo,
                                               .shard = bucket.shard + first - lo});
      }
    }
    // Kernels read 16 bytes at a time.
    map.elements += (bucket.block + 63) / 64 * 64;
  }
}

void cut_stored(const ParameterTable& table, const ParallelLayout& layout, const RankCoord& coord,
                DType dtype, const ArenaLayout& arena, ShardMap& map) {
  for (int rank = 0; rank < map.shards; ++rank) {
    RankCoord holder = coord;
    holder.dp_shard = rank;
    const ArenaLayout stored = arena_layout(table, layout, holder, dtype, /*stored=*/true);
    if (rank == map.rank) map.elements = in_elements(stored, stored.bytes);
    for (ShardBucket& bucket : map.buckets) {
      if (bucket.local) {
        if (rank != map.rank) continue;
        const auto place = [&](std::size_t i) {
          return in_elements(
              stored, stored.slots[index(stored.slot_of[index(bucket.rows[i])])].range.offset);
        };
        keep_local(arena, rank, place, bucket);
        continue;
      }
      std::int64_t block = 0;
      for (const int row : bucket.rows) {
        const int at = stored.slot_of[index(row)];
        if (at < 0) continue;
        const ArenaSlot& part = stored.slots[index(at)];
        const ByteRange range = range_of(arena, row, part.box);
        const ArenaSlot& whole = arena.slots[index(arena.slot_of[index(row)])];
        const std::int64_t count = in_elements(arena, range.bytes);
        bucket.of_rank[index(rank)].push_back(
            {.row = row,
             .first = in_elements(arena, range.offset - whole.range.offset),
             .count = count,
             .block = block,
             .shard = in_elements(stored, part.range.offset)});
        block += count;
      }
      bucket.block = std::max(bucket.block, block);
    }
  }
}

}  // namespace

std::map<int, std::int64_t> places_of(const ShardBucket& bucket) {
  std::map<int, std::int64_t> places;
  for (std::size_t i = 0; i < bucket.rows.size(); ++i) places[bucket.rows[i]] = bucket.place[i];
  return places;
}

const ShardBucket& ShardMap::of_layer(std::int64_t layer) const {
  const auto found = std::find_if(buckets.begin(), buckets.end(),
                                  [&](const ShardBucket& b) { return b.layer == layer; });
  TESSERA_CHECK(found != buckets.end());
  return *found;
}

BucketParts parts_of(const ShardBucket& bucket, int rank) {
  BucketParts parts{.even = {}, .rest = {.layer = bucket.layer, .extent = bucket.extent}};
  parts.rest.of_rank.resize(bucket.of_rank.size());
  for (std::size_t i = 0; i < bucket.rows.size(); ++i) {
    std::vector<ShardSegment> segments;  // of each rank that has one
    bool even = true;
    for (std::size_t r = 0; r < bucket.of_rank.size(); ++r) {
      for (const ShardSegment& segment : bucket.of_rank[r]) {
        if (segment.row != bucket.rows[i]) continue;
        even = even && segments.size() == r &&
               segment.first == static_cast<std::int64_t>(r) * segment.count &&
               (r == 0 || segment.count == segments[0].count);
        segments.push_back(segment);
      }
    }
    if (even && segments.size() == bucket.of_rank.size()) {
      parts.even.push_back(
          {bucket.rows[i], bucket.place[i], segments[0].count, segments[index(rank)].shard});
    } else {
      parts.rest.rows.push_back(bucket.rows[i]);
      parts.rest.place.push_back(bucket.place[i]);
    }
  }
  for (std::size_t r = 0; r < bucket.of_rank.size(); ++r) {
    std::int64_t block = 0;
    for (ShardSegment segment : bucket.of_rank[r]) {
      const std::vector<int>& rows = parts.rest.rows;
      if (std::find(rows.begin(), rows.end(), segment.row) == rows.end()) continue;
      segment.block = block;
      block += segment.count;
      parts.rest.of_rank[r].push_back(segment);
    }
    parts.rest.block = std::max(parts.rest.block, block);
  }
  return parts;
}

std::vector<std::size_t> update_order(const ShardMap& map) {
  std::vector<std::size_t> order(map.buckets.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t bucket) { return map.buckets[bucket].layer < 0; });
  return order;
}

std::vector<int> update_order(const ParameterTable& table) {
  std::vector<int> order(table.rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return table.rows[index(a)].layer < table.rows[index(b)].layer;
  });
  return order;
}

const ShardBucket* ShardMap::back() const {
  const auto found = std::find_if(buckets.begin(), buckets.end(),
                                  [](const ShardBucket& b) { return b.layer == kBackBucket; });
  return found == buckets.end() ? nullptr : &*found;
}

ShardMap make_shard_map(const ParameterTable& table, const ParallelLayout& layout,
                        const RankCoord& coord, DType dtype, ShardKind kind, int shards, int rank) {
  const ArenaLayout arena = arena_layout(table, layout, coord, dtype);
  ShardMap map{.kind = kind,
               .shards = kind == ShardKind::none ? 1 : shards,
               .rank = kind == ShardKind::none ? 0 : rank};
  const bool apart = experts_apart(table.model, layout) && kind != ShardKind::none;
  map.buckets = make_buckets(table, arena, map.shards, apart);
  switch (kind) {
    case ShardKind::none:
      keep_all(arena, map);
      break;
    case ShardKind::flat:
      cut_flat(arena, map);
      break;
    case ShardKind::stored:
      cut_stored(table, layout, coord, dtype, arena, map);
      break;
  }
  return map;
}

}  // namespace tessera
