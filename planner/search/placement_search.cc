#include "planner/search/placement_search.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "cost_models/documents/stopped.h"
#include "planner/request/solution.h"
#include "planner/search/block_bounds.h"
#include "planner/search/block_fronts.h"
#include "planner/search/incumbent.h"
#include "planner/space/place_pools.h"

namespace tessera {

struct PlacementSearch::State {
  PlacementFrame frame;
  BlockBounds bounds;
  int policy_lag;
  /// The views that the blocks may have together, those with the least value first.
  struct Assignment {
    double bound = 0;
    std::vector<int> views;
  };
  std::vector<Assignment> assignments;

  State(const SearchProblem& problem, const Placement& placement, int lag, ViewFronts& fronts)
      : frame(problem, placement, lag, fronts), bounds(frame), policy_lag(lag) {
    std::vector<int> views;
    collect(views);
    std::stable_sort(assignments.begin(), assignments.end(),
                     [](const Assignment& a, const Assignment& b) { return a.bound < b.bound; });
  }

 private:
  void collect(std::vector<int>& views) {
    if (views.size() < frame.blocks()) {
      for (std::size_t view = 0; view < frame.views(); ++view) {
        if (bounds.viable(views.size(), static_cast<int>(view)).empty()) continue;
        views.push_back(static_cast<int>(view));
        collect(views);
        views.pop_back();
      }
      return;
    }
    const auto& allows = frame.problem.allows_views;
    if (allows && !allows(frame.placement, views)) return;
    std::vector<std::size_t> all(views.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    const auto shares = bounds.together(all, views, frame.gpus, {}, kForever);
    if (!shares) return;
    Bill bill;
    for (const std::size_t block : all) {
      const int smallest = bounds.viable(block, views[block]).front();
      const int size = frame.sizes[static_cast<std::size_t>(smallest)];
      bill.gpus += size;
      bill.billed += frame.least_billed(views[block], size);
    }
    assignments.push_back(
        {order_of(frame.problem.objective, frame.step_seconds(shares->least), bill), views});
  }
};

namespace {

constexpr std::size_t kBeam = 6;  // points of a front in the first pass

// The plan of points of the blocks' fronts.
class Recorder {
 public:
  Recorder(const PlacementFrame& frame, BlockFronts& fronts, const std::vector<int>& views)
      : frame_(frame), fronts_(fronts), views_(views) {}

  void record(const std::vector<const FrontPoint*>& points, Solution& plan) {
    const double share = points.front()->share;
    plan.choice.clear();
    plan.seconds = frame_.fronts.problem(views_.front()).fixed_seconds;
    for (std::size_t block = 0; block < points.size(); ++block) {
      const std::vector<Role> roles = frame_.owners(block);
      const int gpus = plan.sizes[block];
      for (std::size_t r = 0; r < roles.size(); ++r) {
        const Option option =
            fronts_.option_of(block, roles[r], gpus, points[block]->option[r], share);
        add_option(option, plan);
        Fronts& fronts = frame_.fronts.of(views_[block]);
        if (!fronts.paired(roles[r], frame_.apart)) continue;
        const Option rollout =
            fronts_.option_of(block, Role::rollout, gpus, points[block]->rollout, share);
        add_option(rollout, plan);
        plan.seconds[Phase::reshard] += fronts.reshard_seconds(gpus, option, rollout);
      }
    }
  }

 private:
  static void add_option(const Option& option, Solution& plan) {
    plan.choice[option.candidate.role] = option.candidate;
    plan.seconds += option.seconds;
  }

  const PlacementFrame& frame_;
  BlockFronts& fronts_;
  const std::vector<int>& views_;
};

class Branching {
 public:
  Branching(const PlacementFrame& frame, BlockBounds& bounds, int policy_lag, const Rivals& rivals,
            std::int64_t& pruned)
      : frame_(frame),
        bounds_(bounds),
        rivals_(rivals),
        pruned_(pruned),
        fronts_(frame, bounds, pruned) {
    best_.policy_lag = policy_lag;
    best_.placement = frame.placement;
  }

  void run(const std::vector<int>& views, std::size_t width) {
    views_ = views;
    fronts_.begin(views, width);
    std::vector<int> chosen;
    branch_sizes(chosen, frame_.gpus, 0, ChunkSeconds{});
  }

  Solution best() const {
    Solution best = best_;
    // The step from its phases, free of the rounding of the incremental sums.
    if (best.found()) best.step_s = frame_.iteration.step_seconds(best.seconds);
    return best;
  }

 private:
  struct Branch {
    double order = 0;  // of the objective
    Seconds step;
    Bill used;
    int size = 0;  // index
  };

  Seconds step_limit(Bill bill) const { return rivals_.step_limit(frame_.problem.objective, bill); }

