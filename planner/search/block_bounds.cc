#include "planner/search/block_bounds.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace tessera {
namespace {

constexpr int kRounds = 8;  // of tightening: later ones bring little

}  // namespace

// Blocks with a rollout, which often takes most of a step, come first: where one cannot be, no
// block need be bounded.
BlockBounds::BlockBounds(const PlacementFrame& frame)
    : frame_(frame), bounds_(frame.blocks(), std::vector<Bounds>(frame.views())) {
  std::vector<std::size_t> blocks(frame.blocks());
  std::iota(blocks.begin(), blocks.end(), std::size_t{0});
  std::stable_partition(blocks.begin(), blocks.end(),
                        [&](std::size_t block) { return has_rollout(block); });
  for (const std::size_t block : blocks) {
    bool viable = false;
    ChunkSeconds least;
    least.fill(kForever);
    for (std::size_t view = 0; view < frame.views(); ++view) {
      bound(block, static_cast<int>(view));
      if (bounds_[block][view].viable.empty()) continue;
      viable = true;
      lower(least, bounds_[block][view].least_up_to.back());
    }
    if (!viable) return;
    beside_ += least;
  }
}

bool BlockBounds::has_rollout(std::size_t block) const {
  const std::vector<Role>& roles = frame_.placement[block];
  return std::find(roles.begin(), roles.end(), Role::rollout) != roles.end();
}

// Roles with common group degrees have the least of what they take together with any of these.
// Where the roles so far leave no step that is looked for the others are not asked; a rollout,
// whose bound takes longest, comes last, and counts as what it may hope for until then. What takes
// no less than the limit beside the blocks that are bounded already is as good as forever.
ChunkSeconds BlockBounds::least_of_roles(std::size_t block, int view, int size) const {
  Fronts& fronts = frame_.fronts.of(view);
  const Bill bill{size, frame_.least_billed(view, size)};
  const Seconds limit = frame_.problem.better_than.step_limit(frame_.problem.objective, bill);
  const std::vector<Role> sharing = frame_.sharing(block);
  ChunkSeconds together{};
  if (!sharing.empty()) {
    together.fill(kForever);
    for (const auto& [groups, seconds] : fronts.bounds_alike(sharing, size)) {
      lower(together, frame_.of_block(block, seconds));
    }
  }
  std::vector<Role> others = frame_.placement[block];
  std::erase_if(others, [&](Role role) {
    return std::find(sharing.begin(), sharing.end(), role) != sharing.end();
  });
  std::stable_partition(others.begin(), others.end(),
                        [](Role role) { return role != Role::rollout; });
  PhaseSeconds alone{};
  ChunkSeconds sum = together, hoped{};
  if (!others.empty() && !fronts.any(others.front(), size)) {
    sum.fill(kForever);
    return sum;
  }
  if (limit < kForever && others.size() > 1 && others.back() == Role::rollout) {
    hoped = frame_.of_block(block, fronts.hope(Role::rollout, size));
  }
  for (const Role role : others) {
    ChunkSeconds least = sum;
    if (role != Role::rollout) least += hoped;
    if (step_beside(beside_, least) >= limit) {
      sum = least;
      break;
    }
    alone += fronts.bound(role, size);
    sum = together;
    sum += frame_.of_block(block, alone);
  }
  if (step_beside(beside_, sum) >= limit) sum.fill(kForever);
  return sum;
}

// They include the calls without a model.
void BlockBounds::bound(std::size_t block, int view) {
  ChunkSeconds least;
  least.fill(kForever);
  Bounds& all = bounds_[block][static_cast<std::size_t>(view)];
  const ChunkSeconds fixed = frame_.of_block(block, frame_.fronts.problem(view).fixed_seconds);
  for (std::size_t s = 0; s < frame_.sizes.size() && frame_.sizes[s] <= frame_.gpus; ++s) {
    ChunkSeconds here = fixed;
    const bool needed = !frame_.rollout_alone(block) ||
                        frame_.fronts.of(view).pool_share(frame_.sizes[s]) != PoolShare::spare;
    if (needed && fits_view(frame_.problem.cluster, frame_.sizes[s], view)) {
      here += least_of_roles(block, view, frame_.sizes[s]);
    } else {
      here.fill(kForever);
    }
    lower(least, here);
    all.rollouts.push_back({.layouts = {}, .least = here});
    all.least_at.push_back(here);
    all.least_up_to.push_back(least);
    if (*std::max_element(here.begin(), here.end()) < kForever) {
      all.viable.push_back(static_cast<int>(s));
    }
  }
}

