// Which parts of a model's state a rank writes and which it holds, as boxes of the model's tensors.
//
// A rank's shard space (shard_map.h) is cut into boxes in checkpoint coordinates, the language that
// all layouts share: what one layout has written, any other finds by intersection. Of the ranks
// that hold the same element exactly one writes it, and replicas write equal shares. Pure
// functions; offsets and counts in elements.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/layout/box.h"
#include "executor/sharding/shard_map.h"
#include "executor/weights/weights.h"

namespace tessera {

/// A box of a row's tensor that lies contiguously in the shard space, with `outer_dim` outermost
/// and the other dims in their order.
struct StatePiece {
  int row = 0;  // of the parameter table
  Box box;      // in checkpoint coordinates
  int outer_dim = 0;
  std::int64_t shard = 0;  // offset in the shard space

  std::int64_t count() const { return volume(box); }
  /// Sizes of the box in memory order.
  std::vector<std::int64_t> memory_shape() const;
};

/// A piece that is written has at most this many elements (64 MiB of fp32), or one index of its
/// outer dim: who needs a part of a tensor checks and reads little more.
inline constexpr std::int64_t kLargestPiece = std::int64_t{1} << 24;

/// All that lies in the rank's shard space, in the order of the table's rows within a bucket.
std::vector<StatePiece> held_pieces(const Weights& weights, const ShardMap& map);

/// What of it this rank writes.
std::vector<StatePiece> written_pieces(const Weights& weights, const ShardMap& map,
                                       std::int64_t largest = kLargestPiece);

}  // namespace tessera
