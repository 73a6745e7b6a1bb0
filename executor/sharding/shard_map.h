// Which elements of a replica's parameters each data-parallel rank keeps, layer by layer.
//
// Parameters are grouped into buckets, one per layer, the first for the embedding and one for what
// follows the last layer. With expert parallelism a layer's routed experts are a bucket of their
// own, which this rank keeps whole. ZeRO-1 and 2 cut a bucket's memory into equal parts; FSDP cuts
// every tensor as the layout algebra's stored_box does, so that a reshard starts from the very same
// shards. A plain value; all offsets in elements; no torch here.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"
#include "cost_models/spec/dtype.h"

namespace tessera {

enum class ShardKind : std::uint8_t {
  none,    // every rank keeps all: shard space is the arena
  flat,    // equal parts of each bucket
  stored,  // stored_box of each tensor: shard space is the stored arena
};

/// Elements [first, first + count) of a table row's local tensor (memory order).
struct ShardSegment {
  int row = 0;
  std::int64_t first = 0, count = 0;
  std::int64_t block = 0;  // offset within its rank's block of the bucket
  std::int64_t shard = 0;  // offset in that rank's shard space
};

/// `layer` of the buckets outside the layers. A tied embedding is the head, so all is in front.
inline constexpr std::int64_t kFrontBucket = -1, kBackBucket = -2;
/// Added to a layer for `layer` of its bucket of experts.
inline constexpr std::int64_t kExpertBuckets = std::int64_t{1} << 32;

struct ShardBucket {
  std::int64_t layer = kFrontBucket;
  bool local = false;  // experts that are not shared: the parts of other ranks are empty
  std::vector<int> rows;
  std::vector<std::int64_t> place;  // of each row in the bucket's own memory
  std::int64_t extent = 0;          // of that memory
  std::int64_t block = 0;           // of every rank's part in a collective: the longest rank's
  std::int64_t shard = 0;           // flat: where this rank's block lies in its shard space
  std::vector<std::vector<ShardSegment>> of_rank;
};
/// Where each row begins in the bucket's own memory.
std::map<int, std::int64_t> places_of(const ShardBucket& bucket);

struct ShardMap {
  ShardKind kind = ShardKind::none;
  int shards = 1, rank = 0;
  std::int64_t elements = 0;  // of this rank's shard space
  std::vector<ShardBucket> buckets;

  /// The bucket of a layer. Precondition: this rank holds the layer.
  const ShardBucket& of_layer(std::int64_t layer) const;
  const ShardBucket& front() const { return buckets.front(); }
  /// nullptr where there is none: with a tied embedding, and before the last stage.
  const ShardBucket* back() const;
  const std::vector<ShardSegment>& own(const ShardBucket& bucket) const {
    return bucket.of_rank[static_cast<std::size_t>(rank)];
  }
};

/// The order in which a step beside a reshard of layouts writes the buckets, and the table's rows
/// on whatever rank: what lies outside the layers first, then layer by layer. The head's weights,
/// the longest to travel, are then not the last.
std::vector<std::size_t> update_order(const ShardMap& map);
std::vector<int> update_order(const ParameterTable& table);

/// A row that every rank keeps an equal part of, in rank order: a collective moves it in place.
struct EvenRow {
  int row = 0;
  std::int64_t place = 0;  // in the bucket's own memory
  std::int64_t count = 0;  // of every rank's part
  std::int64_t shard = 0;  // offset of this rank's part in its shard space
};

/// A bucket's even rows, and the others as a bucket whose blocks hold only them.
struct BucketParts {
  std::vector<EvenRow> even;
  ShardBucket rest;
};
BucketParts parts_of(const ShardBucket& bucket, int rank);

/// `shards` and `rank` are of the group that shares the parts (dp_shard for stored). The bucket's
/// own memory keeps tensors that adjoin in the arena (q|k|v, gate|up) adjoined.
ShardMap make_shard_map(const ParameterTable& table, const ParallelLayout& layout,
                        const RankCoord& coord, DType dtype, ShardKind kind, int shards, int rank);

}  // namespace tessera
