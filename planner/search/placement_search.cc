#include "planner/search/placement_search.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "cost_models/spec/node_groups.h"
#include "planner/search/chunk_seconds.h"
#include "planner/search/pairs.h"
#include "planner/search/pareto.h"
#include "planner/search/place_pools.h"

namespace tessera {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kWhole = std::numeric_limits<std::size_t>::max();
// Points, actors and layouts of the first pass.
constexpr std::size_t kBeam = 6, kQuick = 32, kFewLayouts = 32;

struct BlockFront {
  std::vector<FrontPoint> points;  // option[i] belongs to the block's i-th role
  ChunkSeconds least{};
};

// GPUs of a plan, and what they count by their prices.
struct Bill {
  int gpus = 0;
  double billed = 0;
};

class PlacementSearch {
 public:
  PlacementSearch(const SearchProblem& problem, const Placement& placement, int policy_lag,
                  ViewFronts& fronts, std::int64_t& pruned)
      : problem_(problem),
        placement_(placement),
        policy_lag_(policy_lag),
        apart_(rollout_apart(placement)),
        gpus_(problem.gpus > 0 ? problem.gpus : static_cast<int>(problem.cluster.gpus())),
        fronts_(fronts),
        pruned_(pruned),
        schedule_(schedule_of(problem.schedule, placement, policy_lag)),
        iteration_(schedule_, blocks_of(schedule_, placement)),
        used_(static_cast<int>(iteration_.chunks().size())),
        sizes_(block_sizes(problem.cluster)),
        beaten_s_(problem.better_than_s),
        beaten_{problem.better_than_gpus, problem.better_than_billed > 0
                                              ? problem.better_than_billed
                                              : problem.better_than_gpus},
        ranges_(pool_views(problem.cluster)),
        least_weight_(least_weights(problem.cluster)),
        bounds_(placement.size()),
        fronts_of_(placement.size()) {
    for (std::size_t block = 0; block < placement.size(); ++block) {
      for (std::size_t view = 0; view < least_weight_.size(); ++view) {
        bound_block(block, static_cast<int>(view));
      }
    }
  }

  Solution run() {
    for (const std::size_t width : {kBeam, kWhole}) {
      width_ = width;
      for (const std::vector<int>& views : assignments()) {
        views_ = views;
        for (auto& fronts : fronts_of_) fronts.assign(sizes_.size(), std::nullopt);
        std::vector<int> chosen;
        branch_sizes(chosen, gpus_, 0, ChunkSeconds{});
      }
    }
    // The step from its phases, free of the rounding of the incremental sums.
    if (best_.found()) best_.step_s = iteration_.step_seconds(best_.seconds);
    return best_;
  }

 private:
  // Least seconds of a block on a view, per chunk.
  struct Bounds {
    std::vector<ChunkSeconds> least_at, least_up_to;  // by size: there, and over all up to it
    std::vector<int> viable;                          // sizes
  };

  const Bounds& bounds(std::size_t block) const {
    return bounds_[block][static_cast<std::size_t>(views_[block])];
  }

  // Roles of a block that have a front (a rollout beside the actor is part of the actor's).
  std::vector<Role> owners(std::size_t block) const {
    std::vector<Role> roles;
    for (const Role role : placement_[block]) {
      if (apart_ || role != Role::rollout) roles.push_back(role);
    }
    return roles;
  }

  Fronts& fronts(std::size_t block) const { return fronts_.of(views_[block]); }
  const SearchProblem& seen(std::size_t block) const { return fronts_.problem(views_[block]); }

  // What a block's GPUs count at least.
  double least_billed(std::size_t block, int size) const {
    return size * least_weight_[static_cast<std::size_t>(views_[block])];
  }

  // A plan on that many GPUs or more must take less than this to be better than the best.
  double step_limit(Bill bill) const {
    if (beaten_s_ == kInfinity) return kInfinity;
    switch (problem_.objective) {
      case Objective::step_time:
        return beaten_s_;
      case Objective::tokens_per_gpu:
        return beaten_s_ * beaten_.gpus / bill.gpus;
      case Objective::cost:
        return beaten_s_ * beaten_.billed / bill.billed;
      case Objective::fewest_gpus:
        break;
    }
    if (bill.gpus > beaten_.gpus) return -kInfinity;
    return bill.gpus == beaten_.gpus ? beaten_s_ : kInfinity;
  }

