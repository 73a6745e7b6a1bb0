#include "planner/search/block_fronts.h"

#include <algorithm>

#include "planner/plan/phase_seconds.h"
#include "planner/request/candidate.h"
#include "planner/search/incumbent.h"
#include "planner/search/pairs.h"

namespace tessera {
namespace {

// Actors, pairs of each and layouts of a narrow pass.
constexpr std::size_t kQuickActors = 32, kQuickPairs = 6, kFewLayouts = 32;

// What follows from its points.
void sum_up(BlockFront& front) {
  front.least.fill(kForever);
  for (const FrontPoint& point : front.points) lower(front.least, point.seconds);
  const auto least =
      std::min_element(front.points.begin(), front.points.end(),
                       [](const FrontPoint& a, const FrontPoint& b) { return a.share < b.share; });
  front.least_share = least == front.points.end() ? 0 : least->share;
}

}  // namespace

BlockFronts::BlockFronts(const PlacementFrame& frame, BlockBounds& bounds, std::int64_t& pruned)
    : frame_(frame),
      bounds_(bounds),
      pruned_(pruned),
      used_(static_cast<int>(frame.iteration.chunks().size())),
      fronts_of_(frame.blocks()) {}

void BlockFronts::begin(const std::vector<int>& views, std::size_t width) {
  views_ = views;
  width_ = width;
  for (auto& fronts : fronts_of_) {
    fronts.clear();
    fronts.resize(frame_.sizes.size());
  }
}

const BlockFront& BlockFronts::at(std::size_t block, std::size_t size, double share,
                                  const Rivals& rivals) {
  if (!frame_.rollout_alone(block) || share * frame_.sizes[size] <= 1) share = 0;
  const auto [entry, fresh] = fronts_of_[block][size].try_emplace(share);
  BlockFront& cached = entry->second;
  if (!fresh) return cached;
  sum_up(cached);
  Query query{.block = block, .gpus = frame_.sizes[size], .share = share};
  query.limit = rivals.step_limit(frame_.problem.objective, with_others(block, query.gpus));
  const auto rest = rest_of(block, size, rivals);
  if (!rest) return cached;
  query.open = *rest;
  // What a narrow search finds in the layouts that look best; in more where nothing fits.
  query.most = width_ == kWhole ? kWhole : kFewLayouts;
  for (bool all = false; !all; query.most *= 2) {
    all = query.most == kWhole;
    cached = merged(query, all);
    if (!cached.points.empty()) break;
  }
  return cached;
}

// Least GPUs with one block of `size`.
Bill BlockFronts::with_others(std::size_t block, int size) const {
  Bill bill{size, frame_.least_billed(views_[block], size)};
  for (std::size_t other = 0; other < frame_.blocks(); ++other) {
    if (other == block) continue;
    bill.gpus += 1;
    bill.billed += frame_.least_billed(views_[other], 1);
  }
  return bill;
}

// Least seconds of all blocks but one.
std::optional<ChunkSeconds> BlockFronts::rest_of(std::size_t block, std::size_t size,
                                                 const Rivals& rivals) {
  std::vector<std::size_t> others;
  for (std::size_t other = 0; other < frame_.blocks(); ++other) {
    if (other != block) others.push_back(other);
  }
  const ChunkSeconds& own = bounds_.least_at(block, views_[block], static_cast<int>(size));
  const Bill bill = with_others(block, frame_.sizes[size]);
  const Seconds limit = rivals.step_limit(frame_.problem.objective, bill);
  const auto shares =
      bounds_.together(others, views_, frame_.gpus - frame_.sizes[size], own, limit);
  if (!shares) return std::nullopt;
  return bounds_.settled(others, views_, *shares, own, {frame_.problem, rivals, bill});
}

// Of a role alone under the query's group degrees.
const PhaseSeconds& BlockFronts::bound_of(const Query& query, Role role) {
  Fronts& all = fronts(query.block);
  const bool shares = query.groups && frame_.problem.shares_groups[role];
  return shares ? all.bound(role, query.gpus, *query.groups) : all.bound(role, query.gpus);
}

// With the rollout that is part of it, if there is one.
PhaseSeconds BlockFronts::bound_of_owner(const Query& query, Role role) {
  PhaseSeconds bound = bound_of(query, role);
  const bool paired = fronts(query.block).paired(role, frame_.apart);
  if (paired) bound += bound_of(query, Role::rollout);
  return bound;
}

BlockFronts::Chosen BlockFronts::choose(const Query& query, Role role, const ChunkSeconds& beside,
                                        bool& all) {
  const std::size_t block = query.block;
  Chosen chosen;
  chosen.paired = fronts(block).paired(role, frame_.apart);
  const auto select = [&](Role which, const ChunkSeconds& others) {
    LayoutQuery wanted{.role = which, .gpus = query.gpus, .limit = query.limit, .most = query.most};
    const auto step = [&](const PhaseSeconds& least, const ChunkSeconds& rest) {
      ChunkSeconds seconds = rest;
      seconds += frame_.of_block(block, least);
      return frame_.step_seconds(seconds);
    };
    wanted.step = [&](const PhaseSeconds& least) { return step(least, others); };
    wanted.alone = frame_.placement[block].size() == 1;
    wanted.sends = frame_.apart && which == Role::actor;
    // Of a reshard more matters than seconds and bytes: its pairs, or what ranks receive.
    wanted.beaten = which == Role::rollout || (which == Role::actor && !wanted.alone);
    wanted.transient_beside = query.transient;
    if (which == role) {
      wanted.step_beside = [&](const PhaseSeconds& least,
                               const SearchProblem::Held& held) -> Seconds {
        const Bytes left = query.bytes - held.between_calls;
        if (!chosen.paired) return left < 0 ? kForever : step(least, others);
        const auto rollout = chosen.within(left, query.bytes - held.in_reshard);
        if (!rollout) return kForever;
        ChunkSeconds rest = beside;
        rest += *rollout;
        return step(least, rest);
      };
    }
    if (frame_.problem.shares_groups[which]) wanted.groups = query.groups;
    Selection selection = fronts(block).select(wanted);
    all = all && selection.whole;
    return selection;
  };
  const auto with = [&](const PhaseSeconds& other) {
    ChunkSeconds seconds = beside;
    seconds += frame_.of_block(block, other);
    return seconds;
  };
  if (!chosen.paired) {
    chosen.own = select(role, beside);
    chosen.least = frame_.of_block(block, chosen.own.least);
    chosen.least_resident = chosen.own.least_resident;
    chosen.least_transient = chosen.own.least_transient;
    return chosen;
  }
  // The rollout first: it has few layouts, and memory makes it much slower than its bound.
  chosen.rollout = select(Role::rollout, with(bound_of(query, role)));
  chosen.within = RolloutWithin(frame_.iteration, block, fronts(block), query.gpus, chosen.rollout);
  chosen.own = select(
      role, with(chosen.rollout.whole ? chosen.rollout.least : bound_of(query, Role::rollout)));
  chosen.least = frame_.of_block(block, chosen.own.least);
  chosen.least += frame_.of_block(block, chosen.rollout.least);
  chosen.least_resident = chosen.own.least_resident + chosen.rollout.least_resident;
  chosen.least_transient = std::max(chosen.own.least_transient, chosen.rollout.least_transient);
  return chosen;
}

// Of every role; adds their least seconds to query.open, and takes their least bytes of the limit.
// What the options of one role take at least tightens the choice of the next one's.
bool BlockFronts::choose_all(Query& query, bool& all, std::vector<Chosen>& chosen) {
  const std::size_t block = query.block;
  const std::vector<Role> roles = frame_.owners(block);
  ChunkSeconds rest = query.open;
  rest += frame_.of_block(block, seen(block).fixed_seconds);
  std::vector<ChunkSeconds> least;
  for (const Role role : roles) {
    least.push_back(frame_.of_block(block, bound_of_owner(query, role)));
  }
  query.bytes = seen(block).memory_limit;
  for (std::size_t r = 0; r < roles.size(); ++r) {
    ChunkSeconds beside = rest;
    for (std::size_t other = 0; other < roles.size(); ++other) {
      if (other != r) beside += least[other];
    }
    chosen.push_back(choose(query, roles[r], beside, all));
    const Chosen& own = chosen.back();
    if (own.own.options.empty() || (own.paired && own.rollout.options.empty())) return false;
    if (own.own.whole && own.rollout.whole) least[r] = own.least;
    query.open += own.least;
    query.bytes -= own.least_resident;
    query.transient = std::max(query.transient, own.least_transient);
  }
  return true;
}

// Degrees that all of these roles can have and with which a step may stay below the limit, those
// with the least bounds first.
std::vector<GroupDegrees> BlockFronts::common_groups(const Query& query,
                                                     const std::vector<Role>& sharing) {
  const std::size_t block = query.block;
  ChunkSeconds beside = query.open;
  beside += frame_.of_block(block, seen(block).fixed_seconds);
  for (const Role role : frame_.placement[block]) {
    if (std::find(sharing.begin(), sharing.end(), role) != sharing.end()) continue;
    beside += frame_.of_block(block, bound_of(query, role));
  }
  std::vector<std::pair<double, GroupDegrees>> ordered;
  for (const auto& [groups, least] : fronts(block).bounds_alike(sharing, query.gpus)) {
    ChunkSeconds seconds = beside;
    seconds += frame_.of_block(block, least);
    const double step = frame_.step_seconds(seconds);
    if (step < query.limit) {
      ordered.emplace_back(step, groups);
    } else {
      ++pruned_;
    }
  }
  std::sort(ordered.begin(), ordered.end());
  std::vector<GroupDegrees> common;
  for (const auto& [step, groups] : ordered) common.push_back(groups);
  return common;
}

// Of at most `query.most` layouts of each role, and as many group degrees where roles have these in
// common. `all` says whether these were all there are.
BlockFront BlockFronts::merged(Query query, bool& all) {
  const std::vector<Role> sharing = frame_.sharing(query.block);
  if (sharing.empty()) return merged_alike(query, all);
  std::vector<GroupDegrees> common = common_groups(query, sharing);
  all = common.size() <= query.most;
  if (!all) common.resize(query.most);
  BlockFront front;
  for (const GroupDegrees& groups : common) {
    query.groups = groups;
    bool every = true;
    const BlockFront alike = merged_alike(query, every);
    all = all && every;
    front.points.insert(front.points.end(), alike.points.begin(), alike.points.end());
  }
  keep_front(front.points, used_);
  if (front.points.size() > width_) front.points.resize(width_);
  sum_up(front);
  return front;
}

// Of one choice of group degrees, or of roles that need not agree in any.
BlockFront BlockFronts::merged_alike(Query query, bool& all) {
  all = true;
  BlockFront front;
  sum_up(front);
  std::vector<Chosen> chosen;
  if (!choose_all(query, all, chosen)) return front;
  const std::size_t block = query.block;
  const std::vector<Role> roles = frame_.owners(block);
  front.points.emplace_back();
  front.points.front().seconds = frame_.of_block(block, seen(block).fixed_seconds);
  for (std::size_t r = 0; r < roles.size(); ++r) {
    query.open -= chosen[r].least;
    query.bytes += chosen[r].least_resident;
    const std::vector<FrontPoint> additions = fronts(block).paired(roles[r], frame_.apart)
                                                  ? paired(query, std::move(chosen[r]))
                                                  : projected(query, roles[r], chosen[r].own);
    front.points = sums_of(query, front.points, additions, r);
    if (r + 1 == roles.size()) {  // nothing else must fit beside them
      for (FrontPoint& point : front.points) point.resident = point.transient = {};
    }
    keep_front(front.points, used_);
    if (front.points.size() > width_) front.points.resize(width_);
  }
  sum_up(front);
  return front;
}

// `query.open`: of everything but the block's calls without a model and the pair itself.
std::vector<FrontPoint> BlockFronts::paired(const Query& query, Chosen chosen) {
  PairQuery pairs{.block = query.block,
                  .gpus = query.gpus,
                  .rest = query.open,
                  .limit = query.limit,
                  .bytes = query.bytes};
  pairs.actors = std::move(chosen.own);
  pairs.rollouts = std::move(chosen.rollout);
  pairs.within = std::move(chosen.within);
  pairs.equal_tp = frame_.problem.equal_tp;
  pairs.alone = frame_.owners(query.block).size() == 1;
  pairs.rest += frame_.of_block(query.block, seen(query.block).fixed_seconds);
  if (width_ != kWhole) {
    pairs.most_actors = kQuickActors;
    pairs.most_pairs_each = kQuickPairs;
  }
  return pairs_of(frame_.iteration, fronts(query.block), pairs, pruned_);
}

Option BlockFronts::option_of(std::size_t block, Role role, int gpus, int index, double share) {
  Option option = fronts(block).option(role, gpus, index, frame_.apart);
  if (frame_.apart && role == Role::rollout && (share > 0 || views_.front() != views_[block])) {
    option.seconds[Phase::reshard] =
        fronts(block).option(role, gpus, index).seconds[Phase::reshard] +
        frame_.problem.evaluator.reshard_apart({views_.front(), share}, option.candidate);
  }
  return option;
}

std::vector<FrontPoint> BlockFronts::projected(const Query& query, Role role,
                                               const Selection& selection) {
  std::vector<FrontPoint> points;
  for (const int index : selection.options) {
    const Option option = option_of(query.block, role, query.gpus, index, query.share);
    FrontPoint& point = points.emplace_back();
    point.seconds = frame_.of_block(query.block, option.seconds);
    point.resident = option.resident;
    point.transient = option.transient;
    if (frame_.apart && role == Role::actor) {
      point.share = frame_.problem.evaluator.share_of(option.candidate);
    }
    point.option[0] = index;
  }
  keep_front(points, used_);
  return points;
}

// Every point with every addition that fits and may still beat the best plan.
std::vector<FrontPoint> BlockFronts::sums_of(const Query& query,
                                             const std::vector<FrontPoint>& points,
                                             const std::vector<FrontPoint>& additions,
                                             std::size_t position) {
  std::vector<FrontPoint> sums;
  for (const FrontPoint& point : points) {
    ChunkSeconds base = point.seconds;
    base += query.open;
    for (const FrontPoint& addition : additions) {
      const Bytes resident = point.resident + addition.resident;
      const Bytes transient = std::max(point.transient, addition.transient);
      if (resident + transient > query.bytes) continue;
      ChunkSeconds bound = base;
      bound += addition.seconds;
      if (frame_.step_seconds(bound) >= query.limit) {
        ++pruned_;
        if (used_ == 1) break;  // additions ascend
        continue;
      }
      FrontPoint& sum = sums.emplace_back(point);
      sum.seconds += addition.seconds;
      sum.resident = resident;
      sum.transient = transient;
      sum.option[position] = addition.option[0];
      sum.share = std::max(point.share, addition.share);
      if (position == 0) sum.rollout = addition.rollout;
    }
  }
  return sums;
}

}  // namespace tessera
