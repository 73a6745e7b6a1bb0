// Where the optimizer's elements lie: runs and chunks of its shard space, found once.
#include <algorithm>

#include "cost_models/spec/expert_parallel.h"
#include "executor/train/optimizer.h"
#include "executor/weights/placed_weights.h"

namespace tessera {
namespace {

using torch::Tensor;

constexpr std::int64_t kShortChunk = std::int64_t{1} << 14;  // elements, beside a reshard

bool adjoin(const fused::Chunk& a, const fused::Chunk& b) {
  return a.decay == b.decay && a.offset + a.count == b.offset;
}

/// Appends, or lengthens the last one where they adjoin.
void append(std::vector<fused::Chunk>& chunks, const fused::Chunk& chunk) {
  if (chunk.count <= 0) return;
  if (!chunks.empty() && adjoin(chunks.back(), chunk))
    chunks.back().count += chunk.count;
  else
    chunks.push_back(chunk);
}

/// Appends `next`, joined to the last chunk where the weights adjoin, too.
void append(std::vector<fused::PlacedChunk>& chunks, const fused::PlacedChunk& next) {
  if (next.chunk.count <= 0) return;
  if (!chunks.empty() && chunks.back().shift == next.shift &&
      adjoin(chunks.back().chunk, next.chunk))
    chunks.back().chunk.count += next.chunk.count;
  else
    chunks.push_back(next);
}

/// The rows of a tensor's outermost local dim that this rank counts in the norm: over the ranks of
/// a replica and those that share its shards, or over the role where experts lie apart.
Interval counted_rows(const Parameter& parameter, const Weights& weights, ShardKind kind) {
  const ParallelLayout& layout = weights.layout;
  const RankCoord& coord = weights.coord;
  const Interval counted = counted_range(parameter, layout, coord);
  if (!experts_apart(weights.model(), layout)) return counted;
  bool first = true;
  if (parameter.experts > 0) {
    first = expert_coord(layout, coord).edp == 0;
  } else if (kind != ShardKind::flat) {
    const bool shard = kind == ShardKind::stored || coord.dp_shard == 0;
    first = coord.dp_replicate == 0 && coord.cp == 0 && shard;
  }
  return first ? counted : Interval{};
}

}  // namespace

std::int64_t Optimizer::place_in_values(const ShardSegment& segment) const {
  if (map_.kind != ShardKind::none) return segment.shard;
  return place_of(weights_, segment.row) + segment.first;
}

void Optimizer::find_runs() {
  std::vector<Run> runs;
  for (const ShardBucket& bucket : map_.buckets)
    for (const ShardSegment& s : map_.own(bucket))
      if (s.count > 0) runs.push_back({s.shard, place_in_values(s), s.count});
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.shard < b.shard; });
  for (const Run& run : runs) {
    const bool adjoins = !runs_.empty() && runs_.back().shard + runs_.back().count == run.shard &&
                         runs_.back().place + runs_.back().count == run.place;
    if (adjoins)
      runs_.back().count += run.count;
    else
      runs_.push_back(run);
  }
}

std::vector<fused::PlacedChunk> Optimizer::updated_chunks(const ShardBucket& bucket) const {
  std::vector<fused::PlacedChunk> chunks;
  for (const ShardSegment& s : map_.own(bucket)) {
    const bool decayed = weights_.table.rows[static_cast<std::size_t>(s.row)].decayed;
    append(chunks, fused::PlacedChunk({s.shard, s.count, decayed ? options_.weight_decay : 0.0},
                                      place_in_values(s) - s.shard));
  }
  return chunks;
}

/// Those of the host do not write weights: they are as long whatever lies where.
void Optimizer::find_chunks() {
  std::vector<fused::PlacedChunk> placed;
  for (const ShardBucket& bucket : map_.buckets) {
    for (const fused::PlacedChunk& each : updated_chunks(bucket)) {
      append(chunks_.updated, each.chunk);
      append(placed, each);
    }
    for (const ShardSegment& s : map_.own(bucket)) {
      const Parameter& parameter = weights_.table.rows[static_cast<std::size_t>(s.row)];
      const Tensor& tensor = weights_.tensors[static_cast<std::size_t>(s.row)];
      const std::int64_t inner = tensor.numel() / std::max<std::int64_t>(tensor.size(0), 1);
      const Interval rows = counted_rows(parameter, weights_, map_.kind);
      const Interval counted = intersect(Interval{rows.lo * inner, rows.hi * inner},
                                         Interval{s.first, s.first + s.count});
      append(chunks_.counted, {s.shard + counted.lo - s.first, counted.size(), 0.0});
    }
  }
  if (fused::usable(sharded_.shards())) {
    chunks_.counted_table = fused::chunk_table(chunks_.counted, weights_.device());
    chunks_.updated_table = fused::placed_chunk_table(placed, weights_.device());
  }
}

void Optimizer::make_bucket_tables() {
  if (!bucket_tables_.empty()) return;
  for (const ShardBucket& bucket : map_.buckets)
    bucket_tables_.push_back(
        fused::placed_chunk_table(updated_chunks(bucket), weights_.device(), kShortChunk));
}

}  // namespace tessera