  // GPUs that the blocks chosen so far leave to this one in the groups of its view.
  int room(std::size_t block, const std::vector<int>& chosen, int left) const {
    if (frame_.ranges.size() == 1) return left;
    const ClusterSpec& cluster = frame_.problem.cluster;
    const GroupRange range = frame_.ranges[static_cast<std::size_t>(views_[block])];
    auto room = static_cast<int>(nodes_of(cluster, range) * cluster.gpus_per_node);
    for (std::size_t other = 0; other < chosen.size(); ++other) {
      const GroupRange its = frame_.ranges[static_cast<std::size_t>(views_[other])];
      if (its.first < range.first || its.last > range.last) continue;
      room -= frame_.sizes[static_cast<std::size_t>(chosen[other])];
    }
    return std::min(left, room);
  }

  // There are many pools whose replicas share the sequences unevenly, with near ties among their
  // plans: they are looked at where they may be the best of all.
  Seconds best_limit(std::size_t block, int size, Bill bill) const {
    if (!frame_.rollout_alone(block)) return kForever;
    const PoolShare share = frame_.fronts.of(views_[block]).pool_share(size);
    return share == PoolShare::even ? kForever
                                    : rivals_.all.step_limit(frame_.problem.objective, bill);
  }

  std::vector<std::size_t> later_than(std::size_t block) const {
    std::vector<std::size_t> later;
    for (std::size_t b = block + 1; b < frame_.blocks(); ++b) later.push_back(b);
    return later;
  }

  // Sizes of the block whose bounds may beat its rivals, the best first.
  std::vector<Branch> branches_of(const std::vector<int>& chosen, int left, double billed,
                                  const ChunkSeconds& fixed) {
    const std::size_t block = chosen.size();
    const std::vector<std::size_t> later = later_than(block);
    const auto reserved = static_cast<int>(later.size());
    double reserved_billed = 0;
    for (const std::size_t other : later) reserved_billed += frame_.least_billed(views_[other], 1);
    std::vector<Branch> branches;
    const auto used_with = [&](int size) {
      return Bill{frame_.gpus - left + size + reserved,
                  billed + frame_.least_billed(views_[block], size) + reserved_billed};
    };
    std::vector<std::size_t> open{block};
    open.insert(open.end(), later.begin(), later.end());
    const auto shares = bounds_.together(open, views_, left, fixed, step_limit(used_with(1)));
    if (!shares) {
      ++pruned_;
      return branches;
    }
    const int most = room(block, chosen, shares->largest.front());
    const std::vector<int>& sizes = bounds_.viable(block, views_[block]);
    for (auto s = sizes.rbegin(); s != sizes.rend(); ++s) {
      const int size = frame_.sizes[static_cast<std::size_t>(*s)];
      if (size > most) continue;
      if (size < shares->smallest.front()) break;
      ChunkSeconds seconds = fixed;
      seconds += bounds_.least_at(block, views_[block], *s);
      const Bill used = used_with(size);
      const auto rest = bounds_.together(later, views_, left - size, seconds, step_limit(used));
      if (!rest) {
        ++pruned_;
        continue;
      }
      seconds += rest->least;
      const Seconds step = frame_.step_seconds(seconds);
      if (step >= best_limit(block, size, used)) {
        ++pruned_;
        continue;
      }
      branches.push_back({order_of(frame_.problem.objective, step, used), step, used, *s});
    }
    std::stable_sort(branches.begin(), branches.end(),
                     [](const Branch& a, const Branch& b) { return a.order < b.order; });
    return branches;
  }

  // Whether the branch may still beat its rivals beside what rollouts really take.
  bool may_win(std::size_t block, const Branch& branch, int left, const ChunkSeconds& fixed) {
    const Seconds limit = step_limit(branch.used);
    if (branch.step >= limit) return false;
    ChunkSeconds seconds = fixed;
    seconds += bounds_.least_at(block, views_[block], branch.size);
    const std::vector<std::size_t> later = later_than(block);
    const int size = frame_.sizes[static_cast<std::size_t>(branch.size)];
    const auto shares = bounds_.together(later, views_, left - size, seconds, limit);
    return shares &&
           bounds_.settled(later, views_, *shares, seconds, {frame_.problem, rivals_, branch.used});
  }

