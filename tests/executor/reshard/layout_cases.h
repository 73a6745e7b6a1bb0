// Layouts that the reshard tests move weights between, and what every rank must hold afterwards.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"
#include "executor/arena/arena_layout.h"

namespace tessera {

/// A value that no other element of the model has, so that a misplaced element is seen.
inline std::int32_t fingerprint(int tensor, std::int64_t element) {
  return static_cast<std::int32_t>(std::int64_t{100003} * tensor + element + 1);
}

/// Content of an arena of this layout: fingerprints in memory order, zeros between slots.
inline std::vector<std::byte> expected_arena(const ParameterTable& table,
                                             const ArenaLayout& arena) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(arena.bytes));
  for (const ArenaSlot& slot : arena.slots) {
    const std::vector<std::int64_t>& shape = table.rows[slot.tensor].shape;
    auto* out = reinterpret_cast<std::int32_t*>(bytes.data() + slot.range.offset);
    const bool matrix = shape.size() == 2;
    const int inner_dim = slot.outer_dim == 0 ? 1 : 0;
    const Interval outer = slot.box.dims[slot.outer_dim];
    const Interval inner = matrix ? slot.box.dims[inner_dim] : Interval{0, 1};
    for (std::int64_t o = outer.lo; o < outer.hi; ++o) {
      for (std::int64_t i = inner.lo; i < inner.hi; ++i) {
        const std::int64_t row = slot.outer_dim == 0 ? o : i;
        const std::int64_t column = slot.outer_dim == 0 ? i : o;
        *out++ = fingerprint(slot.tensor, matrix ? row * shape[1] + column : o);
      }
    }
  }
  return bytes;
}

inline RankMap contiguous(const ParallelLayout& layout, int first_rank = 0) {
  std::vector<int> ranks(layout.ranks());
  std::iota(ranks.begin(), ranks.end(), first_rank);
  Problems problems;
  RankMap map = make_rank_map(RankOrder::contiguous, layout, ranks, nullptr, "test", problems);
  EXPECT_TRUE(problems.empty());
  return map;
}

inline RankMap strided(const ParallelLayout& layout, const RankMap& training) {
  Problems problems;
  RankMap map =
      make_rank_map(RankOrder::strided, layout, training.ranks, &training, "test", problems);
  EXPECT_TRUE(problems.empty());
  return map;
}

inline ParallelLayout layout_of(int tp, int pp, int dp, std::int64_t layers, int dp_shard = 1) {
  ParallelLayout layout;
  layout.tp = tp;
  layout.pp = pp;
  layout.dp = dp * dp_shard;
  layout.dp_shard = dp_shard;
  layout.zero = dp_shard > 1 ? 3 : 0;
  layout.stages = even_stages(layers, pp);
  return layout;
}

/// Experts cut as the rest is, into fewer parts or whole, dealt to data-parallel or to all ranks,
/// stored in shards.
inline std::vector<ParallelLayout> four_rank_expert_layouts(std::int64_t layers) {
  const auto dealt = [&](ParallelLayout layout, int ep, int etp, bool sequence = false) {
    layout.ep = ep;
    layout.etp = etp;
    layout.sequence_parallel = sequence;
    return layout;
  };
  return {
      dealt(layout_of(1, 1, 4, layers), 1, 1),       dealt(layout_of(4, 1, 1, layers), 1, 4),
      dealt(layout_of(1, 1, 4, layers), 2, 1),       dealt(layout_of(1, 1, 4, layers), 4, 1),
      dealt(layout_of(2, 1, 2, layers), 2, 2),       dealt(layout_of(2, 1, 2, layers), 1, 2),
      dealt(layout_of(2, 1, 2, layers), 4, 1, true), dealt(layout_of(1, 2, 2, layers), 2, 1),
      dealt(layout_of(1, 1, 1, layers, 4), 1, 1),    dealt(layout_of(1, 1, 1, layers, 4), 2, 1),
      dealt(layout_of(2, 1, 1, layers, 2), 1, 2),    dealt(layout_of(1, 1, 1, layers, 4), 4, 1),
      dealt(layout_of(4, 1, 1, layers), 1, 2, true), dealt(layout_of(4, 1, 1, layers), 2, 2, true),
      dealt(layout_of(4, 1, 1, layers), 2, 1, true), dealt(layout_of(4, 1, 1, layers), 1, 1, true)};
}

inline std::vector<ParallelLayout> four_rank_layouts(std::int64_t layers) {
  std::vector<ParallelLayout> layouts;
  for (const int tp : {1, 2, 4}) {
    for (const int pp : {1, 2, 4}) {
      if (4 % (tp * pp) == 0) layouts.push_back(layout_of(tp, pp, 4 / (tp * pp), layers));
    }
  }
  return layouts;
}

}  // namespace tessera
