// Which rank of a role sits where on its parallel axes.
//
// A RankMap pairs every global rank of a role with its coordinates. Groups are the sets of ranks
// that differ only along one axis, in axis order, as communicators need them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/parallel_layout.h"

namespace tessera {

struct RankCoord {
  int tp = 0, cp = 0, pp = 0, dp_replicate = 0, dp_shard = 0;
  bool operator==(const RankCoord&) const = default;
};

/// Where a rank stands among the ranks of its stage when they hold routed experts: numbered tp
/// fastest, then cp, dp_shard, dp_replicate, the index is etp + etp' (ep + ep' edp) with etp' and
/// ep' the degrees (Megatron-Core's order tp-ep-dp; vLLM's for etp' = 1).
struct ExpertCoord {
  int etp = 0, ep = 0, edp = 0;
  bool operator==(const ExpertCoord&) const = default;
};
ExpertCoord expert_coord(const ParallelLayout& layout, const RankCoord& coord);

struct RankMap {
  ParallelLayout layout;
  std::vector<int> ranks;         // global ranks, position = index within the role
  std::vector<RankCoord> coords;  // coords[i] belongs to ranks[i]

  /// Position of a global rank, or -1 when the role does not use it.
  int index_of(int rank) const;
  /// Global rank at a coordinate. Precondition: the coordinate lies inside the layout.
  int rank_at(const RankCoord& coord) const;
  bool operator==(const RankMap&) const = default;
};

/// Maps `ranks` by `order`. `strided` needs `training`, the map of the role whose weights are
/// received (HybridFlow 5.3: tp_g = i_t / A, pp_g = i_p / B, dp_g = (i_p % B) A + i_t % A with
/// A = t / t_g, B = p / p_g); where the degrees do not divide, or the ranks differ, a Problem is
/// appended. `list` takes `ranks` in contiguous order of the coordinates.
RankMap make_rank_map(RankOrder order, const ParallelLayout& layout, std::span<const int> ranks,
                      const RankMap* training, const std::string& place, Problems& problems);

/// model = tp x cp x pp; ep, etp and edp cut the ranks of a stage anew (ExpertCoord).
enum class Axis { tp, cp, pp, dp, dp_replicate, dp_shard, model, ep, etp, edp };

/// All groups along `axis`, each in axis order, the groups ordered by their first rank.
std::vector<std::vector<int>> groups_along(const RankMap& map, Axis axis);

/// The group along `axis` that contains `rank`. Precondition: the map has `rank`.
std::vector<int> group_of(const RankMap& map, Axis axis, int rank);

/// HybridFlow's micro data-parallel groups: ranks of `generation` that hold parts of one another's
/// generation shard while training (same generation tp and pp, same training replica).
std::vector<std::vector<int>> micro_dp_groups(const RankMap& training, const RankMap& generation);

}  // namespace tessera
