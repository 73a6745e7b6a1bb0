// Where a rank's part of every tensor lies inside its one arena of memory.
//
// In the arena the sharded dim of a tensor is outermost (a row-parallel weight [out, in] is stored
// as [in, out]), so every slice along it is one contiguous byte range and a change of layout needs
// no packing. A plain value; offsets and sizes in bytes; no torch here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cost_models/layout/reshard_plan.h"
#include "cost_models/layout/sharding.h"

namespace tessera {

struct ByteRange {
  std::int64_t offset = 0, bytes = 0;
  bool operator==(const ByteRange&) const = default;
};

/// One tensor's place. `box` is the part that is held, in checkpoint coordinates.
struct ArenaSlot {
  int tensor = 0;  // row of the parameter table
  Box box;
  int outer_dim = 0;  // dim of the checkpoint tensor that is outermost in memory
  ByteRange range;

  /// Sizes of `box` in memory order: outer_dim first, the others in their order.
  std::vector<std::int64_t> memory_shape() const;
};

struct ArenaLayout {
  std::vector<ArenaSlot> slots;  // in table order, only what is held
  std::vector<int> slot_of;      // by table row; -1 = not held
  std::int64_t element_bytes = 2;
  std::int64_t bytes = 0;  // of the whole arena, padding included
};

/// Lays out what the rank at `coord` computes with (compute_box), or with `stored` what it stores
/// (stored_box: FSDP shards). Slots start at multiples of `alignment` bytes, except that the parts
/// of one fused storage tensor (q|k|v, gate|up) follow each other without a gap: their slots
/// together are one contiguous matrix.
ArenaLayout arena_layout(const ParameterTable& table, const ParallelLayout& layout,
                         const RankCoord& coord, DType dtype, bool stored = false,
                         std::int64_t alignment = 256);

/// One memory for training and rollout of a rank. The rollout's slots lie as arena_layout places
/// them; a training slot is a view of the rollout slot that contains it, or lies behind them all
/// where none does. With nested layouts nothing is held twice and the way back moves nothing.
struct SharedArena {
  ArenaLayout training, rollout;
  std::int64_t bytes = 0;       // of the whole memory
  std::int64_t held_twice = 0;  // bytes of training slots outside the rollout's
};

/// Either may have no slots, where the rank plays one part only.
SharedArena shared_arena(const ArenaLayout& training, const ArenaLayout& rollout,
                         std::int64_t alignment = 256);

/// The bytes of `box` of a held tensor. Precondition: the slot holds `box`, and `box` spans the
/// slot in every dim but outer_dim.
ByteRange range_of(const ArenaLayout& arena, int tensor, const Box& box);

}  // namespace tessera
