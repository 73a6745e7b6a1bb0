#include "executor/adapters/adapter_table.h"

#include "cost_models/documents/check.h"
#include "executor/checkpoint/peft_folder.h"

namespace tessera {
namespace {

/// A or B of a matrix: `shape` with the matrix' own dim `dim`, which is cut where the matrix is cut
/// along it.
Parameter part_of(const Parameter& matrix, const std::string& name,
                  const std::vector<std::int64_t>& shape, int dim) {
  Parameter part{.name = name,
                 .shape = shape,
                 .slice = {},
                 .storage = name,
                 .place = matrix.place,
                 .layer = matrix.layer};
  if (matrix.split_dim != dim) return part;
  part.split_dim = dim;
  part.unit = matrix.unit;
  part.units = matrix.units;
  part.unit_size = matrix.unit_size;
  part.queries_per_unit = matrix.queries_per_unit;
  return part;
}

}  // namespace

ParameterTable adapter_table(const ParameterTable& model, const Lora& lora) {
  ParameterTable table{.model = model.model, .rows = {}};
  const std::vector<int> rows = adapted_rows(model, lora);
  const auto matrix = [&](std::size_t i) -> const Parameter& {
    return model.rows[static_cast<std::size_t>(rows[i])];
  };
  // A layer's A adjoin, so that those of q, k and v or of gate and up are one matrix to a product.
  for (std::size_t first = 0, last = 0; first < rows.size(); first = last) {
    while (last < rows.size() && matrix(last).layer == matrix(first).layer) ++last;
    for (std::size_t i = first; i < last; ++i) {
      const Parameter& of = matrix(i);
      TESSERA_CHECK(of.experts == 0 && !of.slice && of.shape.size() == 2);
      table.rows.push_back(part_of(of, peft_name_of_a(of.name), {lora.rank, of.shape[1]}, 1));
    }
    for (std::size_t i = first; i < last; ++i) {
      const Parameter& of = matrix(i);
      table.rows.push_back(part_of(of, peft_name_of_b(of.name), {of.shape[0], lora.rank}, 0));
    }
  }
  return table;
}

ParallelLayout adapter_layout(const ParallelLayout& layout) {
  ParallelLayout own = layout;
  own.dp_shard = 1;
  own.zero = 0;
  return own;
}

RankCoord adapter_coord(const ParallelLayout& layout, const RankCoord& coord) {
  RankCoord own = coord;
  own.dp_replicate = coord.dp_replicate * layout.dp_shard + coord.dp_shard;
  own.dp_shard = 0;
  return own;
}

RankMap adapter_map(const RankMap& map) {
  RankMap own{.layout = adapter_layout(map.layout), .ranks = map.ranks, .coords = {}};
  for (const RankCoord& coord : map.coords) own.coords.push_back(adapter_coord(map.layout, coord));
  return own;
}

}  // namespace tessera
