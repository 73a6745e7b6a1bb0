// Seconds by chunk of an iteration (iteration.h), of one block of a placement or of all.
//
// A plain value; entries beyond the chunks are zero.
#pragma once

#include "cost_models/spec/enum_array.h"
#include "cost_models/spec/units.h"
#include "cost_models/spec/workload.h"

namespace tessera {

/// Position of a chunk among an iteration's chunks.
enum class ChunkIndex : std::size_t {};
/// Every chunk has a phase, and no phase is in two.
template <>
inline constexpr std::size_t kEnumerators<ChunkIndex> = kEnumerators<Phase>;

using ChunkSeconds = EnumArray<ChunkIndex, Seconds>;

}  // namespace tessera