// Least seconds of a block on at most `most` GPUs; nullptr where it cannot be so small.
const ChunkSeconds* BlockBounds::least_within(std::size_t block, int view, int most) const {
  const Bounds& all = of(block, view);
  const auto end = std::upper_bound(frame_.sizes.begin(), frame_.sizes.end(), most);
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(end - frame_.sizes.begin()),
                                           all.least_up_to.size());
  if (all.viable.empty() || count <= static_cast<std::size_t>(all.viable.front())) return nullptr;
  return &all.least_up_to[count - 1];
}

// The least size with which a block beside `others` stays below the limit, if it does so on `most`.
int BlockBounds::least_size(std::size_t block, int view, const ChunkSeconds& others, int most,
                            Seconds limit) const {
  const Bounds& all = of(block, view);
  const auto within = [&](int index) {
    ChunkSeconds seconds = others;
    seconds += all.least_up_to[static_cast<std::size_t>(index)];
    return frame_.step_seconds(seconds) < limit;
  };
  const auto first = std::partition_point(all.viable.begin(), all.viable.end(), [&](int index) {
    return frame_.sizes[static_cast<std::size_t>(index)] < most && !within(index);
  });
  return first == all.viable.end() ? most : frame_.sizes[static_cast<std::size_t>(*first)];
}

std::optional<BlockBounds::Shares> BlockBounds::together(const std::vector<std::size_t>& open,
                                                         const std::vector<int>& views, int left,
                                                         const ChunkSeconds& fixed,
                                                         Seconds limit) const {
  Shares shares;
  for (const std::size_t block : open) {
    const std::vector<int>& sizes = viable(block, views[block]);
    if (sizes.empty()) return std::nullopt;
    shares.smallest.push_back(frame_.sizes[static_cast<std::size_t>(sizes.front())]);
  }
  shares.largest.assign(open.size(), std::numeric_limits<int>::max());
  std::vector<const ChunkSeconds*> parts(open.size());
  for (int round = 1;; ++round) {
    const int needed = std::accumulate(shares.smallest.begin(), shares.smallest.end(), 0);
    bool tighter = false;
    shares.least = {};
    for (std::size_t i = 0; i < open.size(); ++i) {
      const int room = left - (needed - shares.smallest[i]);
      tighter = tighter || room < shares.largest[i];
      shares.largest[i] = room;
      parts[i] = least_within(open[i], views[open[i]], room);
      if (parts[i] == nullptr) return std::nullopt;
      shares.least += *parts[i];
    }
    ChunkSeconds all = fixed;
    all += shares.least;
    if (frame_.step_seconds(all) >= limit) return std::nullopt;
    if (!tighter || limit == kForever || round == kRounds) return shares;
    for (std::size_t i = 0; i < open.size(); ++i) {
      ChunkSeconds others = all;
      others -= *parts[i];
      const int size = least_size(open[i], views[open[i]], others, shares.largest[i], limit);
      shares.smallest[i] = std::max(shares.smallest[i], size);
    }
  }
}

// To what is known of the layout's candidates, then to their prices. It includes the calls without
// a model.
void BlockBounds::tighten(std::size_t block, int view, int size, OfLayout& layout) const {
  Fronts& fronts = frame_.fronts.of(view);
  if (layout.of == OfLayout::Of::hope) {
    layout.of = OfLayout::Of::bound;
    layout.least =
        frame_.of_block(block, fronts.least_of_layout(Role::rollout, size, layout.layout));
  } else {
    layout.of = OfLayout::Of::options;
    layout.least.fill(kForever);
    for (const int index : fronts.select(Role::rollout, size, layout.layout).options) {
      const Option option = fronts.option(Role::rollout, size, index, frame_.apart);
      lower(layout.least, frame_.of_block(block, option.seconds));
    }
  }
  layout.least += frame_.of_block(block, frame_.fronts.problem(view).fixed_seconds);
}

Seconds BlockBounds::step_beside(const ChunkSeconds& others, const ChunkSeconds& own) const {
  ChunkSeconds seconds = others;
  seconds += own;
  return frame_.step_seconds(seconds);
}

