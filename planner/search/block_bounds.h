// Least seconds of the blocks of a placement, by size and view: no more than the least seconds of
// each role's layouts, without the memory that roles share.
//
// What several blocks take together is bounded by the sizes that they can have together: where a
// plan must stay below a limit, each block needs a least size even if all others take all that is
// left, and what these sizes leave is the most that another one can have. One thread.
#pragma once

#include <optional>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/search/incumbent.h"
#include "planner/search/placement_frame.h"

namespace tessera {

class BlockBounds {
 public:
  explicit BlockBounds(const PlacementFrame& frame);

  /// Indices into PlacementFrame::sizes that a block can have on a view, ascending.
  const std::vector<int>& viable(std::size_t block, int view) const {
    return of(block, view).viable;
  }
  /// By chunk, of a block of exactly that size.
  const ChunkSeconds& least_at(std::size_t block, int view, int size_index) const {
    return of(block, view).least_at[static_cast<std::size_t>(size_index)];
  }

  /// Seconds that blocks take together, and the sizes between which each of them can be.
  struct Shares {
    ChunkSeconds least{};
    std::vector<int> smallest, largest;
  };
  /// The shares of the `open` blocks on `left` GPUs together, beside `fixed` seconds of the others.
  /// nullopt where they have no room, or where no step stays below `limit`. `views` of all blocks.
  std::optional<Shares> together(const std::vector<std::size_t>& open,
                                 const std::vector<int>& views, int left, const ChunkSeconds& fixed,
                                 Seconds limit) const;

  /// What limits a step: of any plan, and of those with pools whose replicas share the sequences
  /// unevenly, which are looked at where by their bounds they may be the best of all.
  struct Limits {
    Seconds step, uneven = kForever;

    Limits(const SearchProblem& problem, const Rivals& rivals, Bill least)
        : step(rivals.step_limit(problem.objective, least)),
          uneven(rivals.all.step_limit(problem.objective, least)) {}
  };
  /// Least seconds of the `open` blocks between these `shares`, where rollouts that have a block of
  /// their own take what their options do: memory keeps these from the seconds of their bounds.
  /// nullopt where no step stays below the limits. Prices rollouts.
  std::optional<ChunkSeconds> settled(const std::vector<std::size_t>& open,
                                      const std::vector<int>& views, const Shares& shares,
                                      const ChunkSeconds& fixed, Limits limits);

 private:
  // The least seconds of a layout of a rollout that has a block of its own.
  struct OfLayout {
    int layout = 0;
    ChunkSeconds least{};
    enum class Of { hope, bound, options } of = Of::hope;  // what they are those of
  };
  // What is known of such a rollout on one size.
  struct OfRollout {
    std::vector<OfLayout> layouts;  // once asked for
    ChunkSeconds least{};           // over all of them
  };
  struct Bounds {
    std::vector<ChunkSeconds> least_at, least_up_to;  // by size: there, and over all up to it
    std::vector<int> viable;
    std::vector<OfRollout> rollouts;  // by size
  };
  const Bounds& of(std::size_t block, int view) const {
    return bounds_[block][static_cast<std::size_t>(view)];
  }
  bool has_rollout(std::size_t block) const;
  void bound(std::size_t block, int view);
  bool tighten_next(std::size_t block, int view, int size_index, const ChunkSeconds& others,
                    std::vector<Seconds>& steps);
  void tighten(std::size_t block, int view, int size, OfLayout& layout) const;
  std::optional<ChunkSeconds> least_settled(std::size_t block, int view, int most,
                                            const ChunkSeconds& others, Limits limits);
  Seconds step_beside(const ChunkSeconds& others, const ChunkSeconds& own) const;
  ChunkSeconds least_of_roles(std::size_t block, int view, int size) const;
  const ChunkSeconds* least_within(std::size_t block, int view, int most) const;
  int least_size(std::size_t block, int view, const ChunkSeconds& others, int most,
                 Seconds limit) const;

  const PlacementFrame& frame_;
  std::vector<std::vector<Bounds>> bounds_;  // by block, view
  ChunkSeconds beside_{};                    // at least, of the blocks that are bounded so far
};

}  // namespace tessera
