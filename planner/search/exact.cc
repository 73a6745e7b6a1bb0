#include "planner/search/exact.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "planner/search/pareto.h"

namespace tessera {
namespace {

std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A role's way to run on a number of GPUs.
struct Option {
  Candidate candidate;
  PhaseSeconds seconds{};
  std::int64_t resident = 0, transient = 0,
               switching = 0;  // the last two: on top of resident
};

// All undominated options of one (role, GPUs), and the least seconds of each
// phase among them.
struct RoleFront {
  std::vector<Option> options;
  PhaseSeconds least{};
};

struct BlockFront {
  std::vector<FrontPoint> points;           // option[i] belongs to the block's i-th role
  std::array<double, kPhaseCount> least{};  // by chunk
};

// Options and fronts of one role under one setting, by GPUs.
struct RoleFronts {
  std::map<int, std::vector<Option>> priced;
  std::map<std::pair<int, bool>, RoleFront> fronts;  // bool: apart
  std::map<std::pair<int, bool>, PhaseSeconds> least;
};

}  // namespace

struct FrontStore::State {
  std::map<std::pair<Role, std::string>, RoleFronts> roles;
};

FrontStore::FrontStore() : state_(std::make_unique<State>()) {}
FrontStore::~FrontStore() = default;

namespace {

class Fronts {
 public:
  Fronts(const SearchProblem& problem, FrontStore::State& store) : problem_(problem) {
    const auto setting = [&](Role role) {
      const auto found = problem.settings.find(role);
      return found == problem.settings.end() ? std::string() : found->second;
    };
    for (const Role role : kEveryRole) {
      roles_[static_cast<std::size_t>(role)] = &store.roles[{role, setting(role)}];
    }
    for (const ScheduledCall& call : problem.schedule) phases_.push_back(call.phase);
  }

  /// Undominated options. `apart`: actor and rollout are in different blocks; where they share one
  /// they are paired by the search of a placement instead.
  const RoleFront& of(Role role, int gpus, bool apart) {
    auto [entry, added] = fronts_of(role).fronts.try_emplace({gpus, apart});
    if (added) entry->second = plain_front(role, gpus, apart);
    return entry->second;
  }

  /// Bounds without the work of a front: least seconds of each phase over all options, for the
  /// actor with its rollout where they share a block.
  const PhaseSeconds& least(Role role, int gpus, bool apart) {
    auto [entry, added] = fronts_of(role).least.try_emplace({gpus, apart});
    if (!added) return entry->second;
    PhaseSeconds least = least_of(priced(role, gpus));
    if (paired(role, apart)) {
      const PhaseSeconds rollout = least_of(priced(Role::rollout, gpus));
      for (std::size_t p = 0; p < least.size(); ++p) least[p] += rollout[p];
    }
    return entry->second = least;
  }

  /// True for an actor whose options are pairs with the rollout's.
  bool paired(Role role, bool apart) const {
    return role == Role::actor && !apart &&
           std::find(problem_.roles.begin(), problem_.roles.end(), Role::rollout) !=
               problem_.roles.end();
  }

  /// All options of a role on a number of GPUs that fit alone, those of one layout together.
  const std::vector<Option>& priced(Role role, int gpus) {
    auto [entry, added] = fronts_of(role).priced.try_emplace(gpus);
    std::vector<Option>& options = entry->second;
    if (!added) return options;
    for (const Candidate& candidate : problem_.candidates(role, gpus)) {
      const RoleCost cost = problem_.evaluator.role(candidate);
      ++evaluated_;
      if (std::max(cost.peak, cost.switching) > problem_.memory_limit) continue;
      options.push_back({candidate, cost.seconds, cost.resident, cost.peak - cost.resident,
                         cost.switching - cost.resident});
    }
    filter(options, true);
    return options;
  }

  // What a reshard's bytes depend on.
  static std::array<int, 10> layout_key(const Candidate& c) {
    return {c.tp, c.cp, c.pp, c.vpp, c.ep, c.etp, c.dp, c.dp_shard, c.head_layers, 0};
  }