  // What sizes are tried by: the objective at a bound of the step.
  double order_of(double step, Bill bill) const {
    if (problem_.objective == Objective::step_time) return step;
    if (problem_.objective == Objective::fewest_gpus) return bill.gpus;
    return step * (problem_.objective == Objective::cost ? bill.billed : bill.gpus);
  }

  // Least GPUs with one block of `size`.
  Bill with_others(std::size_t block, int size) const {
    Bill bill{size, least_billed(block, size)};
    for (std::size_t other = 0; other < placement_.size(); ++other) {
      if (other == block) continue;
      bill.gpus += 1;
      bill.billed += least_billed(other, 1);
    }
    return bill;
  }

  // The views that the blocks may have together, those with the best bounds first.
  std::vector<std::vector<int>> assignments() {
    if (least_weight_.size() == 1) return {std::vector<int>(placement_.size(), 0)};
    std::vector<std::pair<double, std::vector<int>>> bounded;
    std::vector<int> views;
    collect(views, bounded);
    std::stable_sort(bounded.begin(), bounded.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::vector<int>> ordered;
    for (auto& [order, chosen] : bounded) ordered.push_back(std::move(chosen));
    return ordered;
  }

  void collect(std::vector<int>& views, std::vector<std::pair<double, std::vector<int>>>& bounded) {
    if (views.size() < placement_.size()) {
      const auto& of_views = bounds_[views.size()];
      for (std::size_t view = 0; view < of_views.size(); ++view) {
        if (of_views[view].viable.empty()) continue;
        views.push_back(static_cast<int>(view));
        collect(views, bounded);
        views.pop_back();
      }
      return;
    }
    if (problem_.allows_views && !problem_.allows_views(placement_, views)) return;
    views_ = views;
    ChunkSeconds seconds{};
    Bill bill;
    const auto others = static_cast<int>(placement_.size()) - 1;
    for (std::size_t block = 0; block < views.size(); ++block) {
      const ChunkSeconds* least = least_within(block, gpus_ - others);
      if (least == nullptr) return;
      add(seconds, *least);
      const int size = sizes_[static_cast<std::size_t>(bounds(block).viable.front())];
      bill.gpus += size;
      bill.billed += least_billed(block, size);
    }
    bounded.emplace_back(order_of(iteration_.step_seconds(seconds.data()), bill), views);
  }

  ChunkSeconds of_block(std::size_t block, const PhaseSeconds& seconds) const {
    return by_chunk(iteration_, block, seconds);
  }

  // Least seconds per chunk at each size and over all sizes up to it, ignoring memory that roles
  // share; they include the calls without a model.
  void bound_block(std::size_t block, int view) {
    ChunkSeconds least;
    least.fill(kInfinity);
    Bounds& all = bounds_[block].emplace_back();
    for (std::size_t s = 0; s < sizes_.size() && sizes_[s] <= gpus_; ++s) {
      ChunkSeconds here = of_block(block, fronts_.problem(view).fixed_seconds);
      if (fits_view(problem_.cluster, sizes_[s], view)) {
        for (const Role role : owners(block)) {
          add(here, of_block(block, fronts_.of(view).bound(role, sizes_[s], apart_)));
        }
      } else {
        here.fill(kInfinity);
      }
      for (std::size_t c = 0; c < here.size(); ++c) least[c] = std::min(least[c], here[c]);
      all.least_at.push_back(here);
      all.least_up_to.push_back(least);
      if (*std::max_element(here.begin(), here.end()) < kInfinity) {
        all.viable.push_back(static_cast<int>(s));
      }
    }
  }

  // Least seconds of a block on at most `most` GPUs; nullptr where it cannot be so small.
  const ChunkSeconds* least_within(std::size_t block, int most) const {
    const auto end = std::upper_bound(sizes_.begin(), sizes_.end(), most);
    const auto count = std::min<std::size_t>(static_cast<std::size_t>(end - sizes_.begin()),
                                             bounds(block).least_up_to.size());
    return count == 0 ? nullptr : &bounds(block).least_up_to[count - 1];
  }

  // Least seconds of all blocks but one of `size`; false where they have no room.
  bool rest_of(std::size_t block, int size, ChunkSeconds& rest) const {
    const int others = static_cast<int>(placement_.size()) - 1;
    for (std::size_t other = 0; other < placement_.size(); ++other) {
      if (other == block) continue;
      const ChunkSeconds* least = least_within(other, gpus_ - size - (others - 1));
      if (least == nullptr) return false;
      add(rest, *least);
    }
    return true;
  }

  // The merged front of a block's roles on a size, without points that cannot beat the best plan.
  const BlockFront& block_front(std::size_t block, std::size_t size) {
    auto& cached = fronts_of_[block][size];
    if (cached) return *cached;
    // What a narrow search finds in the layouts that look best; in more where nothing fits.
    std::size_t most = width_ == kWhole ? kWhole : kFewLayouts;
    for (bool all = false; !all; most *= 2) {
      all = most == kWhole;
      cached = merged_front(block, sizes_[size], most, all);
      if (!cached->points.empty()) break;
    }
    return *cached;
  }

  // Options of a role (first, with its rollout's where they share a block) that may be part of a
  // plan below the limit.
  struct Chosen {
    Selection own, rollout;
    ChunkSeconds least{};  // of both
    std::int64_t least_resident = 0;
  };

  // `open`: least seconds of everything else. `all` is cleared where `most` left layouts out.
  Chosen choose(std::size_t block, Role role, int gpus, const ChunkSeconds& open, double limit,
                std::size_t most, bool& all) {
    const auto select = [&](Role which, const ChunkSeconds& beside) {
      const auto step = [&](const PhaseSeconds& least) {
        ChunkSeconds seconds = beside;
        add(seconds, of_block(block, least));
        return iteration_.step_seconds(seconds.data());
      };
      Selection selection = fronts(block).select(which, gpus, step, limit, most);
      all = all && selection.whole;
      return selection;
    };
    Chosen chosen;
    const bool pairs = fronts(block).paired(role, apart_);
    ChunkSeconds beside = open;
    if (pairs) add(beside, of_block(block, fronts(block).bound(Role::rollout, gpus)));
    chosen.own = select(role, beside);
    chosen.least = of_block(block, chosen.own.least);
    chosen.least_resident = chosen.own.least_resident;
    if (pairs) {
      beside = open;
      add(beside, of_block(block, fronts(block).bound(role, gpus)));
      chosen.rollout = select(Role::rollout, beside);
      add(chosen.least, of_block(block, chosen.rollout.least));
      chosen.least_resident += chosen.rollout.least_resident;
    }
    return chosen;
  }

  // Of at most `most` layouts of each role. `all` says whether these were all there are.
  BlockFront merged_front(std::size_t block, int gpus, std::size_t most, bool& all) {
    all = true;
    BlockFront front;
    front.least.fill(kInfinity);
    // Least seconds of what is still to be added, and least bytes.
    ChunkSeconds open{};
    if (!rest_of(block, gpus, open)) return front;
    const std::vector<Role> roles = owners(block);
    const double limit = step_limit(with_others(block, gpus));
    ChunkSeconds bounds = open;
    add(bounds, of_block(block, seen(block).fixed_seconds));
    for (const Role role : roles) {
      add(bounds, of_block(block, fronts(block).bound(role, gpus, apart_)));
    }
    std::int64_t bytes = seen(block).memory_limit;
    std::vector<Chosen> chosen;
    for (const Role role : roles) {
      const ChunkSeconds own = of_block(block, fronts(block).bound(role, gpus, apart_));
      ChunkSeconds others = bounds;
      for (std::size_t c = 0; c < others.size(); ++c) others[c] -= own[c];
      chosen.push_back(choose(block, role, gpus, others, limit, most, all));
      if (chosen.back().own.options.empty()) return front;
      add(open, chosen.back().least);
      bytes -= chosen.back().least_resident;
    }
    front.points.emplace_back();
    front.points.front().seconds = of_block(block, seen(block).fixed_seconds);
    for (std::size_t r = 0; r < roles.size(); ++r) {
      for (std::size_t c = 0; c < open.size(); ++c) open[c] -= chosen[r].least[c];
      bytes += chosen[r].least_resident;
      const std::vector<FrontPoint> additions =
          fronts(block).paired(roles[r], apart_)
              ? paired(block, gpus, std::move(chosen[r]), open, limit, bytes)
              : projected(block, roles[r], gpus, chosen[r].own);
      front.points = sums_of(front.points, additions, r, open, limit, bytes);
      if (r + 1 == roles.size()) {  // nothing else must fit beside them
        for (FrontPoint& point : front.points) point.resident = point.transient = 0;
      }
      keep_front(front.points, used_);
      if (front.points.size() > width_) front.points.resize(width_);
    }
    for (const FrontPoint& point : front.points) {
      for (std::size_t c = 0; c < front.least.size(); ++c) {
        front.least[c] = std::min(front.least[c], point.seconds[c]);
      }
    }
    return front;
  }

  // `open`: of everything but the block's calls without a model and the pair itself.
  std::vector<FrontPoint> paired(std::size_t block, int gpus, Chosen chosen,
                                 const ChunkSeconds& open, double limit, std::int64_t bytes) {
    PairQuery query{.block = block, .gpus = gpus, .rest = open, .limit = limit, .bytes = bytes};
    query.actors = std::move(chosen.own);
    query.rollouts = std::move(chosen.rollout);
    query.alone = owners(block).size() == 1;
    add(query.rest, of_block(block, seen(block).fixed_seconds));
    if (width_ != kWhole) {
      query.most_actors = kQuick;
      query.most_pairs_each = kBeam;
    }
    return pairs_of(iteration_, fronts(block), query, pruned_);
  }

  // An option as it is in this assignment: weights that come from other GPU types arrive at the
  // rate of the slower end.
  Option option_of(std::size_t block, Role role, int gpus, int index) {
    Option option = fronts(block).option(role, gpus, index, apart_);
    if (apart_ && role == Role::rollout && views_.front() != views_[block]) {
      Candidate source;
      source.view = views_.front();
      option.seconds[static_cast<std::size_t>(Phase::reshard)] =
          problem_.evaluator.reshard_seconds(source, option.candidate, false);
    }
    return option;
  }

  std::vector<FrontPoint> projected(std::size_t block, Role role, int gpus,
                                    const Selection& selection) {
    std::vector<FrontPoint> points;
    for (const int index : selection.options) {
      const Option option = option_of(block, role, gpus, index);
      FrontPoint& point = points.emplace_back();
      point.seconds = of_block(block, option.seconds);
      point.resident = option.resident;
      point.transient = option.transient;
      point.option[0] = index;
    }
    keep_front(points, used_);
    return points;
  }

  // Every point with every addition that fits and may still beat the best plan.
  std::vector<FrontPoint> sums_of(const std::vector<FrontPoint>& points,
                                  const std::vector<FrontPoint>& additions, std::size_t position,
                                  const ChunkSeconds& open, double limit, std::int64_t bytes) {
    std::vector<FrontPoint> sums;
    for (const FrontPoint& point : points) {
      ChunkSeconds base = point.seconds;
      add(base, open);
      for (const FrontPoint& addition : additions) {
        const std::int64_t resident = point.resident + addition.resident;
        const std::int64_t transient = std::max(point.transient, addition.transient);
        if (resident + transient > bytes) continue;
        ChunkSeconds bound = base;
        add(bound, addition.seconds);
        if (iteration_.step_seconds(bound.data()) >= limit) {
          ++pruned_;
          if (used_ == 1) break;  // additions ascend
          continue;
        }
        FrontPoint& sum = sums.emplace_back(point);
        add(sum.seconds, addition.seconds);
        sum.resident = resident;
        sum.transient = transient;
        sum.option[position] = addition.option[0];
        if (position == 0) sum.rollout = addition.rollout;
      }
    }
    return sums;
  }

  // GPUs that the blocks chosen so far leave to this one in the groups of its view.
  int room(std::size_t block, const std::vector<int>& chosen, int left) const {
    if (ranges_.size() == 1) return left;
    const GroupRange range = ranges_[static_cast<std::size_t>(views_[block])];
    auto room =
        static_cast<int>(nodes_of(problem_.cluster, range) * problem_.cluster.gpus_per_node);
    for (std::size_t other = 0; other < chosen.size(); ++other) {
      const GroupRange its = ranges_[static_cast<std::size_t>(views_[other])];
      if (its.first < range.first || its.last > range.last) continue;
      room -= sizes_[static_cast<std::size_t>(chosen[other])];
    }
    return std::min(left, room);
  }

  // `fixed`: least seconds of the fronts of the chosen blocks, which count `billed`.
  void branch_sizes(std::vector<int>& chosen, int left, double billed, const ChunkSeconds& fixed) {
    const std::size_t block = chosen.size();
    if (block == placement_.size()) return branch_points(chosen);
    const int reserved = static_cast<int>(placement_.size() - block) - 1;
    double reserved_billed = 0;
    for (std::size_t later = block + 1; later < placement_.size(); ++later) {
      reserved_billed += least_billed(later, 1);
    }
    const auto used_with = [&](int size) {
      return Bill{gpus_ - left + size + reserved,
                  billed + least_billed(block, size) + reserved_billed};
    };
    struct Branch {
      double order = 0, step = 0;
      int size = 0;
    };
    std::vector<Branch> branches;
    const int most = room(block, chosen, left - reserved);
    for (std::size_t v = bounds(block).viable.size(); v-- > 0;) {
      const int s = bounds(block).viable[v], size = sizes_[static_cast<std::size_t>(s)];
      if (size > most) continue;
      ChunkSeconds seconds = fixed;
      add(seconds, bounds(block).least_at[static_cast<std::size_t>(s)]);
      if (!add_later(block, left - size, seconds)) continue;
      const double step = iteration_.step_seconds(seconds.data());
      const Bill used = used_with(size);
      if (step >= step_limit(used)) {
        ++pruned_;
        continue;
      }
      branches.push_back({order_of(step, used), step, s});
    }
    std::stable_sort(branches.begin(), branches.end(),
                     [](const Branch& a, const Branch& b) { return a.order < b.order; });
    for (const Branch& branch : branches) {
      const int size = sizes_[static_cast<std::size_t>(branch.size)];
      const Bill used = used_with(size);
      if (branch.step >= step_limit(used)) {
        ++pruned_;
        continue;
      }
      const BlockFront& front = block_front(block, static_cast<std::size_t>(branch.size));
      if (front.points.empty()) {
        ++pruned_;
        continue;
      }
      ChunkSeconds next = fixed, bound;
      add(next, front.least);
      bound = next;
      add_later(block, left - size, bound);
      if (iteration_.step_seconds(bound.data()) >= step_limit(used)) {
        ++pruned_;
        continue;
      }
      chosen.push_back(branch.size);
      branch_sizes(chosen, left - size, billed + least_billed(block, size), next);
      chosen.pop_back();
    }
  }

  // Least seconds of the blocks after `block` on `left` GPUs; false where they have no room.
  bool add_later(std::size_t block, int left, ChunkSeconds& seconds) const {
    const int open = static_cast<int>(placement_.size() - block) - 1;
    for (std::size_t later = block + 1; later < placement_.size(); ++later) {
      const ChunkSeconds* least = least_within(later, left - (open - 1));
      if (least == nullptr) return false;
      add(seconds, *least);
    }
    return true;
  }

  void branch_points(const std::vector<int>& chosen) {
    std::vector<int> sizes;
    for (const int s : chosen) sizes.push_back(sizes_[static_cast<std::size_t>(s)]);
    const PlacedPools placed = place_pools(sizes, views_, problem_.cluster);
    if (!placed.found()) return;
    std::vector<const FrontPoint*> points;
    ChunkSeconds seconds{};
    for (std::size_t block = 0; block < chosen.size(); ++block) {
      add(seconds, block_front(block, static_cast<std::size_t>(chosen[block])).least);
    }
    combine(chosen, sizes, placed, points, seconds);
  }

  // `seconds`: chosen points of the first blocks, least of the others.
  void combine(const std::vector<int>& chosen, const std::vector<int>& sizes,
               const PlacedPools& placed, std::vector<const FrontPoint*>& points,
               const ChunkSeconds& seconds) {
    const std::size_t block = points.size();
    const Bill gpus{std::accumulate(sizes.begin(), sizes.end(), 0), placed.billed_gpus};
    if (block == chosen.size()) {
      const double step = iteration_.step_seconds(seconds.data());
      if (step < step_limit(gpus)) record(sizes, placed, points, step);
      return;
    }
    const BlockFront& front = block_front(block, static_cast<std::size_t>(chosen[block]));
    for (const FrontPoint& point : front.points) {
      ChunkSeconds next = seconds;
      for (std::size_t c = 0; c < next.size(); ++c) next[c] += point.seconds[c] - front.least[c];
      if (iteration_.step_seconds(next.data()) >= step_limit(gpus)) {
        ++pruned_;
        continue;
      }
      points.push_back(&point);
      combine(chosen, sizes, placed, points, next);
      points.pop_back();
    }
  }

  void record(const std::vector<int>& sizes, const PlacedPools& placed,
              const std::vector<const FrontPoint*>& points, double step) {
    best_.placement = placement_;
    best_.sizes = sizes;
    best_.first_rank = placed.first_rank;
    best_.views = views_;
    best_.billed_gpus = placed.billed_gpus;
    best_.step_s = beaten_s_ = step;
    beaten_ = {best_.gpus(), best_.billed_gpus};
    best_.policy_lag = policy_lag_;
    best_.choice.clear();
    best_.seconds = seen(0).fixed_seconds;
    for (std::size_t block = 0; block < points.size(); ++block) {
      const std::vector<Role> roles = owners(block);
      for (std::size_t r = 0; r < roles.size(); ++r) {
        const Option option = option_of(block, roles[r], sizes[block], points[block]->option[r]);
        record_option(option);
        if (fronts(block).paired(roles[r], apart_)) {
          record_rollout(block, sizes[block], option, points[block]->rollout);
        }
      }
    }
  }

  void record_option(const Option& option) {
    best_.choice[option.candidate.role] = option.candidate;
    for (std::size_t p = 0; p < best_.seconds.size(); ++p) best_.seconds[p] += option.seconds[p];
  }

  void record_rollout(std::size_t block, int gpus, const Option& actor, int index) {
    const Option rollout = option_of(block, Role::rollout, gpus, index);
    record_option(rollout);
    best_.seconds[static_cast<std::size_t>(Phase::reshard)] +=
        fronts(block).reshard_seconds(gpus, actor, rollout);
  }

  const SearchProblem& problem_;
  const Placement& placement_;
  int policy_lag_;
  bool apart_;
  int gpus_;
  ViewFronts& fronts_;
  std::int64_t& pruned_;
  std::vector<ScheduledCall> schedule_;
  Iteration iteration_;
  int used_;
  std::vector<int> sizes_;
  double beaten_s_;  // step and GPUs of the best plan so far, found here or before
  Bill beaten_;
  std::vector<GroupRange> ranges_;                                 // by view
  std::vector<double> least_weight_;                               // likewise
  std::vector<std::vector<Bounds>> bounds_;                        // by block, view
  std::vector<int> views_;                                         // of the blocks, now tried
  std::vector<std::vector<std::optional<BlockFront>>> fronts_of_;  // by block, size; of views_
  std::size_t width_ = kWhole;                                     // points that fronts keep
  Solution best_;
};

}  // namespace

Solution search_placement(const SearchProblem& problem, const Placement& placement, int policy_lag,
                          ViewFronts& fronts, std::int64_t& pruned) {
  return PlacementSearch(problem, placement, policy_lag, fronts, pruned).run();
}

}  // namespace tessera
