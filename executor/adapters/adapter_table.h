// The adapters of a model as a table of parameters of their own, and how a role's layout cuts them.
//
// A and B of each adapted matrix follow each other, in the order of the matrices, named as peft
// names them. The one that meets the dim along which tensor parallelism cuts the matrix is cut by
// the matrix' own units, so that a rank has the adapters of what it computes; the other one is
// whole on every rank of the group. Data-parallel ranks hold equal adapters, whatever they share of
// the model. Pure functions; no torch.
#pragma once

#include "cost_models/adapters.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"

namespace tessera {

/// Rows 2 i and 2 i + 1 are A and B of row adapted_rows(model, lora)[i]. Precondition: no expert's.
ParameterTable adapter_table(const ParameterTable& model, const Lora& lora);

/// Layout, place and ranks of a role as its adapters have them: without shards.
ParallelLayout adapter_layout(const ParallelLayout& layout);
RankCoord adapter_coord(const ParallelLayout& layout, const RankCoord& coord);
RankMap adapter_map(const RankMap& map);

}  // namespace tessera
