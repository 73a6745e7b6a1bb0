// What a rank holds: (tensor, layout, coordinate) -> box.
#pragma once

#include <optional>
#include <vector>

#include "cost_models/layout/box.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"

namespace tessera {

/// True when the stage(s) of `coord` hold the parameter.
bool holds(const Parameter& parameter, const ParallelLayout& layout, const RankCoord& coord);

/// The part of the parameter that the rank computes with: its TP slice (a rank holds the KV heads
/// that its query heads use), whole layers of its stages. nullopt = not on this stage. Independent
/// of ZeRO and FSDP.
std::optional<Box> compute_box(const Parameter& parameter, const ParallelLayout& layout,
                               const RankCoord& coord);

/// The part that the rank keeps in memory between uses: compute_box, and with dp_shard > 1 (FSDP,
/// HSDP) the dp_shard-th part of it along its shard dim (dim 0 where TP replicates), cut by units
/// where there are at least dp_shard of them and by rows otherwise; an empty part is nullopt.
std::optional<Box> stored_box(const Parameter& parameter, const ParallelLayout& layout,
                              const RankCoord& coord);

/// Elements that the rank stores, summed over the table.
std::int64_t stored_elements(const ParameterTable& table, const ParallelLayout& layout,
                             const RankCoord& coord);

}  // namespace tessera