  std::int64_t evaluated() const { return evaluated_; }

 private:
  RoleFronts& fronts_of(Role role) { return *roles_[static_cast<std::size_t>(role)]; }

  // Phases in which any of the options spends time.
  std::vector<Phase> used_phases(const std::vector<Option>& options) const {
    std::vector<Phase> used;
    for (const Phase phase : phases_) {
      const bool any = std::any_of(options.begin(), options.end(), [&](const Option& option) {
        return option.seconds[at(phase)] != 0;
      });
      if (any) used.push_back(phase);
    }
    return used;
  }

  // Keeps the undominated options among those with equal layouts (or all).
  void filter(std::vector<Option>& options, bool equal_layouts) const {
    if (options.empty()) return;
    const std::vector<Phase> phases = used_phases(options);
    std::map<std::array<int, 10>, std::vector<FrontPoint>> groups;
    for (std::size_t i = 0; i < options.size(); ++i) {
      FrontPoint point;
      for (std::size_t p = 0; p < phases.size(); ++p) {
        point.seconds[p] = options[i].seconds[at(phases[p])];
      }
      point.resident = options[i].resident;
      // Options to be paired also differ in what they need while weights move.
      point.transient = options[i].transient;
      point.switching = equal_layouts ? options[i].switching : 0;
      point.option[0] = static_cast<int>(i);
      const Candidate& candidate = options[i].candidate;
      groups[equal_layouts ? layout_key(candidate) : std::array<int, 10>{}].push_back(point);
    }
    std::vector<Option> kept;
    for (auto& [layout, points] : groups) {
      keep_front(points, static_cast<int>(phases.size()));
      for (const FrontPoint& point : points) {
        kept.push_back(options[static_cast<std::size_t>(point.option[0])]);
      }
    }
    options = std::move(kept);
  }

  PhaseSeconds least_of(const std::vector<Option>& options) const {
    PhaseSeconds seconds{};
    seconds.fill(options.empty() ? kInfinity : 0);
    for (const Phase phase : phases_) {
      double least = kInfinity;
      for (const Option& option : options) least = std::min(least, option.seconds[at(phase)]);
      seconds[at(phase)] = least;
    }
    return seconds;
  }

  RoleFront with_least(std::vector<Option> options) const {
    RoleFront front{std::move(options), {}};
    front.least = least_of(front.options);
    return front;
  }

  RoleFront plain_front(Role role, int gpus, bool apart) {
    std::vector<Option> options = priced(role, gpus);
    const bool moves = apart && (role == Role::actor || role == Role::rollout);
    for (Option& option : options) {
      if (moves) option.transient = std::max(option.transient, option.switching);
      // Weights that come from elsewhere take as long whatever the actor's
      // layout is.
      if (apart && role == Role::rollout) {
        option.seconds[at(Phase::reshard)] =
            problem_.evaluator.reshard_seconds(Candidate{}, option.candidate, false);
      }
    }
    filter(options, false);
    return with_least(std::move(options));
  }

  const SearchProblem& problem_;
  std::array<RoleFronts*, kRoleCount> roles_{};
  std::vector<Phase> phases_;
  std::int64_t evaluated_ = 0;
};

// Branch and bound over the block sizes and front points of one placement.
class PlacementSearch {
 public:
  PlacementSearch(const SearchProblem& problem, const Placement& placement, int policy_lag,
                  Fronts& fronts)
      : problem_(problem),
        placement_(placement),
        policy_lag_(policy_lag),
        apart_(rollout_apart(placement)),
        gpus_(problem.gpus > 0 ? problem.gpus : static_cast<int>(problem.cluster.gpus())),
        fronts_(fronts),
        schedule_(schedule_of(problem.schedule, placement, policy_lag)),
        iteration_(schedule_, blocks_of(schedule_, placement)),
        sizes_(block_sizes(problem.cluster)) {
    const int gpus = gpus_;
    fronts_of_.resize(placement.size());
    least_up_to_.resize(placement.size());
    for (std::size_t block = 0; block < placement.size(); ++block) bound_block(block, gpus);
  }

