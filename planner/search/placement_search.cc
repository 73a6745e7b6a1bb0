#include "planner/search/placement_search.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "planner/search/chunk_seconds.h"
#include "planner/search/pairs.h"
#include "planner/search/pareto.h"

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

class PlacementSearch {
 public:
  PlacementSearch(const SearchProblem& problem, const Placement& placement, int policy_lag,
                  Fronts& fronts, std::int64_t& pruned)
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
        beaten_gpus_(problem.better_than_gpus) {
    for (std::size_t block = 0; block < placement.size(); ++block) bound_block(block);
  }

  Solution run() {
    for (const std::size_t width : {kBeam, kWhole}) {
      width_ = width;
      for (auto& fronts : fronts_of_) fronts.assign(sizes_.size(), std::nullopt);
      std::vector<int> chosen;
      branch_sizes(chosen, gpus_, ChunkSeconds{});
    }
    // The step from its phases, free of the rounding of the incremental sums.
    if (best_.found()) best_.step_s = iteration_.step_seconds(best_.seconds);
    return best_;
  }

 private:
  // Roles of a block that have a front (a rollout beside the actor is part of the actor's).
  std::vector<Role> owners(std::size_t block) const {
    std::vector<Role> roles;
    for (const Role role : placement_[block]) {
      if (apart_ || role != Role::rollout) roles.push_back(role);
    }
    return roles;
  }

  // A plan on `gpus` GPUs or more must take less than this to be better than the best.
  double step_limit(int gpus) const {
    if (beaten_s_ == kInfinity) return kInfinity;
    switch (problem_.objective) {
      case Objective::step_time:
        return beaten_s_;
      case Objective::tokens_per_gpu:
      case Objective::cost:
        return beaten_s_ * beaten_gpus_ / gpus;
      case Objective::fewest_gpus:
        break;
    }
    if (gpus > beaten_gpus_) return -kInfinity;
    return gpus == beaten_gpus_ ? beaten_s_ : kInfinity;
  }

  // What sizes are tried by: the objective at a bound of the step.
  double order_of(double step, int gpus) const {
    if (problem_.objective == Objective::step_time) return step;
    return problem_.objective == Objective::fewest_gpus ? gpus : step * gpus;
  }

  // Least GPUs with one block of `size`.
  int with_others(int size) const { return size + static_cast<int>(placement_.size()) - 1; }

  ChunkSeconds of_block(std::size_t block, const PhaseSeconds& seconds) const {
    return by_chunk(iteration_, block, seconds);
  }

  // Least seconds per chunk at each size and over all sizes up to it, ignoring memory that roles
  // share; they include the calls without a model.
  void bound_block(std::size_t block) {
    ChunkSeconds least;
    least.fill(kInfinity);
    auto& at_size = least_at_.emplace_back();
    auto& up_to = least_up_to_.emplace_back();
    auto& viable = viable_.emplace_back();
    fronts_of_.emplace_back(sizes_.size());
    for (std::size_t s = 0; s < sizes_.size() && sizes_[s] <= gpus_; ++s) {
      ChunkSeconds here = of_block(block, problem_.fixed_seconds);
      for (const Role role : owners(block)) {
        add(here, of_block(block, fronts_.bound(role, sizes_[s], apart_)));
      }
      for (std::size_t c = 0; c < here.size(); ++c) least[c] = std::min(least[c], here[c]);
      at_size.push_back(here);
      up_to.push_back(least);
      if (*std::max_element(here.begin(), here.end()) < kInfinity) {
        viable.push_back(static_cast<int>(s));
      }
    }
  }

