#include "executor/arena/arena_layout.h"

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::vector<std::int64_t> ArenaSlot::memory_shape() const {
  std::vector<std::int64_t> shape;
  if (box.rank == 0) return shape;
  shape.push_back(box.dims[static_cast<size_t>(outer_dim)].size());
  for (int d = 0; d < box.rank; ++d) {
    if (d != outer_dim) shape.push_back(box.dims[static_cast<size_t>(d)].size());
  }
  return shape;
}

ArenaLayout arena_layout(const ParameterTable& table, const ParallelLayout& layout,
                         const RankCoord& coord, DType dtype, bool stored, std::int64_t alignment) {
  ArenaLayout arena{.slot_of = std::vector<int>(table.rows.size(), -1),
                    .element_bytes = size_of(dtype)};
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const Parameter& parameter = table.rows[row];
    const auto box =
        stored ? stored_box(parameter, layout, coord) : compute_box(parameter, layout, coord);
    if (!box) continue;
    const bool joins =
        !arena.slots.empty() && parameter.part > 0 &&
        table.rows[static_cast<size_t>(arena.slots.back().tensor)].storage == parameter.storage;
    if (!joins) arena.bytes = round_up(arena.bytes, alignment);
    const std::int64_t bytes = volume(*box) * arena.element_bytes;
    arena.slot_of[row] = static_cast<int>(arena.slots.size());
    arena.slots.push_back({.tensor = static_cast<int>(row),
                           .box = *box,
                           .outer_dim = parameter.split_dim < 0 ? 0 : parameter.split_dim,
                           .range = {arena.bytes, bytes}});
    arena.bytes += bytes;
  }
  arena.bytes = round_up(arena.bytes, alignment);
  return arena;
}

namespace {

/// True when `part` is whole rows of what the slot holds.
bool contains_rows(const ArenaSlot& slot, const Box& part) {
  if (intersect(slot.box, part) != part) return false;
  for (int d = 0; d < part.rank; ++d) {
    const auto dim = static_cast<size_t>(d);
    if (d != slot.outer_dim && part.dims[dim] != slot.box.dims[dim]) return false;
  }
  return true;
}

}  // namespace

SharedArena shared_arena(const ArenaLayout& training, const ArenaLayout& rollout,
                         std::int64_t alignment) {
  SharedArena shared{.training = training, .rollout = rollout, .bytes = rollout.bytes};
  std::int64_t last_behind = -1;  // where the slot before ended in `training`, if it lies behind
  for (ArenaSlot& slot : shared.training.slots) {
    const auto row = static_cast<size_t>(slot.tensor);
    const int index = row < rollout.slot_of.size() ? rollout.slot_of[row] : -1;
    if (index >= 0 && contains_rows(rollout.slots[static_cast<size_t>(index)], slot.box)) {
      slot.range = range_of(rollout, slot.tensor, slot.box);
      last_behind = -1;
      continue;
    }
    const bool joins = slot.range.offset == last_behind;
    last_behind = slot.range.offset + slot.range.bytes;
    if (!joins) shared.bytes = round_up(shared.bytes, alignment);
    slot.range.offset = shared.bytes;
    shared.bytes += slot.range.bytes;
    shared.held_twice += slot.range.bytes;
  }
  shared.bytes = round_up(shared.bytes, alignment);
  shared.training.bytes = shared.bytes;
  return shared;
}

ByteRange range_of(const ArenaLayout& arena, int tensor, const Box& box) {
  const int index = arena.slot_of.at(static_cast<size_t>(tensor));
  TESSERA_CHECK(index >= 0);
  const ArenaSlot& slot = arena.slots[static_cast<size_t>(index)];
  TESSERA_CHECK(intersect(slot.box, box) == box);
  if (box.rank == 0) return slot.range;
  const auto outer = static_cast<size_t>(slot.outer_dim);
  for (int d = 0; d < box.rank; ++d) {
    const auto dim = static_cast<size_t>(d);
    TESSERA_CHECK(dim == outer || box.dims[dim] == slot.box.dims[dim]);
  }
  const std::int64_t row_bytes = slot.range.bytes / slot.box.dims[outer].size();
  return {slot.range.offset + (box.dims[outer].lo - slot.box.dims[outer].lo) * row_bytes,
          box.dims[outer].size() * row_bytes};
}

}  // namespace tessera
