// How many elements of a model each rank of a rollout trains with, generates with, and both.
//
// Pure functions of two rank maps; exact over every tensor of the table.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/rank_map.h"

namespace tessera {

struct RankShare {
  std::int64_t held = 0;    // of the trainer: stored_box of every tensor; 0 on other ranks
  std::int64_t needed = 0;  // by the rollout: compute_box
  std::int64_t both = 0;    // held and needed
};

/// By position in `to.ranks`.
std::vector<RankShare> rank_shares(const ParameterTable& table, const RankMap& from,
                                   const RankMap& to);

}  // namespace tessera
