#include "planner/search/fronts.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "planner/plan/phase_seconds.h"
#include "planner/request/candidate.h"
#include "planner/search/pareto.h"
#include "planner/search/token_limits.h"
#include "planner/space/layout_space.h"

namespace tessera {
namespace {

// True when a candidate with `batch` needs no fewer bytes than one with `other` that differs in
// nothing else: a multiple of its tokens (there are as many times fewer micro-batches, or more of
// them), or more slots.
bool needs_no_less(Role role, const BatchLimit& batch, const BatchLimit& other) {
  return role == Role::rollout ? batch.max_sequences >= other.max_sequences
                               : batch.tokens % other.tokens == 0;
}

// False where no candidate is behind the bound: it is infinite in every phase.
bool possible(const PhaseSeconds& bound) {
  return std::any_of(bound.begin(), bound.end(),
                     [](Seconds seconds) { return seconds < kForever; });
}

}  // namespace

FrontStore::FrontStore() : state_(std::make_unique<State>()) {}
FrontStore::~FrontStore() = default;

Fronts::Fronts(const SearchProblem& problem, FrontStore::State& store)
    : problem_(problem), lists_(store.lists) {
  for (const Role role : kEveryRole) {
    FrontStore::State::BoundKey key{.role = role, .settings = problem.settings[role]};
    key.layouts = problem.layouts[role];
    key.memory_limit = problem.memory_limit;
    if (role == Role::actor) {
      key.rollout_settings = problem.settings[Role::rollout];
      key.rollout_layouts = problem.layouts[Role::rollout];
    }
    stored(role) = {&store.priced[{role, problem.settings[role]}], &store.bounds[key],
                    &store.group_bounds[key]};
  }
  reshards_ = &store.reshards[{problem.settings[Role::actor], problem.settings[Role::rollout]}];
  for (const ScheduledCall& call : problem.schedule) phases_.push_back(call.phase);
}

// Prices nothing: most sizes are spare.
PoolShare Fronts::pool_share(int gpus) {
  const auto [entry, added] = pool_shares_.try_emplace(gpus, PoolShare::spare);
  if (!added) return entry->second;
  for (const LayoutSpace& space : problem_.spaces(Role::rollout, gpus)) {
    if (allows(space.layout)) entry->second = std::min(entry->second, space.share);
  }
  // Smaller pools may be none of those that are tried.
  if (!problem_.sizes.empty()) entry->second = std::min(entry->second, PoolShare::uneven);
  return entry->second;
}

bool Fronts::paired(Role role, bool apart) const {
  return role == Role::actor && !apart &&
         std::find(problem_.roles.begin(), problem_.roles.end(), Role::rollout) !=
             problem_.roles.end();
}

const PhaseSeconds& Fronts::bound(Role role, int gpus, bool apart) {
  auto [entry, added] = stored(role).bounds->try_emplace({gpus, apart});
  if (!added) return entry->second;
  entry->second = bound(role, gpus);
  // Where it cannot be at all, a rollout beside it changes nothing.
  if (possible(entry->second) && paired(role, apart)) entry->second += bound(Role::rollout, gpus);
  return entry->second;
}

// A rollout's layouts are few: where there is less memory than prices hold for, they are looked at
// again. What one of them takes is worked out as far as it is less than what those before it take;
// larger tensor parallel groups, which are listed last, decode most quickly.
PhaseSeconds Fronts::bound(Role role, int gpus) {
  PhaseSeconds bound;
  bound.fill(kForever);
  RoleOptions& all = listed(role, gpus);
  for (std::size_t number = all.layouts.size(); number-- > 0;) {
    LayoutOptions& layout = all.layouts[number];
    if (!allows(layout.space.layout)) continue;
    if (role != Role::rollout) {
      lower(bound, least_in(all, number));
    } else {
      std::int64_t looked_at = 0;
      bound = least_of(layout.space, problem_.memory_limit, looked_at, bound);
      if (!std::exchange(layout.counted, true)) all.evaluated += looked_at;
    }
  }
  seen_[role][gpus].bounds = all.evaluated;
  return bound;
}

const GroupBounds& Fronts::bounds_by_groups(Role role, int gpus, bool apart) {
  auto [entry, added] = stored(role).group_bounds->try_emplace({gpus, apart});
  if (!added) return entry->second;
  RoleOptions& all = listed(role, gpus);
  PhaseSeconds beside;
  beside.fill({});
  if (!all.layouts.empty() && paired(role, apart)) beside = bound(Role::rollout, gpus);
  for (const auto& [groups, layouts] : by_groups(all)) {
    PhaseSeconds least;
    least.fill(kForever);
    bool any = false;
    for (const int number : layouts) {
      const auto at = static_cast<std::size_t>(number);
      if (!allows(all.layouts[at].space.layout)) continue;
      lower(least, least_in(all, at));
      any = true;
    }
    if (!any) continue;
    least += beside;
    entry->second.emplace(groups, least);
  }
  return entry->second;
}

GroupBounds Fronts::bounds_alike(const std::vector<Role>& roles, int gpus, bool apart) {
  GroupBounds sums = bounds_by_groups(roles.front(), gpus, apart);
  for (std::size_t r = 1; r < roles.size() && !sums.empty(); ++r) {
    const GroupBounds& others = bounds_by_groups(roles[r], gpus, apart);
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

// Worked out for the layouts that a search may use: fixed degrees leave few.
const PhaseSeconds& Fronts::least_in(RoleOptions& all, std::size_t number) {
  LayoutOptions& layout = all.layouts[number];
  if (std::exchange(layout.bounded, true)) return layout.least;
  std::int64_t looked_at = 0;
  PhaseSeconds none;
  none.fill(kForever);
  layout.least = least_of(layout.space, priced_limit(), looked_at, none);
  if (!std::exchange(layout.counted, true)) all.evaluated += looked_at;
  return layout.least;
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
std::vector<int> Fronts::wanted(RoleOptions& all, const LayoutQuery& query, bool& whole) {
  std::vector<std::pair<Seconds, int>> below;
  for (const int number : allowed(all, query.role, query.groups)) {
    const Seconds seconds = query.step(least_in(all, static_cast<std::size_t>(number)));
    if (seconds < query.limit) below.emplace_back(seconds, number);
  }
  whole = below.size() <= query.most;
  if (!whole) {
    std::sort(below.begin(), below.end());
    below.resize(query.most);
  }
  std::vector<int> layouts;
  for (const auto& [seconds, layout] : below) layouts.push_back(layout);
  std::sort(layouts.begin(), layouts.end());
  std::erase_if(layouts, [&](int number) {
    return !may_stay_below(all.layouts[static_cast<std::size_t>(number)], query);
  });
  return layouts;
}

Selection Fronts::select(const LayoutQuery& query) {
  RoleOptions& all = listed(query.role, query.gpus);
  bool whole = true;
  const std::vector<int> layouts = wanted(all, query, whole);
  Selection selection = options_that_fit(query.role, query.gpus, layouts);
  selection.whole = whole;
  return selection;
}

Selection Fronts::select(Role role, int gpus, int layout) {
  return options_that_fit(role, gpus, {layout});
}

std::vector<LayoutBound> Fronts::bounds_by_layout(Role role, int gpus) {
  RoleOptions& all = listed(role, gpus);
  std::vector<LayoutBound> bounds;
  for (const int number : allowed(all, role, std::nullopt)) {
    bounds.push_back({number, least_in(all, static_cast<std::size_t>(number))});
  }
  return bounds;
}

Selection Fronts::options_that_fit(Role role, int gpus, const std::vector<int>& layouts) {
  RoleOptions& all = listed(role, gpus);
  Seen& seen = seen_[role][gpus];
  seen.bounds = all.evaluated;
  price(role, gpus, layouts);
  Selection selection;
  selection.least.fill(kForever);
  selection.least_resident = problem_.memory_limit;
  for (const int l : layouts) {
    const LayoutOptions& layout = all.layouts[static_cast<std::size_t>(l)];
    seen.layouts[l] = layout.space.size();
    for (int index = layout.first_option; index < layout.first_option + layout.options; ++index) {
      const Option& option = all.options[static_cast<std::size_t>(index)];
      if (option.resident + std::max(option.transient, option.in_reshard) > problem_.memory_limit) {
        continue;
      }
      lower(selection.least, option.seconds);
      selection.least_resident = std::min(selection.least_resident, option.resident);
      selection.options.push_back(index);
    }
  }
  return selection;
}

// Prices all candidates of the layouts that have no prices yet.
void Fronts::price(Role role, int gpus, const std::vector<int>& layouts) {
  RoleOptions& all = stored(role).priced->at(gpus);
  std::vector<Option> fresh;
  for (const int number : layouts) {
    LayoutOptions& layout = all.layouts[static_cast<std::size_t>(number)];
    if (std::exchange(layout.priced, true)) continue;
    const std::vector<Option> own = options_of(layout.space, number);
    layout.first_option = static_cast<int>(all.options.size() + fresh.size());
    layout.options = static_cast<int>(own.size());
    fresh.insert(fresh.end(), own.begin(), own.end());
  }
  if (fresh.empty()) return;
  all.options.reserve(all.options.size() + fresh.size());  // no more than there are
  all.options.insert(all.options.end(), fresh.begin(), fresh.end());
}

void Fronts::add_option(const Candidate& candidate, const RoleCost& cost, int layout,
                        std::vector<Option>& options) const {
  if (std::max(cost.peak, cost.in_reshard) > priced_limit()) return;
  options.push_back({candidate, cost.seconds, cost.resident, cost.peak - cost.resident,
                     cost.in_reshard - cost.resident, layout});
}

std::vector<Option> Fronts::options_of(const SharedSpace& space, int number) const {
  const Bytes limit = priced_limit();
  std::vector<Option> options;
  std::vector<Limited> priced;
  for (const MemoryChoice& choice : space.choices) {
    std::vector<BatchLimit> refused;
    priced.clear();
    for (const BatchLimit& batch : space.batches) {
      if (std::any_of(refused.begin(), refused.end(), [&](const BatchLimit& other) {
            return needs_no_less(space.layout.role, batch, other);
          })) {
        continue;
      }
      const Candidate candidate = space.at(choice, batch);
      const RoleCost cost = problem_.evaluator.role(candidate);
      if (!fits_somewhere(cost, space.limits_apart, limit)) {
        if (!cost.may_shrink) refused.push_back(batch);
      } else if (space.limits_apart && states_bytes(cost)) {
        priced.push_back({candidate, cost});
      } else {
        add_option(candidate, cost, number, options);
      }
    }
    for (const Limited& each : combine_limits(priced, limit)) {
      add_option(each.candidate, each.cost, number, options);
    }
  }
  keep_best(options);
  return options;
}

const Option& Fronts::option(Role role, int gpus, int index) {
  return stored(role).priced->at(gpus).options[static_cast<std::size_t>(index)];
}

Option Fronts::option(Role role, int gpus, int index, bool apart) {
  Option option = this->option(role, gpus, index);
  if (!apart || (role != Role::actor && role != Role::rollout)) return option;
  option.transient = std::max(option.transient, option.in_reshard);
  if (role == Role::rollout) {
    Candidate source;
    source.view = option.candidate.view;
    option.seconds[Phase::reshard] +=
        problem_.evaluator.reshard_seconds(source, option.candidate, false);
  }
  return option;
}

Seconds Fronts::reshard_seconds(int gpus, const Option& actor, const Option& rollout) {
  auto& by_actor = (*reshards_)[gpus];
  if (by_actor.empty()) by_actor.resize(listed(Role::actor, gpus).layouts.size());
  std::vector<Seconds>& by_rollout = by_actor[static_cast<std::size_t>(actor.layout)];
  if (by_rollout.empty()) {
    by_rollout.assign(listed(Role::rollout, gpus).layouts.size(), Seconds{-1});
  }
  Seconds& seconds = by_rollout[static_cast<std::size_t>(rollout.layout)];
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

// Keeps the undominated options of one layout, which also differ in what they need while weights
// move.
void Fronts::keep_best(std::vector<Option>& options) const {
  std::vector<Phase> used;
  for (const Phase phase : phases_) {
    const bool any = std::any_of(options.begin(), options.end(),
                                 [&](const Option& option) { return option.seconds[phase] != 0; });
    if (any) used.push_back(phase);
  }
  std::vector<FrontPoint> points;
  for (std::size_t i = 0; i < options.size(); ++i) {
    FrontPoint& point = points.emplace_back();
    for (std::size_t p = 0; p < used.size(); ++p) {
      point.seconds[ChunkIndex{p}] = options[i].seconds[used[p]];
    }
    point.resident = options[i].resident;
    point.transient = options[i].transient;
    point.in_reshard = options[i].in_reshard;
    point.option[0] = static_cast<int>(i);
  }
  keep_front(points, static_cast<int>(used.size()));
  std::vector<Option> kept;
  for (const FrontPoint& point : points) {
    kept.push_back(options[static_cast<std::size_t>(point.option[0])]);
  }
  options = std::move(kept);
}

}  // namespace tessera