  // A first pass over truncated fronts finds a good plan, the second proves or
  // improves it.
  Solution run() {
    for (const std::size_t width : {kBeam, kWhole}) {
      width_ = width;
      for (auto& fronts : fronts_of_) fronts.assign(sizes_.size(), std::nullopt);
      std::vector<int> chosen;
      branch_sizes(chosen, gpus_);
    }
    if (best_.found()) finish();
    return best_;
  }

  std::int64_t pruned() const { return pruned_; }

 private:
  using ChunkSeconds = std::array<double, kPhaseCount>;
  static constexpr std::size_t kBeam = 6, kQuick = 100;
  static constexpr std::size_t kMostPairs = 20'000;  // before those that are beaten are dropped
  static constexpr std::size_t kWhole = std::numeric_limits<std::size_t>::max();

  // Roles of a block that have a front (a rollout beside the actor is part of
  // the actor's).
  std::vector<Role> owners(std::size_t block) const {
    std::vector<Role> roles;
    for (const Role role : placement_[block]) {
      if (apart_ || role != Role::rollout) roles.push_back(role);
    }
    return roles;
  }

  const RoleFront& front_of(Role role, int gpus) { return fronts_.of(role, gpus, apart_); }

  // A plan on `gpus` GPUs or more must take less than this to be better than
  // the best.
  double step_limit(int gpus) const {
    if (!best_.found()) return kInfinity;
    switch (problem_.objective) {
      case Objective::step_time:
        return best_.step_s;
      case Objective::tokens_per_gpu:
      case Objective::cost:
        return best_.step_s * best_.gpus() / gpus;
      case Objective::fewest_gpus:
        break;
    }
    if (gpus > best_.gpus()) return -kInfinity;
    return gpus == best_.gpus() ? best_.step_s : kInfinity;
  }
  // Least GPUs with one block of `size`.
  int with_others(int size) const { return size + static_cast<int>(placement_.size()) - 1; }

  ChunkSeconds by_chunk(std::size_t block, const PhaseSeconds& seconds) const {
    ChunkSeconds sums{};
    for (std::size_t c = 0; c < iteration_.chunks().size(); ++c) {
      const Chunk& chunk = iteration_.chunks()[c];
      if (chunk.block != static_cast<int>(block)) continue;
      for (const Phase phase : chunk.phases) sums[c] += seconds[at(phase)];
    }
    return sums;
  }

  // Seconds of the calls without a model, on the chunks of a block.
  ChunkSeconds fixed_chunks(std::size_t block) const {
    return by_chunk(block, problem_.fixed_seconds);
  }

  // Least seconds per chunk over all sizes up to each size, ignoring memory
  // shared between roles.
  void bound_block(std::size_t block, int gpus) {
    fronts_of_[block].resize(sizes_.size());
    ChunkSeconds least;
    least.fill(kInfinity);
    for (std::size_t s = 0; s < sizes_.size() && sizes_[s] <= gpus; ++s) {
      ChunkSeconds here = fixed_chunks(block);
      for (const Role role : owners(block)) {
        add(here, by_chunk(block, fronts_.least(role, sizes_[s], apart_)));
      }
      for (std::size_t c = 0; c < here.size(); ++c) least[c] = std::min(least[c], here[c]);
      least_up_to_[block].push_back(least);
    }
  }

