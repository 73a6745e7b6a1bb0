#include "executor/vllm/placement.h"

#include <map>

#include "planner/engines/vllm_weights.h"

namespace tessera {
namespace {

struct Held {
  Interval range;          // of the checkpoint's dim
  std::int64_t zeros = 0;  // behind it
};

/// QKVParallelLinear.__init__: where there are more workers than KV heads, each holds one of them.
Interval kv_heads(std::int64_t heads, std::int64_t tp, std::int64_t rank) {
  if (tp < heads) return split(heads, tp, rank);
  const std::int64_t head = rank / (tp / heads);
  return {head, head + 1};
}

/// VocabParallelEmbedding._get_indices, without added tokens.
Held vocab_rows(std::int64_t rows, std::int64_t tp, std::int64_t rank) {
  const std::int64_t each = vllm_padded_vocab(rows) / tp;
  const Interval held = intersect(Interval{rank * each, (rank + 1) * each}, Interval{0, rows});
  return {held.empty() ? Interval{} : held, each - held.size()};
}

Held held_of(const Parameter& row, std::int64_t tp, std::int64_t rank) {
  const auto units = [&](Interval range) {
    return Held{{range.lo * row.unit_size, range.hi * row.unit_size}};
  };
  switch (row.unit) {
    case SplitUnit::vocab_rows:
      return vocab_rows(row.units, tp, rank);
    case SplitUnit::kv_heads:
      return units(kv_heads(row.units, tp, rank));
    case SplitUnit::query_heads:
    case SplitUnit::ffn_columns:
      return units(split(row.units, tp, rank));
    case SplitUnit::none:
    case SplitUnit::expert_columns:  // no table of a dense decoder with attention has
    case SplitUnit::linear_heads:    // the last two
      break;
  }
  return {{0, row.shape.front()}};
}

}  // namespace

std::vector<VllmPart> vllm_parts(const ParameterTable& table, int tp, int tp_rank) {
  std::vector<VllmPart> parts;
  std::map<std::string, std::int64_t> filled;  // of a parameter, by its parts so far
  for (std::size_t index = 0; index < table.rows.size(); ++index) {
    const Parameter& row = table.rows[index];
    const int dim = row.split_dim < 0 ? 0 : row.split_dim;
    const Held held = held_of(row, tp, tp_rank);
    const std::string parameter = row.storage.empty() ? row.name : row.storage;
    std::int64_t& at = filled[parameter];
    parts.push_back({.row = static_cast<int>(index),
                     .parameter = parameter,
                     .box = restricted(whole(row.shape), dim, held.range),
                     .dim = dim,
                     .at = at,
                     .zeros = held.zeros});
    at += held.range.size();
  }
  return parts;
}

}  // namespace tessera
