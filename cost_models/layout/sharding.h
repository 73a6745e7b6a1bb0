// The part of a tensor that a rank holds: (tensor, layout, coordinate) -> box.
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
/// that its query heads use), whole layers of its stages; of a routed expert's tensor its EP part
/// of the experts, each cut by ETP. nullopt = not on this stage, or another rank's expert.
/// Independent of ZeRO and FSDP.
std::optional<Box> compute_box(const Parameter& parameter, const ParallelLayout& layout,
                               const RankCoord& coord);

/// Into how many parts FSDP cuts what a rank computes with, and which of them the rank keeps. A
/// routed expert's slice is cut over the ranks of a replica that hold the same slice.
struct ShardPart {
  int parts = 1, part = 0;
};
ShardPart shard_part(const Parameter& parameter, const ParallelLayout& layout,
                     const RankCoord& coord);

/// The dim along which FSDP cuts and along which a reshard may cut a block between two senders.
int shard_dim(const Parameter& parameter);

/// The part that the rank keeps in memory between uses: compute_box, and with dp_shard > 1 (FSDP,
/// HSDP) its shard_part of it along the shard dim (dim 0 where TP replicates; the experts where
/// they are stacked), cut by units where there are at least as many as parts and by rows otherwise;
/// an empty part is nullopt.
std::optional<Box> stored_box(const Parameter& parameter, const ParallelLayout& layout,
                              const RankCoord& coord);

/// Parameters that lie alike in each of the layouts: no function above tells one from another.
struct AlikeParameters {
  std::vector<int> first;  // by kind: the row that stands for all of it
  std::vector<int> count;  // by kind
  std::vector<int> kind;   // by row of the table
};
AlikeParameters alike_parameters(const ParameterTable& table, const ParallelLayout& from,
                                 const ParallelLayout& to);

/// Elements that the rank stores, summed over the table.
std::int64_t stored_elements(const ParameterTable& table, const ParallelLayout& layout,
                             const RankCoord& coord);

}  // namespace tessera