  // The merged front of a block's roles on a size, without points that cannot
  // beat the best plan.
  const BlockFront& block_front(std::size_t block, std::size_t size) {
    auto& cached = fronts_of_[block][size];
    if (cached) return *cached;
    const std::vector<Role> roles = owners(block);
    const int used = static_cast<int>(iteration_.chunks().size());
    // Least seconds of what is still to be added: later roles of the block and
    // other blocks.
    ChunkSeconds open = rest_of(block);
    for (const Role role : roles) {
      add(open, by_chunk(block, fronts_.least(role, sizes_[size], apart_)));
    }
    const double limit = step_limit(with_others(sizes_[size]));
    BlockFront front;
    front.points.emplace_back();
    front.points.front().seconds = fixed_chunks(block);
    for (std::size_t r = 0; r < roles.size(); ++r) {
      const ChunkSeconds least = by_chunk(block, fronts_.least(roles[r], sizes_[size], apart_));
      for (std::size_t c = 0; c < open.size(); ++c) open[c] -= least[c];
      std::vector<FrontPoint> additions =
          fronts_.paired(roles[r], apart_) ? paired(block, sizes_[size], r, open, limit)
                                           : projected(block, front_of(roles[r], sizes_[size]), r);
      keep_front(additions, used);
      front.points = sums_of(front.points, additions, r, open, limit);
      keep_front(front.points, used);
      if (front.points.size() > width_) front.points.resize(width_);
    }
    front.least.fill(front.points.empty() ? kInfinity : 0);
    for (std::size_t c = 0; c < iteration_.chunks().size() && !front.points.empty(); ++c) {
      front.least[c] = kInfinity;
      for (const FrontPoint& point : front.points) {
        front.least[c] = std::min(front.least[c], point.seconds[c]);
      }
    }
    cached = std::move(front);
    return *cached;
  }

  static void add(ChunkSeconds& sum, const ChunkSeconds& part) {
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += part[c];
  }

  // Least seconds of all blocks but one, at any size.
  ChunkSeconds rest_of(std::size_t block) const {
    ChunkSeconds rest{};
    for (std::size_t other = 0; other < placement_.size(); ++other) {
      if (other != block) add(rest, least_up_to_[other].back());
    }
    return rest;
  }

  // Every point with every addition that fits and may still beat the best plan.
  std::vector<FrontPoint> sums_of(const std::vector<FrontPoint>& points,
                                  const std::vector<FrontPoint>& additions, std::size_t position,
                                  const ChunkSeconds& open, double limit) {
    std::vector<FrontPoint> sums;
    for (const FrontPoint& point : points) {
      for (const FrontPoint& addition : additions) {
        FrontPoint sum = point;
        sum.resident += addition.resident;
        sum.transient = std::max(sum.transient, addition.transient);
        if (!sum.fits(problem_.memory_limit)) continue;
        add(sum.seconds, addition.seconds);
        ChunkSeconds bound = sum.seconds;
        add(bound, open);
        if (iteration_.step_seconds(bound.data()) >= limit) {
          ++pruned_;
          continue;
        }
        sum.option[position] = addition.option[position];
        sums.push_back(sum);
      }
    }
    return sums;
  }

