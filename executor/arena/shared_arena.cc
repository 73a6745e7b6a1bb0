#include "executor/arena/shared_arena.h"

namespace tessera {

SharedArena shared_arena_on(const ParameterTable& table, const RankMap& from, const RankMap& to,
                            int rank, DType dtype) {
  const auto layout_on = [&](const RankMap& map, bool stored) {
    const int index = map.index_of(rank);
    if (index < 0) {
      return ArenaLayout{.slot_of = std::vector<int>(table.rows.size(), -1),
                         .element_bytes = size_of(dtype)};
    }
    return arena_layout(table, map.layout, map.coords[static_cast<size_t>(index)], dtype, stored);
  };
  return shared_arena(layout_on(from, true), layout_on(to, false));
}

std::int64_t spared_bytes(const SharedArena& shared) {
  std::int64_t bytes = 0;
  for (const ArenaSlot& slot : shared.training.slots) bytes += slot.range.bytes;
  return bytes - shared.held_twice;
}

}  // namespace tessera
