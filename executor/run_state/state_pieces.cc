#include "executor/run_state/state_pieces.h"

#include <algorithm>

#include "cost_models/documents/check.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/spec/expert_parallel.h"

namespace tessera {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// Dims of a box in memory order.
std::vector<int> memory_order(int rank, int outer_dim) {
  std::vector<int> order;
  if (rank > 0) order.push_back(outer_dim);
  for (int dim = 0; dim < rank; ++dim) {
    if (dim != outer_dim) order.push_back(dim);
  }
  return order;
}

/// A local tensor: what the rank computes with of one row.
struct LocalTensor {
  int row = 0;
  Box box;  // in checkpoint coordinates
  int outer_dim = 0;
  std::vector<int> order;           // of its dims in memory
  std::vector<std::int64_t> inner;  // elements below one index of each, in memory order
};

LocalTensor local_tensor(const Weights& weights, int row) {
  const Parameter& parameter = weights.table.rows[index(row)];
  const auto box = compute_box(parameter, weights.layout, weights.coord);
  TESSERA_CHECK(box.has_value());
  LocalTensor local{.row = row,
                    .box = *box,
                    .outer_dim = std::max(parameter.split_dim, 0),
                    .order = memory_order(box->rank, std::max(parameter.split_dim, 0)),
                    .inner = {}};
  local.inner.resize(local.order.size());
  std::int64_t below = 1;
  for (std::size_t at = local.order.size(); at-- > 0;) {
    local.inner[at] = below;
    below *= local.box.dims[index(local.order[at])].size();
  }
  return local;
}

/// Cuts elements [lo, hi) of the tensor (memory order) into boxes; dims before `at` of `box` are
/// single indices already. `largest` elements at most, or one index of dim `at`.
void cut(const LocalTensor& local, std::size_t at, std::int64_t lo, std::int64_t hi, const Box& box,
         std::int64_t largest, std::vector<Box>& boxes) {
  if (lo >= hi) return;
  if (at == local.order.size()) {
    boxes.push_back(box);
    return;
  }
  const std::int64_t inner = local.inner[at];
  const int dim = local.order[at];
  const std::int64_t origin = local.box.dims[index(dim)].lo;
  const auto within = [&](std::int64_t first, std::int64_t last) {
    return restricted(box, dim, {origin + first, origin + last});
  };
  const std::int64_t first_whole = (lo + inner - 1) / inner, end_whole = hi / inner;
  if (first_whole > end_whole) {  // inside one index
    return cut(local, at + 1, lo % inner, lo % inner + hi - lo, within(end_whole, end_whole + 1),
               largest, boxes);
  }
  if (lo % inner != 0) {
    cut(local, at + 1, lo % inner, inner, within(first_whole - 1, first_whole), largest, boxes);
  }
  const std::int64_t step = std::max<std::int64_t>(1, largest / std::max<std::int64_t>(1, inner));
  for (std::int64_t first = first_whole; first < end_whole; first += step) {
    boxes.push_back(within(first, std::min(first + step, end_whole)));
  }
  if (hi % inner != 0) {
    cut(local, at + 1, 0, hi % inner, within(end_whole, end_whole + 1), largest, boxes);
  }
}

/// Elements [lo, hi) of the segment's local tensor as pieces.
void append(const LocalTensor& local, const ShardSegment& segment, Interval range,
            std::int64_t largest, std::vector<StatePiece>& pieces) {
  const Interval part = intersect(range, {segment.first, segment.first + segment.count});
  std::vector<Box> boxes;
  cut(local, 0, part.lo, part.hi, local.box, largest, boxes);
  std::int64_t shard = segment.shard + part.lo - segment.first;
  for (const Box& box : boxes) {
    pieces.push_back({local.row, box, local.outer_dim, shard});
    shard += volume(box);
  }
}

/// Ranks that hold the same shards, and which of them this is.
struct Replica {
  int count = 1, index = 0;
};

Replica replica_of(const Weights& weights, const Parameter& parameter, ShardKind kind) {
  const ParallelLayout& layout = weights.layout;
  const RankCoord& coord = weights.coord;
  if (parameter.experts > 0 && experts_apart(weights.model(), layout)) {
    return {layout.edp(), expert_coord(layout, coord).edp};
  }
  switch (kind) {
    case ShardKind::none:
      return {layout.dp * layout.cp,
              (coord.dp_replicate * layout.dp_shard + coord.dp_shard) * layout.cp + coord.cp};
    case ShardKind::stored:
      return {layout.dp / layout.dp_shard * layout.cp, coord.dp_replicate * layout.cp + coord.cp};
    case ShardKind::flat:
      return {};  // cut over all of them
  }
  return {};
}

}  // namespace

std::vector<std::int64_t> StatePiece::memory_shape() const {
  std::vector<std::int64_t> shape;
  for (const int dim : memory_order(box.rank, outer_dim)) {
    shape.push_back(box.dims[index(dim)].size());
  }
  return shape;
}

std::vector<StatePiece> held_pieces(const Weights& weights, const ShardMap& map) {
  std::vector<StatePiece> pieces;
  for (const ShardBucket& bucket : map.buckets) {
    for (const ShardSegment& segment : map.own(bucket)) {
      const LocalTensor local = local_tensor(weights, segment.row);
      append(local, segment, {segment.first, segment.first + segment.count}, volume(local.box),
             pieces);
    }
  }
  return pieces;
}

std::vector<StatePiece> written_pieces(const Weights& weights, const ShardMap& map,
                                       std::int64_t largest) {
  std::vector<StatePiece> pieces;
  for (const ShardBucket& bucket : map.buckets) {
    for (const ShardSegment& segment : map.own(bucket)) {
      const LocalTensor local = local_tensor(weights, segment.row);
      const std::int64_t inner = local.inner.empty() ? 1 : local.inner.front();
      const Parameter& parameter = weights.table.rows[index(segment.row)];
      const Replica replica = replica_of(weights, parameter, map.kind);
      const Interval counted = counted_range(parameter, weights.layout, weights.coord);
      const Interval mine = intersect(Interval{counted.lo * inner, counted.hi * inner},
                                      {segment.first, segment.first + segment.count});
      if (mine.empty()) continue;
      if (replica.count == 1) {
        append(local, segment, mine, largest, pieces);
        continue;
      }
      // Whole indices of the outer dim: kinds with replicas cut nowhere else.
      const Interval share = split(mine.size() / inner, replica.count, replica.index);
      append(local, segment, {mine.lo + share.lo * inner, mine.lo + share.hi * inner}, largest,
             pieces);
    }
  }
  return pieces;
}

}  // namespace tessera
