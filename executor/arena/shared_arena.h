// The one memory of a rank that plays two parts: what it trains is what it generates with.
//
// Plain functions of layouts; no torch. Bytes.
#pragma once

#include <cstdint>

#include "cost_models/layout/rank_map.h"
#include "executor/arena/arena_layout.h"

namespace tessera {

/// shared_arena of what the rank stores as a member of `from` and computes with as one of `to`.
SharedArena shared_arena_on(const ParameterTable& table, const RankMap& from, const RankMap& to,
                            int rank, DType dtype);

/// Bytes of training weights that need no memory beside the rollout's.
std::int64_t spared_bytes(const SharedArena& shared);

}  // namespace tessera
