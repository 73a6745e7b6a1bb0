// The merged fronts of the blocks of a placement: what the roles of a block can do together on a
// size, without points that cannot be part of a plan better than its rivals.
//
// They are those of one assignment of views at a time. A narrow pass keeps few points of the
// layouts that look best. They are kept by block and size, of a rollout alone also by what the
// busiest sender of its weights sends; a front that was built against older rivals stays sound. One
// thread.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/search/block_bounds.h"
#include "planner/search/exact.h"
#include "planner/search/incumbent.h"
#include "planner/search/pairs.h"
#include "planner/search/pareto.h"

namespace tessera {

struct BlockFront {
  std::vector<FrontPoint> points;  // option[i] belongs to the block's i-th owner
  ChunkSeconds least{};
  double least_share = 0;  // of its points (FrontPoint::share)
};

class BlockFronts {
 public:
  static constexpr std::size_t kWhole = std::numeric_limits<std::size_t>::max();

  /// Keeps the references. `pruned` counts what limits left out.
  BlockFronts(const PlacementFrame& frame, BlockBounds& bounds, std::int64_t& pruned);

  /// From now on for these views of the blocks, with at most `width` points each (kWhole: all).
  void begin(const std::vector<int>& views, std::size_t width);
  /// `size`: index into PlacementFrame::sizes. `share`: of the actor's busiest sender, where the
  /// block is a rollout alone (Evaluator::Senders); else without effect.
  const BlockFront& at(std::size_t block, std::size_t size, double share, const Rivals& rivals);
  /// An option as it is in this assignment: weights that come from elsewhere arrive as such a
  /// sender lets them, and from other GPU types at the rate of the slower end.
  Option option_of(std::size_t block, Role role, int gpus, int index, double share);

 private:
  // The limits that the points of one front are chosen by.
  struct Query {
    std::size_t block = 0;
    int gpus = 0;
    double share = 0;                         // of the busiest sender
    Seconds limit;                            // of the step
    std::size_t most = 0;                     // layouts of each role
    ChunkSeconds open{};                      // least seconds of what is still to be added
    Bytes bytes;                              // that it leaves
    Bytes transient;                          // that its roles need in any case, on top
    std::optional<GroupDegrees> groups = {};  // of the roles that have them in common
  };
  // Options of a role (with its rollout's where they share a block) that may be part of a plan
  // below the limit.
  struct Chosen {
    Selection own, rollout;
    bool paired = false;   // with a rollout
    RolloutWithin within;  // of the rollout's
    ChunkSeconds least{};  // of both
    Bytes least_resident, least_transient;
  };

  Fronts& fronts(std::size_t block) const { return frame_.fronts.of(views_[block]); }
  const SearchProblem& seen(std::size_t block) const {
    return frame_.fronts.problem(views_[block]);
  }
  Bill with_others(std::size_t block, int size) const;
  std::optional<ChunkSeconds> rest_of(std::size_t block, std::size_t size, const Rivals& rivals);
  BlockFront merged(Query query, bool& all);
  BlockFront merged_alike(Query query, bool& all);
  std::vector<GroupDegrees> common_groups(const Query& query, const std::vector<Role>& sharing);
  const PhaseSeconds& bound_of(const Query& query, Role role);
  PhaseSeconds bound_of_owner(const Query& query, Role role);
  bool choose_all(Query& query, bool& all, std::vector<Chosen>& chosen);
  Chosen choose(const Query& query, Role role, const ChunkSeconds& beside, bool& all);
  std::vector<FrontPoint> paired(const Query& query, Chosen chosen);
  std::vector<FrontPoint> projected(const Query& query, Role role, const Selection& selection);
  std::vector<FrontPoint> sums_of(const Query& query, const std::vector<FrontPoint>& points,
                                  const std::vector<FrontPoint>& additions, std::size_t position);

  const PlacementFrame& frame_;
  BlockBounds& bounds_;
  std::int64_t& pruned_;
  int used_;  // chunks
  std::vector<int> views_;
  std::size_t width_ = kWhole;
  std::vector<std::vector<std::map<double, BlockFront>>> fronts_of_;  // by block, size, share
};

}  // namespace tessera
