#include "cost_models/layout/sharding.h"

#include <map>
#include <tuple>

namespace tessera {
namespace {

/// Units of the parameter that TP part `part` of `parts` computes with.
Interval units_of(const Parameter& parameter, int parts, int part) {
  if (parameter.unit != SplitUnit::kv_heads) return split(parameter.units, parts, part);
  const std::int64_t group = parameter.queries_per_unit;
  const Interval queries = split(parameter.units * group, parts, part);
  if (queries.empty()) return {0, 0};
  return {queries.lo / group, (queries.hi + group - 1) / group};
}

bool stage_has_layer(const ParallelLayout& layout, int stage, std::int64_t layer) {
  for (size_t chunk = static_cast<size_t>(stage); chunk < layout.stages.size();
       chunk += static_cast<size_t>(layout.pp)) {
    const LayerRange& range = layout.stages[chunk];
    if (layer >= range.first && layer < range.last) return true;
  }
  return false;
}

/// The stage that holds a layer.
int stage_of(const ParallelLayout& layout, std::int64_t layer) {
  for (size_t chunk = 0; chunk < layout.stages.size(); ++chunk) {
    const LayerRange& range = layout.stages[chunk];
    if (layer >= range.first && layer < range.last) {
      return static_cast<int>(chunk % static_cast<size_t>(layout.pp));
    }
  }
  return -1;
}

/// Parameters with equal keys lie alike: nothing else of them is read here.
auto shard_key(const Parameter& row, const ParallelLayout& from, const ParallelLayout& to) {
  return std::tuple(row.shape, row.place, stage_of(from, row.layer), stage_of(to, row.layer),
                    row.split_dim, row.unit, row.units, row.unit_size, row.queries_per_unit,
                    row.experts, row.expert, row.expert_dim);
}

}  // namespace

bool holds(const Parameter& parameter, const ParallelLayout& layout, const RankCoord& coord) {
  const bool first = coord.pp == 0, last = coord.pp == layout.pp - 1;
  switch (parameter.place) {
    case StagePlace::embedding:
      return first;
    case StagePlace::layer:
      return stage_has_layer(layout, coord.pp, parameter.layer);
    case StagePlace::head:
      return last;
    case StagePlace::embedding_and_head:
      return first || last;
  }
  return false;
}

std::optional<Box> compute_box(const Parameter& parameter, const ParallelLayout& layout,
                               const RankCoord& coord) {
  if (!holds(parameter, layout, coord)) return std::nullopt;
  Box box = whole(parameter.shape);
  int parts = layout.tp, part = coord.tp;
  if (parameter.experts > 0) {
    const ExpertCoord at = expert_coord(layout, coord);
    const Interval mine = split(parameter.experts, layout.ep, at.ep);
    if (parameter.expert_dim >= 0) {
      if (mine.empty()) return std::nullopt;
      box = restricted(box, parameter.expert_dim, mine);
    } else if (parameter.expert < mine.lo || parameter.expert >= mine.hi) {
      return std::nullopt;
    }
    parts = layout.etp, part = at.etp;
  }
  if (parameter.split_dim < 0) return box;
  const Interval units = units_of(parameter, parts, part);
  if (units.empty()) return std::nullopt;
  return restricted(box, parameter.split_dim,
                    {units.lo * parameter.unit_size, units.hi * parameter.unit_size});
}

ShardPart shard_part(const Parameter& parameter, const ParallelLayout& layout,
                     const RankCoord& coord) {
  if (layout.dp_shard <= 1) return {};
  if (parameter.experts == 0) return {.parts = layout.dp_shard, .part = coord.dp_shard};
  const int parts = layout.tp * layout.cp * layout.dp_shard / (layout.ep * layout.etp);
  if (parts <= 1) return {};
  return {.parts = parts, .part = expert_coord(layout, coord).edp % parts};
}

int shard_dim(const Parameter& parameter) {
  if (parameter.expert_dim >= 0) return parameter.expert_dim;
  return parameter.split_dim < 0 ? 0 : parameter.split_dim;
}

std::optional<Box> stored_box(const Parameter& parameter, const ParallelLayout& layout,
                              const RankCoord& coord) {
  const std::optional<Box> box = compute_box(parameter, layout, coord);
  const auto [parts, mine] = shard_part(parameter, layout, coord);
  if (!box || parts <= 1 || box->rank == 0) return box;
  const int dim = shard_dim(parameter);
  const Interval rows = box->dims[static_cast<size_t>(dim)];
  const std::int64_t unit = dim == parameter.split_dim ? parameter.unit_size : 1;
  const std::int64_t step = rows.size() / unit >= parts ? unit : 1;
  const Interval part = split(rows.size() / step, parts, mine);
  if (part.empty()) return std::nullopt;
  return restricted(*box, dim, {rows.lo + part.lo * step, rows.lo + part.hi * step});
}

AlikeParameters alike_parameters(const ParameterTable& table, const ParallelLayout& from,
                                 const ParallelLayout& to) {
  AlikeParameters alike;
  std::map<decltype(shard_key(table.rows.front(), from, to)), int> kinds;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    const auto [found, fresh] =
        kinds.try_emplace(shard_key(table.rows[row], from, to), static_cast<int>(kinds.size()));
    if (fresh) {
      alike.first.push_back(static_cast<int>(row));
      alike.count.push_back(0);
    }
    ++alike.count[static_cast<size_t>(found->second)];
    alike.kind.push_back(found->second);
  }
  return alike;
}

std::int64_t stored_elements(const ParameterTable& table, const ParallelLayout& layout,
                             const RankCoord& coord) {
  std::int64_t sum = 0;
  for (const Parameter& row : table.rows) {
    if (const auto box = stored_box(row, layout, coord)) sum += volume(*box);
  }
  return sum;
}

}  // namespace tessera