  // Actor and rollout on the same ranks: every pair that fits and may still beat the best plan,
  // with what the switch between them takes. option = actor's index x rollouts + rollout's index.
  std::vector<FrontPoint> paired(std::size_t block, int gpus, std::size_t position,
                                 const ChunkSeconds& open, double limit) {
    const std::vector<Option>& actors = fronts_.priced(Role::actor, gpus);
    const std::vector<Option>& rollouts = fronts_.priced(Role::rollout, gpus);
    const int used = static_cast<int>(iteration_.chunks().size());
    const auto reshard_chunk = static_cast<std::size_t>(iteration_.chunk_of(Phase::reshard));
    ChunkSeconds rest = fixed_chunks(block);
    add(rest, open);
    std::vector<ChunkSeconds> generation;
    for (const Option& rollout : rollouts) {
      generation.push_back(by_chunk(block, rollout.seconds));
      add(generation.back(), rest);
    }
    const auto quick_actors = quickest(actors), quick_rollouts = quickest(rollouts);
    std::vector<FrontPoint> pairs;
    std::vector<double> reshard(rollouts.size());
    std::size_t most_pairs = kMostPairs;
    std::array<int, 10> layout{};  // that `reshard` is of
    for (const std::size_t a : quick_actors) {
      const Option& actor = actors[a];
      const ChunkSeconds training = by_chunk(block, actor.seconds);
      if (const auto key = Fronts::layout_key(actor.candidate); key != layout) {
        layout = key;
        std::fill(reshard.begin(), reshard.end(), -1.0);
      }
      for (const std::size_t r : quick_rollouts) {
        const Option& rollout = rollouts[r];
        const std::int64_t resident = actor.resident + rollout.resident;
        const std::int64_t transient =
            std::max({actor.transient, rollout.transient, actor.switching + rollout.switching});
        if (resident + transient > problem_.memory_limit) continue;
        ChunkSeconds seconds = generation[r];
        add(seconds, training);
        if (iteration_.step_seconds(seconds.data()) >= limit) {
          ++pruned_;
          continue;
        }
        if (reshard[r] < 0) {
          reshard[r] = problem_.evaluator.reshard_seconds(actor.candidate, rollout.candidate, true);
        }
        seconds[reshard_chunk] += reshard[r];
        FrontPoint& pair = pairs.emplace_back();
        for (std::size_t c = 0; c < seconds.size(); ++c) pair.seconds[c] = seconds[c] - rest[c];
        pair.resident = resident;
        pair.transient = transient;
        pair.option[position] = static_cast<int>(a * rollouts.size() + r);
      }
      if (pairs.size() > most_pairs) {
        keep_front(pairs, used);
        most_pairs = std::max(kMostPairs, 2 * pairs.size());
      }
    }
    return pairs;
  }

  // Indices of all options, or in the first pass of the fastest only, in order.
  std::vector<std::size_t> quickest(const std::vector<Option>& options) const {
    std::vector<std::size_t> order(options.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (width_ == kWhole || options.size() <= kQuick) return order;
    const auto total = [&](std::size_t i) {
      return std::accumulate(options[i].seconds.begin(), options[i].seconds.end(), 0.0);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return total(a) < total(b); });
    order.resize(kQuick);
    return order;
  }

  std::vector<FrontPoint> projected(std::size_t block, const RoleFront& front,
                                    std::size_t position) const {
    std::vector<FrontPoint> points;
    for (std::size_t i = 0; i < front.options.size(); ++i) {
      const Option& option = front.options[i];
      FrontPoint point;
      point.seconds = by_chunk(block, option.seconds);
      point.resident = option.resident;
      point.transient = option.transient;
      point.option[position] = static_cast<int>(i);
      points.push_back(point);
    }
    return points;
  }

  // Lower bound of the step: chosen blocks at the least of their fronts, the
  // others at the least of any size that is left for them.
  double size_bound(const std::vector<int>& chosen, int left) {
    const std::size_t open = placement_.size() - chosen.size();
    ChunkSeconds seconds{};
    for (std::size_t block = 0; block < placement_.size(); ++block) {
      const ChunkSeconds* least = nullptr;
      if (block < chosen.size()) {
        least = &block_front(block, static_cast<std::size_t>(chosen[block])).least;
      } else {
        const int most = left - static_cast<int>(open) + 1;
        const auto end = std::upper_bound(sizes_.begin(), sizes_.end(), most);
        if (end == sizes_.begin()) return kInfinity;
        least = &least_up_to_[block][static_cast<std::size_t>(end - sizes_.begin()) - 1];
      }
      add(seconds, *least);
    }
    return iteration_.step_seconds(seconds.data());
  }

  // A cheap bound on a block of this size before its front is merged.
  bool promising(std::size_t block, std::size_t size) {
    ChunkSeconds seconds = fixed_chunks(block);
    for (const Role role : owners(block)) {
      add(seconds, by_chunk(block, fronts_.least(role, sizes_[size], apart_)));
    }
    add(seconds, rest_of(block));
    return iteration_.step_seconds(seconds.data()) < step_limit(with_others(sizes_[size]));
  }