  // `fixed`: least seconds of the fronts of the chosen blocks, which count `billed`.
  void branch_sizes(std::vector<int>& chosen, int left, double billed, const ChunkSeconds& fixed) {
    const std::size_t block = chosen.size();
    if (block == frame_.blocks()) return branch_points(chosen);
    const std::vector<std::size_t> later = later_than(block);
    for (const Branch& branch : branches_of(chosen, left, billed, fixed)) {
      end_if_stopped(frame_.problem.stop);
      if (!may_win(block, branch, left, fixed)) {
        ++pruned_;
        continue;
      }
      const BlockFront& front =
          fronts_.at(block, static_cast<std::size_t>(branch.size), least_share(chosen), rivals_);
      if (front.points.empty()) {
        ++pruned_;
        continue;
      }
      const int size = frame_.sizes[static_cast<std::size_t>(branch.size)];
      ChunkSeconds next = fixed;
      next += front.least;
      if (!bounds_.together(later, views_, left - size, next, step_limit(branch.used))) {
        ++pruned_;
        continue;
      }
      chosen.push_back(branch.size);
      branch_sizes(chosen, left - size, billed + frame_.least_billed(views_[block], size), next);
      chosen.pop_back();
    }
  }

  // Of the busiest sender among the points of the actor's block, which is the first.
  double least_share(const std::vector<int>& chosen) {
    if (!frame_.apart || chosen.empty()) return 0;
    return front_of(chosen, 0, 0).least_share;
  }

  const BlockFront& front_of(const std::vector<int>& chosen, std::size_t block, double share) {
    return fronts_.at(block, static_cast<std::size_t>(chosen[block]), share, rivals_);
  }

  void branch_points(const std::vector<int>& chosen) {
    std::vector<int> sizes;
    for (const int s : chosen) sizes.push_back(frame_.sizes[static_cast<std::size_t>(s)]);
    const PlacedPools placed = place_pools(sizes, views_, frame_.problem.cluster);
    if (!placed.found()) return;
    std::vector<const FrontPoint*> points;
    ChunkSeconds seconds{};
    least_share_ = least_share(chosen);
    for (std::size_t block = 0; block < chosen.size(); ++block) {
      seconds += front_of(chosen, block, least_share_).least;
    }
    combine(chosen, sizes, placed, points, seconds);
  }

  // `seconds`: chosen points of the first blocks, least of the others.
  void combine(const std::vector<int>& chosen, const std::vector<int>& sizes,
               const PlacedPools& placed, std::vector<const FrontPoint*>& points,
               const ChunkSeconds& seconds) {
    const std::size_t block = points.size();
    const Bill bill{std::accumulate(sizes.begin(), sizes.end(), 0), placed.billed_gpus};
    if (block == chosen.size()) {
      const Seconds step = frame_.step_seconds(seconds);
      if (step < step_limit(bill)) record(sizes, placed, points, step);
      return;
    }
    const ChunkSeconds& least = front_of(chosen, block, least_share_).least;
    const double share = points.empty() ? 0 : points.front()->share;
    for (const FrontPoint& point : front_of(chosen, block, share).points) {
      ChunkSeconds next = seconds;
      ChunkSeconds more = point.seconds;
      more -= least;
      next += more;
      if (frame_.step_seconds(next) >= step_limit(bill)) {
        ++pruned_;
        continue;
      }
      points.push_back(&point);
      combine(chosen, sizes, placed, points, next);
      points.pop_back();
    }
  }

  void record(const std::vector<int>& sizes, const PlacedPools& placed,
              const std::vector<const FrontPoint*>& points, Seconds step) {
    best_.sizes = sizes;
    best_.first_rank = placed.first_rank;
    best_.views = views_;
    best_.billed_gpus = placed.billed_gpus;
    best_.step_s = step;
    rivals_.own = incumbent_of(best_);
    Recorder(frame_, fronts_, views_).record(points, best_);
  }

  const PlacementFrame& frame_;
  BlockBounds& bounds_;
  Rivals rivals_;
  std::int64_t& pruned_;
  BlockFronts fronts_;
  std::vector<int> views_;  // of the blocks, now tried
  double least_share_ = 0;  // of the actor's points, now combined
  Solution best_;
};

}  // namespace

PlacementSearch::PlacementSearch(const SearchProblem& problem, const Placement& placement,
                                 int policy_lag, ViewFronts& fronts)
    : state_(std::make_unique<State>(problem, placement, policy_lag, fronts)) {}
PlacementSearch::~PlacementSearch() = default;
PlacementSearch::PlacementSearch(PlacementSearch&&) noexcept = default;
PlacementSearch& PlacementSearch::operator=(PlacementSearch&&) noexcept = default;

double PlacementSearch::bound() const {
  return state_->assignments.empty() ? std::numeric_limits<double>::infinity()
                                     : state_->assignments.front().bound;
}

std::size_t PlacementSearch::blocks() const { return state_->frame.blocks(); }

Solution PlacementSearch::run(const Rivals& rivals, Pass pass, std::int64_t& pruned) {
  Branching branching(state_->frame, state_->bounds, state_->policy_lag, rivals, pruned);
  for (const State::Assignment& assignment : state_->assignments) {
    branching.run(assignment.views, pass == Pass::narrow ? kBeam : BlockFronts::kWhole);
  }
  return branching.best();
}

}  // namespace tessera