  // Least seconds of a block on at most `most` GPUs; nullptr where it cannot be so small.
  const ChunkSeconds* least_within(std::size_t block, int most) const {
    const auto end = std::upper_bound(sizes_.begin(), sizes_.end(), most);
    const auto count = std::min<std::size_t>(static_cast<std::size_t>(end - sizes_.begin()),
                                             least_up_to_[block].size());
    return count == 0 ? nullptr : &least_up_to_[block][count - 1];
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
      Selection selection = fronts_.select(which, gpus, step, limit, most);
      all = all && selection.whole;
      return selection;
    };
    Chosen chosen;
    const bool pairs = fronts_.paired(role, apart_);
    ChunkSeconds beside = open;
    if (pairs) add(beside, of_block(block, fronts_.bound(Role::rollout, gpus)));
    chosen.own = select(role, beside);
    chosen.least = of_block(block, chosen.own.least);
    chosen.least_resident = chosen.own.least_resident;
    if (pairs) {
      beside = open;
      add(beside, of_block(block, fronts_.bound(role, gpus)));
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
    const double limit = step_limit(with_others(gpus));
    ChunkSeconds bounds = open;
    add(bounds, of_block(block, problem_.fixed_seconds));
    for (const Role role : roles) add(bounds, of_block(block, fronts_.bound(role, gpus, apart_)));
    std::int64_t bytes = problem_.memory_limit;
    std::vector<Chosen> chosen;
    for (const Role role : roles) {
      const ChunkSeconds own = of_block(block, fronts_.bound(role, gpus, apart_));
      ChunkSeconds others = bounds;
      for (std::size_t c = 0; c < others.size(); ++c) others[c] -= own[c];
      chosen.push_back(choose(block, role, gpus, others, limit, most, all));
      if (chosen.back().own.options.empty()) return front;
      add(open, chosen.back().least);
      bytes -= chosen.back().least_resident;
    }
    front.points.emplace_back();
    front.points.front().seconds = of_block(block, problem_.fixed_seconds);
    for (std::size_t r = 0; r < roles.size(); ++r) {
      for (std::size_t c = 0; c < open.size(); ++c) open[c] -= chosen[r].least[c];
      bytes += chosen[r].least_resident;
      const std::vector<FrontPoint> additions =
          fronts_.paired(roles[r], apart_)
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
    add(query.rest, of_block(block, problem_.fixed_seconds));
    if (width_ != kWhole) {
      query.most_actors = kQuick;
      query.most_pairs_each = kBeam;
    }
    return pairs_of(iteration_, fronts_, query, pruned_);
  }

  std::vector<FrontPoint> projected(std::size_t block, Role role, int gpus,
                                    const Selection& selection) {
    std::vector<FrontPoint> points;
    for (const int index : selection.options) {
      const Option option = fronts_.option(role, gpus, index, apart_);
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

  // `fixed`: least seconds of the fronts of the chosen blocks.
  void branch_sizes(std::vector<int>& chosen, int left, const ChunkSeconds& fixed) {
    const std::size_t block = chosen.size();
    if (block == placement_.size()) return branch_points(chosen);
    const int reserved = static_cast<int>(placement_.size() - block) - 1;
    struct Branch {
      double order = 0, step = 0;
      int size = 0;
    };
    std::vector<Branch> branches;
    for (std::size_t v = viable_[block].size(); v-- > 0;) {
      const int s = viable_[block][v], size = sizes_[static_cast<std::size_t>(s)];
      if (size > left - reserved) continue;
      ChunkSeconds seconds = fixed;
      add(seconds, least_at_[block][static_cast<std::size_t>(s)]);
      if (!add_later(block, left - size, seconds)) continue;
      const double step = iteration_.step_seconds(seconds.data());
      const int used = gpus_ - left + size + reserved;
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
      const int used = gpus_ - left + size + reserved;
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
      branch_sizes(chosen, left - size, next);
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
    const std::vector<int> first = place_blocks(sizes, problem_.cluster);
    if (first.empty()) return;
    std::vector<const FrontPoint*> points;
    ChunkSeconds seconds{};
    for (std::size_t block = 0; block < chosen.size(); ++block) {
      add(seconds, block_front(block, static_cast<std::size_t>(chosen[block])).least);
    }
    combine(chosen, sizes, first, points, seconds);
  }

  // `seconds`: chosen points of the first blocks, least of the others.
  void combine(const std::vector<int>& chosen, const std::vector<int>& sizes,
               const std::vector<int>& first, std::vector<const FrontPoint*>& points,
               const ChunkSeconds& seconds) {
    const std::size_t block = points.size();
    const int gpus = std::accumulate(sizes.begin(), sizes.end(), 0);
    if (block == chosen.size()) {
      const double step = iteration_.step_seconds(seconds.data());
      if (step < step_limit(gpus)) record(sizes, first, points, step);
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
      combine(chosen, sizes, first, points, next);
      points.pop_back();
    }
  }

  void record(const std::vector<int>& sizes, const std::vector<int>& first,
              const std::vector<const FrontPoint*>& points, double step) {
    best_.placement = placement_;
    best_.sizes = sizes;
    best_.first_rank = first;
    best_.step_s = beaten_s_ = step;
    beaten_gpus_ = best_.gpus();
    best_.policy_lag = policy_lag_;
    best_.choice.clear();
    best_.seconds = problem_.fixed_seconds;
    for (std::size_t block = 0; block < points.size(); ++block) {
      const std::vector<Role> roles = owners(block);
      for (std::size_t r = 0; r < roles.size(); ++r) {
        const Option option =
            fronts_.option(roles[r], sizes[block], points[block]->option[r], apart_);
        record_option(option);
        if (fronts_.paired(roles[r], apart_)) {
          record_rollout(sizes[block], option, points[block]->rollout);
        }
      }
    }
  }

  void record_option(const Option& option) {
    best_.choice[option.candidate.role] = option.candidate;
    for (std::size_t p = 0; p < best_.seconds.size(); ++p) best_.seconds[p] += option.seconds[p];
  }

  void record_rollout(int gpus, const Option& actor, int index) {
    const Option rollout = fronts_.option(Role::rollout, gpus, index, apart_);
    record_option(rollout);
    best_.seconds[static_cast<std::size_t>(Phase::reshard)] +=
        fronts_.reshard_seconds(gpus, actor, rollout);
  }

  const SearchProblem& problem_;
  const Placement& placement_;
  int policy_lag_;
  bool apart_;
  int gpus_;
  Fronts& fronts_;
  std::int64_t& pruned_;
  std::vector<ScheduledCall> schedule_;
  Iteration iteration_;
  int used_;
  std::vector<int> sizes_;
  std::vector<std::vector<std::optional<BlockFront>>> fronts_of_;  // by block, size
  std::vector<std::vector<ChunkSeconds>> least_at_, least_up_to_;  // by block, size
  std::vector<std::vector<int>> viable_;                           // sizes, by block
  std::size_t width_ = kWhole;                                     // points that fronts keep
  double beaten_s_;  // step and GPUs of the best plan so far, found here or before
  int beaten_gpus_;
  Solution best_;
};

}  // namespace

Solution search_placement(const SearchProblem& problem, const Placement& placement, int policy_lag,
                          Fronts& fronts, std::int64_t& pruned) {
  return PlacementSearch(problem, placement, policy_lag, fronts, pruned).run();
}

}  // namespace tessera