  void branch_sizes(std::vector<int>& chosen, int left) {
    const std::size_t block = chosen.size();
    if (block == placement_.size()) return branch_points(chosen);
    const int reserved = static_cast<int>(placement_.size() - block) - 1;
    for (std::size_t s = sizes_.size(); s-- > 0;) {
      if (sizes_[s] > left - reserved) continue;
      if (!promising(block, s)) {
        ++pruned_;
        continue;
      }
      chosen.push_back(static_cast<int>(s));
      const int used = gpus_ - left + sizes_[s] + reserved;
      if (block_front(block, s).points.empty() ||
          size_bound(chosen, left - sizes_[s]) >= step_limit(used)) {
        ++pruned_;
      } else {
        branch_sizes(chosen, left - sizes_[s]);
      }
      chosen.pop_back();
    }
  }

  void branch_points(const std::vector<int>& chosen) {
    std::vector<int> sizes;
    for (const int s : chosen) sizes.push_back(sizes_[static_cast<std::size_t>(s)]);
    std::vector<int> first = place_blocks(sizes, problem_.cluster);
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
    const double limit = step_limit(std::accumulate(sizes.begin(), sizes.end(), 0));
    if (block == chosen.size()) {
      const double step = iteration_.step_seconds(seconds.data());
      if (step < limit) record(sizes, first, points, step);
      return;
    }
    const BlockFront& front = block_front(block, static_cast<std::size_t>(chosen[block]));
    for (const FrontPoint& point : front.points) {
      ChunkSeconds next = seconds;
      for (std::size_t c = 0; c < next.size(); ++c) {
        next[c] += point.seconds[c] - front.least[c];
      }
      if (iteration_.step_seconds(next.data()) >= limit) {
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
    best_.step_s = step;
    best_.policy_lag = policy_lag_;
    best_.choice.clear();
    best_.seconds = problem_.fixed_seconds;
    for (std::size_t block = 0; block < points.size(); ++block) {
      const std::vector<Role> roles = owners(block);
      for (std::size_t r = 0; r < roles.size(); ++r) {
        const auto at_option = static_cast<std::size_t>(points[block]->option[r]);
        if (fronts_.paired(roles[r], apart_)) {
          record_pair(sizes[block], at_option);
          continue;
        }
        const Option& option = front_of(roles[r], sizes[block]).options[at_option];
        best_.choice[roles[r]] = option.candidate;
        for (std::size_t p = 0; p < best_.seconds.size(); ++p) {
          best_.seconds[p] += option.seconds[p];
        }
      }
    }
  }

  void record_pair(int gpus, std::size_t option) {
    const std::vector<Option>& rollouts = fronts_.priced(Role::rollout, gpus);
    const Option& actor = fronts_.priced(Role::actor, gpus)[option / rollouts.size()];
    const Option& rollout = rollouts[option % rollouts.size()];
    best_.choice[Role::actor] = actor.candidate;
    best_.choice[Role::rollout] = rollout.candidate;
    for (std::size_t p = 0; p < best_.seconds.size(); ++p) {
      best_.seconds[p] += actor.seconds[p] + rollout.seconds[p];
    }
    best_.seconds[at(Phase::reshard)] +=
        problem_.evaluator.reshard_seconds(actor.candidate, rollout.candidate, true);
  }

  // The step from its phases, free of the rounding of the incremental sums.
  void finish() { best_.step_s = iteration_.step_seconds(best_.seconds); }

  const SearchProblem& problem_;
  const Placement& placement_;
  int policy_lag_;
  bool apart_;
  int gpus_;
  Fronts& fronts_;
  std::vector<ScheduledCall> schedule_;
  Iteration iteration_;
  std::vector<int> sizes_;
  std::vector<std::vector<std::optional<BlockFront>>> fronts_of_;  // by block, size
  std::vector<std::vector<ChunkSeconds>> least_up_to_;             // by block, size
  std::size_t width_ = kWhole;                                     // points that fronts keep
  Solution best_;
  std::int64_t pruned_ = 0;
};

constexpr std::array<std::string_view, 4> kObjectives = {"step_s", "tokens_per_s_per_gpu", "cost",
                                                         "gpus"};

SearchResult search(const SearchProblem& problem, Fronts& fronts) {
  SearchResult result;
  for (const Placement& placement : problem.placements) {
    for (const int lag : problem.policy_lags) {
      if (lag > 0 && !rollout_apart(placement)) continue;
      PlacementSearch placed(problem, placement, lag, fronts);
      Solution best = placed.run();
      result.pruned += placed.pruned();
      if (best.found()) result.best.push_back(std::move(best));
    }
  }
  result.evaluated = fronts.evaluated();
  const auto value = [&](const Solution& solution) {
    return value_of(problem.objective, solution.step_s, solution.gpus());
  };
  std::stable_sort(result.best.begin(), result.best.end(),
                   [&](const Solution& a, const Solution& b) { return value(a) < value(b); });
  return result;
}

}  // namespace

std::string describe(const Placement& placement) {
  if (placement.size() == 1) return "colocated";
  std::string text;
  for (const auto& block : placement) {
    std::string roles;
    for (const Role role : block) {
      if (role == Role::rollout && block.size() > 1) continue;
      roles += (roles.empty() ? "" : "+") + std::string(name_of(role));
    }
    text += (text.empty() ? "" : " | ") + roles;
  }
  return text;
}

std::string_view name_of(Objective objective) {
  return kObjectives[static_cast<std::size_t>(objective)];
}

std::optional<Objective> objective_from(std::string_view name) {
  const auto found = std::find(kObjectives.begin(), kObjectives.end(), name);
  if (found == kObjectives.end()) return std::nullopt;
  return static_cast<Objective>(found - kObjectives.begin());
}

int Solution::gpus() const { return std::accumulate(sizes.begin(), sizes.end(), 0); }

double value_of(Objective objective, double step_s, int gpus) {
  switch (objective) {
    case Objective::step_time:
      return step_s;
    case Objective::tokens_per_gpu:
    case Objective::cost:
      return step_s * gpus;
    case Objective::fewest_gpus:
      break;
  }
  return gpus + step_s / (1 + step_s);
}

std::vector<Placement> all_placements(const std::vector<Role>& roles, bool disaggregated) {
  std::vector<Placement> placements{{}};
  for (const Role role : roles) {
    std::vector<Placement> extended;
    for (const Placement& placement : placements) {
      if (role == Role::rollout) {
        extended.push_back(placement);
        extended.back().front().push_back(role);
        continue;
      }
      for (std::size_t block = 0; block <= placement.size(); ++block) {
        Placement next = placement;
        if (block == placement.size()) next.emplace_back();
        next[block].push_back(role);
        extended.push_back(std::move(next));
      }
    }
    placements = std::move(extended);
  }
  const bool generates = std::find(roles.begin(), roles.end(), Role::rollout) != roles.end();
  if (!disaggregated || !generates) return placements;
  const std::size_t together = placements.size();
  for (std::size_t i = 0; i < together; ++i) {
    Placement apart = placements[i];
    std::erase(apart.front(), Role::rollout);
    apart.push_back({Role::rollout});
    placements.push_back(std::move(apart));
  }
  return placements;
}

SearchResult search_exactly(const SearchProblem& problem) {
  FrontStore store;
  return search_exactly(problem, store);
}

SearchResult search_exactly(const SearchProblem& problem, FrontStore& store) {
  Fronts fronts(problem, *store.state_);
  return search(problem, fronts);
}

std::vector<Solution> pareto_front(const SearchProblem& problem, const std::vector<int>& counts) {
  FrontStore store;
  std::vector<Solution> front;
  SearchProblem limited = problem;
  limited.objective = Objective::step_time;
  for (const int gpus : counts) {
    limited.gpus = gpus;
    SearchResult result = search_exactly(limited, store);
    if (result.best.empty()) continue;
    Solution& best = result.best.front();
    if (front.empty() || best.step_s < front.back().step_s) front.push_back(std::move(best));
  }
  return front;
}

}  // namespace tessera