// Tightens the layout with the shortest step beside `others`, of a rollout that is alone in its
// block; false where it is priced already. `steps`: of each layout; empty = not known yet.
bool BlockBounds::tighten_next(std::size_t block, int view, int size_index,
                               const ChunkSeconds& others, std::vector<Seconds>& steps) {
  const auto at = static_cast<std::size_t>(size_index);
  const int size = frame_.sizes[at];
  OfRollout& all = bounds_[block][static_cast<std::size_t>(view)].rollouts[at];
  if (all.layouts.empty()) {
    const ChunkSeconds fixed = frame_.of_block(block, frame_.fronts.problem(view).fixed_seconds);
    for (const auto& [layout, least] :
         frame_.fronts.of(view).bounds_by_layout(Role::rollout, size)) {
      all.layouts.push_back({layout, frame_.of_block(block, least)});
      all.layouts.back().least += fixed;
    }
  }
  if (steps.empty()) {
    for (const OfLayout& layout : all.layouts) steps.push_back(step_beside(others, layout.least));
  }
  const auto shortest = std::min_element(steps.begin(), steps.end());
  OfLayout& next = all.layouts[static_cast<std::size_t>(shortest - steps.begin())];
  if (next.of == OfLayout::Of::options) return false;
  tighten(block, view, size, next);
  *shortest = step_beside(others, next.least);
  all.least.fill(kForever);
  for (const OfLayout& layout : all.layouts) lower(all.least, layout.least);
  // Hopes are less than what is known of all layouts together.
  std::transform(all.least.begin(), all.least.end(), least_at(block, view, size_index).begin(),
                 all.least.begin(), [](Seconds a, Seconds b) { return std::max(a, b); });
  return true;
}

// Sizes with the shortest steps first, until the best layout of one is priced: the others count as
// their bounds.
std::optional<ChunkSeconds> BlockBounds::least_settled(std::size_t block, int view, int most,
                                                       const ChunkSeconds& others, Limits limits) {
  using Size = std::pair<Seconds, int>;  // step, index
  const auto own = [&](int index) -> const ChunkSeconds& {
    return of(block, view).rollouts[static_cast<std::size_t>(index)].least;
  };
  std::vector<Size> sizes;
  const auto add = [&](int index) {
    const Seconds step = step_beside(others, own(index));
    if (step < limits.step) sizes.emplace_back(step, index);
  };
  for (const int index : viable(block, view)) {
    const int size = frame_.sizes[static_cast<std::size_t>(index)];
    if (size > most) break;
    const bool even = frame_.fronts.of(view).pool_share(size) == PoolShare::even;
    if (even || step_beside(others, least_at(block, view, index)) < limits.uneven) add(index);
  }
  std::map<int, std::vector<Seconds>> steps;  // of layouts, by index of the size
  while (!sizes.empty()) {
    const auto least = std::min_element(sizes.begin(), sizes.end());
    const int index = least->second;
    if (!tighten_next(block, view, index, others, steps[index])) break;
    sizes.erase(least);
    add(index);
  }
  if (sizes.empty()) return std::nullopt;
  ChunkSeconds all;
  all.fill(kForever);
  for (const auto& [step, index] : sizes) lower(all, own(index));
  return all;
}

std::optional<ChunkSeconds> BlockBounds::settled(const std::vector<std::size_t>& open,
                                                 const std::vector<int>& views,
                                                 const Shares& shares, const ChunkSeconds& fixed,
                                                 Limits limits) {
  if (limits.step == kForever) return shares.least;
  ChunkSeconds sum{};
  for (std::size_t i = 0; i < open.size(); ++i) {
    const std::size_t block = open[i];
    const int view = views[block], most = shares.largest[i];
    std::optional<ChunkSeconds> own = *least_within(block, view, most);
    if (frame_.rollout_alone(block)) {
      ChunkSeconds others = fixed;
      for (std::size_t other = 0; other < open.size(); ++other) {
        if (other == i) continue;
        others += *least_within(open[other], views[open[other]], shares.largest[other]);
      }
      own = least_settled(block, view, most, others, limits);
      if (!own) return std::nullopt;
    }
    sum += *own;
  }
  return sum;
}

}  // namespace tessera
