#include "planner/search/fronts.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "planner/plan/phase_seconds.h"
#include "planner/request/candidate.h"
#include "planner/space/layout_space.h"

namespace tessera {

FrontStore::FrontStore() : state_(std::make_unique<State>()) {}
FrontStore::~FrontStore() = default;

Fronts::Fronts(const SearchProblem& problem, FrontStore::State& store)
    : problem_(problem), lists_(store.lists) {
  for (const Role role : kEveryRole) {
    stored(role) = {
        &store.priced[{role, problem.settings[role]}],
        &store.bounds[{role, problem.settings[role], problem.layouts[role], problem.memory_limit}]};
  }
  RoleSettings rollout = problem.settings[Role::rollout];
  rollout.splits.reset();
  pool_shares_ = &store.pool_shares[{std::move(rollout), problem.layouts[Role::rollout]}];
  reshards_ = &store.reshards[{problem.settings[Role::actor], problem.settings[Role::rollout]}];
  for (const ScheduledCall& call : problem.schedule) phases_.push_back(call.phase);
}

// Prices nothing: most sizes are spare.
PoolShare Fronts::pool_share(int gpus) {
  const auto [entry, added] = pool_shares_->try_emplace(gpus, PoolShare::spare);
  PoolShare& share = entry->second;
  if (added) {
    for (const LayoutSpace& space : problem_.spaces(Role::rollout, gpus)) {
      if (allows(space.layout)) share = std::min(share, space.share);
    }
  }
  // Smaller pools may be none of those that are tried.
  return problem_.sizes.empty() ? share : std::min(share, PoolShare::uneven);
}

bool Fronts::paired(Role role, bool apart) const {
  return role == Role::actor && !apart &&
         std::find(problem_.roles.begin(), problem_.roles.end(), Role::rollout) !=
             problem_.roles.end();
}

// The layouts that the problem allows; those first that may be quickest.
std::vector<std::size_t> Fronts::by_hope(RoleOptions& all, Role role) {
  std::vector<std::pair<Seconds, std::size_t>> ordered;
  for (const int each : allowed(all, role, std::nullopt)) {
    const auto number = static_cast<std::size_t>(each);
    Seconds sum;
    if (hopes()) {
      const PhaseSeconds& glanced = glanced_in(all, number);
      sum = std::accumulate(glanced.begin(), glanced.end(), Seconds{});
    }
    ordered.emplace_back(sum, number);
  }
  std::sort(ordered.begin(), ordered.end());
  std::vector<std::size_t> numbers;
  for (const auto& [sum, number] : ordered) numbers.push_back(number);
  return numbers;
}

// A rollout's layouts are few: where there is less memory than prices hold for, they are looked at
// again. What a layout takes is worked out as far as it is less than what those before it take.
const PhaseSeconds& Fronts::bound(Role role, int gpus) {
  const auto [entry, added] = stored(role).bounds->least.try_emplace(gpus);
  PhaseSeconds& bound = entry->second;
  if (!added) return bound;
  bound.fill(kForever);
  RoleOptions& all = listed(role, gpus);
  for (const std::size_t number : by_hope(all, role)) {
    if (hopeless(all, number, bound)) continue;
    if (role != Role::rollout) {
      lower(bound, least_in(all, number));
    } else {
      LayoutOptions& layout = all.layouts[number];
      std::int64_t looked_at = 0;
      bound = least_of(layout.space, problem_.memory_limit, looked_at, bound);
      if (!std::exchange(layout.counted, true)) all.evaluated += looked_at;
    }
  }
  seen_[role][gpus].bounds = all.evaluated;
  return bound;
}

PhaseSeconds Fronts::hope(Role role, int gpus) {
  PhaseSeconds hope{};
  if (!hopes()) return hope;
  hope.fill(kForever);
  RoleOptions& all = listed(role, gpus);
  for (const int number : allowed(all, role, std::nullopt)) {
    lower(hope, glanced_in(all, static_cast<std::size_t>(number)));
  }
  return hope;
}

const PhaseSeconds& Fronts::bound(Role role, int gpus, const GroupDegrees& groups) {
  return bounds_by_groups(role, gpus).at(groups);
}

const GroupBounds& Fronts::bounds_by_groups(Role role, int gpus) {
  const auto [entry, added] = stored(role).bounds->by_groups.try_emplace(gpus);
  if (!added) return entry->second;
  RoleOptions& all = listed(role, gpus);
  for (const auto& [groups, layouts] : by_groups(all)) {
    PhaseSeconds least;
    least.fill(kForever);
    bool any = false;
    for (const int number : layouts) {
      const auto at = static_cast<std::size_t>(number);
      if (!allows(all.layouts[at].space.layout)) continue;
      if (!hopeless(all, at, least)) lower(least, least_in(all, at));
      any = true;
    }
    if (any) entry->second.emplace(groups, least);
  }
  return entry->second;
}

GroupBounds Fronts::bounds_alike(const std::vector<Role>& roles, int gpus) {
  GroupBounds sums = bounds_by_groups(roles.front(), gpus);
  for (std::size_t r = 1; r < roles.size() && !sums.empty(); ++r) {
    const GroupBounds& others = bounds_by_groups(roles[r], gpus);
    std::erase_if(sums, [&](const auto& sum) { return !others.contains(sum.first); });
    for (auto& [groups, seconds] : sums) seconds += others.at(groups);
  }
  return sums;
}

RoleOptions& Fronts::listed(Role role, int gpus) {
  auto [entry, added] = stored(role).priced->try_emplace(gpus);
  RoleOptions& all = entry->second;
  if (!added) return all;
  const std::vector<LayoutSpace> spaces = problem_.spaces(role, gpus);
  all.layouts.reserve(spaces.size());
  for (const LayoutSpace& space : spaces) all.layouts.push_back({.space = lists_.shared(space)});
  return all;
}

// Asked for where roles have their groups in common: many problems never do.
const LayoutsByGroups& Fronts::by_groups(RoleOptions& all) const {
  if (!all.by_groups.empty()) return all.by_groups;
  for (std::size_t number = 0; number < all.layouts.size(); ++number) {
    const Candidate& layout = all.layouts[number].space.layout;
    const GroupDegrees groups =
        problem_.alike_layouts ? layout_degrees(layout) : group_degrees(layout);
    all.by_groups[groups].push_back(static_cast<int>(number));
  }
  return all.by_groups;
}

// Numbers of the layouts that the problem allows, ascending.
std::vector<int> Fronts::allowed(RoleOptions& all, Role role,
                                 const std::optional<GroupDegrees>& groups) const {
  std::vector<int> numbers;
  if (groups) {
    const LayoutsByGroups& grouped = by_groups(all);
    const auto found = grouped.find(*groups);
    if (found != grouped.end()) numbers = found->second;
  } else {
    numbers.resize(all.layouts.size());
    std::iota(numbers.begin(), numbers.end(), 0);
  }
  const LayoutFilter& filter = problem_.layouts[role];
  std::erase_if(numbers, [&](int number) {
    return !filter(all.layouts[static_cast<std::size_t>(number)].space.layout);
  });
  return numbers;
}

// Numbers of the layouts that are wanted, ascending. `whole`: none was left out for their number.
// Where few are wanted those come first that may have the shortest steps, and the others are not
// looked at.
std::vector<int> Fronts::wanted(RoleOptions& all, const LayoutQuery& query, bool& whole) {
  std::vector<std::pair<Seconds, int>> glanced, below;
  for (const int number : allowed(all, query.role, query.groups)) {
    const Seconds step =
        hopes() ? query.step(glanced_in(all, static_cast<std::size_t>(number))) : -kForever;
    if (step < query.limit) glanced.emplace_back(step, number);
  }
  const bool few = query.most < glanced.size();
  if (few) std::sort(glanced.begin(), glanced.end());
  for (const auto& [glance, number] : glanced) {
    if (below.size() > query.most && glance > below[query.most - 1].first) break;
    const auto at = static_cast<std::size_t>(number);
    if (hopes() && query.step(hoped_in(all, at)) >= query.limit) continue;
    const std::pair<Seconds, int> next{query.step(least_in(all, at)), number};
    if (next.first >= query.limit) continue;
    below.insert(few ? std::upper_bound(below.begin(), below.end(), next) : below.end(), next);
  }
  whole = below.size() <= query.most;
  if (!whole) below.resize(query.most);
  std::vector<int> layouts;
  for (const auto& [seconds, layout] : below) layouts.push_back(layout);
  std::sort(layouts.begin(), layouts.end());
  return layouts;
}

Selection Fronts::select(const LayoutQuery& query) {
  RoleOptions& all = listed(query.role, query.gpus);
  bool whole = true;
  const bool lazily = !query.beaten && hopes() && query.most >= all.layouts.size();
  const std::vector<PartNumber> parts =
      lazily ? unbeaten_parts(all, query) : priced_parts(all, query, wanted(all, query, whole));
  Selection selection = options_that_fit(query.role, query.gpus, parts);
  selection.whole = whole;
  return selection;
}

Selection Fronts::select(Role role, int gpus, int layout) {
  RoleOptions& all = listed(role, gpus);
  return options_that_fit(role, gpus, priced_parts(all, {.role = role, .gpus = gpus}, {layout}));
}

std::vector<LayoutBound> Fronts::bounds_by_layout(Role role, int gpus) {
  RoleOptions& all = listed(role, gpus);
  std::vector<LayoutBound> bounds;
  for (const int number : allowed(all, role, std::nullopt)) {
    const auto at = static_cast<std::size_t>(number);
    bounds.push_back({number, hopes() ? hoped_in(all, at) : least_in(all, at)});
  }
  return bounds;
}

const PhaseSeconds& Fronts::least_of_layout(Role role, int gpus, int layout) {
  return least_in(listed(role, gpus), static_cast<std::size_t>(layout));
}

// Alone.
bool Fronts::fits(const Option& option) const {
  return option.resident + std::max(option.transient, option.in_reshard) <= problem_.memory_limit;
}

Selection Fronts::options_that_fit(Role role, int gpus, const std::vector<PartNumber>& parts) {
  RoleOptions& all = listed(role, gpus);
  Seen& seen = seen_[role][gpus];
  seen.bounds = all.evaluated;
  Selection selection;
  selection.least.fill(kForever);
  selection.least_resident = selection.least_transient = problem_.memory_limit;
  for (auto part = parts.begin(); part != parts.end();) {
    const int number = part->layout;
    const LayoutOptions& layout = all.layouts[static_cast<std::size_t>(number)];
    seen.layouts[number] = layout.space.size();
    std::vector<bool> wanted(layout.prices->parts.size());
    for (; part != parts.end() && part->layout == number; ++part) {
      wanted[static_cast<std::size_t>(part->part)] = true;
    }
    for (const int index : layout.prices->options) {
      const Option& option = all.options[static_cast<std::size_t>(index)];
      if (!wanted[static_cast<std::size_t>(option.place.part)] || !fits(option)) continue;
      lower(selection.least, option.seconds);
      selection.least_resident = std::min(selection.least_resident, option.resident);
      selection.least_transient = std::min(selection.least_transient, option.transient);
      selection.options.push_back(index);
    }
  }
  return selection;
}

const Option& Fronts::option(Role role, int gpus, int index) {
  return stored(role).priced->at(gpus).options[static_cast<std::size_t>(index)];
}

Option Fronts::option(Role role, int gpus, int index, bool apart) {
  Option option = this->option(role, gpus, index);
  if (!apart || (role != Role::actor && role != Role::rollout)) return option;
  option.transient = std::max(option.transient, option.in_reshard);
  if (role == Role::rollout) {
    option.seconds[Phase::reshard] +=
        problem_.evaluator.reshard_apart({.view = option.candidate.view}, option.candidate);
  }
  return option;
}

Seconds Fronts::reshard_seconds(int gpus, const Option& actor, const Option& rollout) {
  auto& by_actor = (*reshards_)[gpus];
  if (by_actor.empty()) by_actor.resize(listed(Role::actor, gpus).layouts.size());
  std::vector<Seconds>& by_rollout = by_actor[static_cast<std::size_t>(actor.place.layout)];
  if (by_rollout.empty()) {
    by_rollout.assign(listed(Role::rollout, gpus).layouts.size(), Seconds{-1});
  }
  Seconds& seconds = by_rollout[static_cast<std::size_t>(rollout.place.layout)];
  if (seconds < 0) {
    seconds = problem_.evaluator.reshard_seconds(actor.candidate, rollout.candidate, true);
  }
  return seconds;
}

std::int64_t Fronts::evaluated() const {
  std::int64_t sum = 0;
  for (const auto& by_gpus : seen_) {
    for (const auto& [gpus, seen] : by_gpus) {
      sum += seen.bounds;
      for (const auto& [layout, candidates] : seen.layouts) sum += candidates;
    }
  }
  return sum;
}

}  // namespace tessera
