// Bounds and priced options of every (role, GPUs), worked out once and kept.
//
// Layout by layout: first the least seconds that any of its candidates could take, and only for
// layouts that a search asks for the prices of their candidates, of those that hold alike together.
// Both are kept per setting of a role (SearchProblem::settings); which layouts a search allows is
// applied afterwards, so that searches that differ in it share them. Options that another of the
// same layout beats in everything are dropped: they could win nowhere. One thread.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/engines/group_degrees.h"
#include "planner/plan/phase_seconds.h"
#include "planner/request/candidate.h"
#include "planner/search/exact.h"
#include "planner/space/layout_space.h"

namespace tessera {

/// A layout's number, and that of a part of its candidates among its parts.
struct PartNumber {
  int layout = 0, part = 0;
  auto operator<=>(const PartNumber&) const = default;
};

/// A role's way to run on a number of GPUs.
struct Option {
  Candidate candidate;
  PhaseSeconds seconds{};
  Bytes resident, transient, in_reshard;  // the last two: on top of resident
  PartNumber place;                       // among the role's layouts on these GPUs
};

struct LayoutOptions {
  SharedSpace space;
  PhaseSeconds least{};  // that no candidate falls short of, worked out without the ways to save
                         // memory, which only take time
  /// Of `least`: that it is as much as is known before candidates are priced, or what is quickly
  /// told, which is less, or told at a glance, which is less again.
  enum class Known { nothing, glanced, hoped, least } known = Known::nothing;
  bool counted = false;  // the candidates behind it are in RoleOptions::evaluated
  /// Candidates that hold alike between calls.
  struct Part {
    MemoryChoice choice;       // without recomputation
    bool known = false;        // what is known before they are priced:
    SearchProblem::Held held;  // at least
    PhaseSeconds least{};      // likewise
    bool priced = false;
  };
  struct Prices {
    std::vector<Part> parts;   // in the order of the choices, without those that hold too much
    std::vector<int> options;  // indices into RoleOptions::options: of priced parts, the best ones
  };
  std::unique_ptr<Prices> prices;  // once asked for
};

/// Numbers of layouts, ascending.
using LayoutsByGroups = std::map<GroupDegrees, std::vector<int>>;

/// All that is known of one (role, GPUs); layouts in the problem's order.
struct RoleOptions {
  std::vector<LayoutOptions> layouts;
  std::vector<Option> options;  // in the order in which they were priced
  std::int64_t evaluated = 0;   // candidates behind the layouts' least seconds
  LayoutsByGroups by_groups;    // once asked for
};

/// Whether candidates that choose so, alike in all else, hold as much between calls.
inline bool holds_alike(const MemoryChoice& a, const MemoryChoice& b) {
  return a.zero == b.zero && a.offload == b.offload;
}

/// True where no phase of the first takes less than the other's.
inline bool none_less(const PhaseSeconds& seconds, const PhaseSeconds& least) {
  return std::none_of(kEveryPhase.begin(), kEveryPhase.end(),
                      [&](Phase phase) { return seconds[phase] < least[phase]; });
}

/// Least seconds by the degrees that layouts have for their process groups.
using GroupBounds = std::map<GroupDegrees, PhaseSeconds>;

/// Options of some layouts, and the least of each coordinate among them.
struct Selection {
  std::vector<int> options;  // indices into RoleOptions::options
  PhaseSeconds least{};      // infinite where there is no option
  Bytes least_resident, least_transient;
  bool whole = true;  // no layout was left out for their number
};

/// The least seconds of the layout with this number.
struct LayoutBound {
  int layout = 0;
  PhaseSeconds least{};
};

/// Which layouts' options are wanted.
struct LayoutQuery {
  Role role = Role::actor;
  int gpus = 0;
  /// Of the step, with a layout's least seconds; and with those of a part of it (empty: all parts
  /// are wanted).
  std::function<Seconds(const PhaseSeconds&)> step;
  std::function<Seconds(const PhaseSeconds&, const SearchProblem::Held&)> step_beside = {};
  Seconds limit;  // that both have to stay below
  /// Whether options are wanted that others beat in their seconds and, where other roles share the
  /// ranks, in what they hold and need.
  bool beaten = true;
  bool alone = false;      // no other role shares the ranks
  bool sends = false;      // an actor whose rollout is elsewhere: its busiest sender counts
  Bytes transient_beside;  // that the ranks' other roles need anyway: as much is as good as none
  std::size_t most = 0;    // layouts, those with the shortest steps
  std::optional<GroupDegrees> groups = std::nullopt;  // that they have, where they are stated
};

struct FrontStore::State {
  SharedLists lists;                          // of all layouts
  using Priced = std::map<int, RoleOptions>;  // by GPUs
  std::map<std::pair<Role, RoleSettings>, Priced> priced;
  /// What a role's bounds depend on.
  struct BoundKey {
    Role role = Role::actor;
    RoleSettings settings;
    LayoutFilter layouts;
    Bytes memory_limit;
    auto operator<=>(const BoundKey&) const = default;
  };
  /// Of the role alone, by GPUs.
  struct Bounds {
    std::map<int, PhaseSeconds> least;
    std::map<int, GroupBounds> by_groups;
  };
  std::map<BoundKey, Bounds> bounds;
  using PoolShares = std::map<int, PoolShare>;  // by GPUs
  /// Of a rollout with these settings (whatever was split) and layouts.
  std::map<std::pair<RoleSettings, LayoutFilter>, PoolShares> pool_shares;
  /// By GPUs, the seconds of a reshard on shared ranks by layout of the actor, then of the rollout;
  /// negative: not worked out yet.
  using Reshards = std::map<int, std::vector<std::vector<Seconds>>>;
  std::map<std::pair<RoleSettings, RoleSettings>, Reshards> reshards;  // of actor and rollout
};

class Fronts {
 public:
  Fronts(const SearchProblem& problem, FrontStore::State& store);

  /// True where the role has layouts on so many GPUs.
  bool any(Role role, int gpus) { return !listed(role, gpus).layouts.empty(); }
  /// No more than the least seconds of each phase over all options.
  const PhaseSeconds& bound(Role role, int gpus);
  /// No more than these, and sooner known: whatever memory options need.
  PhaseSeconds hope(Role role, int gpus);
  /// The same over the options with these group degrees; some must have them.
  const PhaseSeconds& bound(Role role, int gpus, const GroupDegrees& groups);
  /// The sums of these over `roles` (one or more), by the degrees that all of them can have.
  GroupBounds bounds_alike(const std::vector<Role>& roles, int gpus);

  /// The most even share that a layout of a rollout has on so many GPUs of its own.
  PoolShare pool_share(int gpus);

  /// True for an actor whose options are paired with the rollout's (pairs.h).
  bool paired(Role role, bool apart) const;

  /// Allowed options that fit alone, of the layouts that are wanted.
  Selection select(const LayoutQuery& query);
  /// The same of one layout.
  Selection select(Role role, int gpus, int layout);
  /// Of every layout that is allowed, what is quickly told.
  std::vector<LayoutBound> bounds_by_layout(Role role, int gpus);
  /// What no candidate of one of them falls short of.
  const PhaseSeconds& least_of_layout(Role role, int gpus, int layout);

  const Option& option(Role role, int gpus, int index);
  /// The option with what changes where actor and rollout are in different blocks: weights come
  /// from elsewhere, in the time of the fewest bytes a sender, and both roles have their peak while
  /// they move.
  Option option(Role role, int gpus, int index, bool apart);

  /// The reshard between two options that share their ranks.
  Seconds reshard_seconds(int gpus, const Option& actor, const Option& rollout);

  /// Candidates that this search has looked at, in full or for a bound.
  std::int64_t evaluated() const;

 private:
  class Found;
  struct Stored {
    FrontStore::State::Priced* priced = nullptr;
    FrontStore::State::Bounds* bounds = nullptr;
  };
  struct Seen {
    std::int64_t bounds = 0;
    std::map<int, std::int64_t> layouts;  // candidates by layout
  };

  Stored& stored(Role role) { return roles_[role]; }
  Bytes priced_limit() const { return std::max(problem_.priced_limit, problem_.memory_limit); }
  bool allows(const Candidate& layout) const { return problem_.layouts[layout.role](layout); }
  bool hopes() const { return static_cast<bool>(problem_.evaluator.least_seconds); }
  RoleOptions& listed(Role role, int gpus);
  const GroupBounds& bounds_by_groups(Role role, int gpus);
  const PhaseSeconds& least_in(RoleOptions& all, std::size_t number);
  const PhaseSeconds& hoped_in(RoleOptions& all, std::size_t number);
  const PhaseSeconds& glanced_in(RoleOptions& all, std::size_t number);
  bool hopeless(RoleOptions& all, std::size_t number, const PhaseSeconds& least);
  std::vector<std::size_t> by_hope(RoleOptions& all, Role role);
  std::vector<int> wanted(RoleOptions& all, const LayoutQuery& query, bool& whole);
  std::vector<PartNumber> priced_parts(RoleOptions& all, const LayoutQuery& query,
                                       std::vector<int> layouts) const;
  std::vector<PartNumber> unbeaten_parts(RoleOptions& all, const LayoutQuery& query);
  double share_in(const LayoutQuery& query, const LayoutOptions& layout) const;
  void add_wanted(RoleOptions& all, const LayoutQuery& query, int number, double share,
                  Found& found, std::vector<PartNumber>& wanted) const;
  bool fits(const Option& option) const;
  Selection options_that_fit(Role role, int gpus, const std::vector<PartNumber>& parts);
  const LayoutsByGroups& by_groups(RoleOptions& all) const;
  std::vector<int> allowed(RoleOptions& all, Role role,
                           const std::optional<GroupDegrees>& groups) const;
  PhaseSeconds least_of_stage(const SharedSpace& space, int zero) const;
  bool holds(const SharedSpace& space, int zero) const;
  std::vector<int> held_stages(const SharedSpace& space) const;
  LayoutOptions::Prices& prices_of(LayoutOptions& layout) const;
  std::span<const BatchLimit> fitting(const SharedSpace& space, Bytes limit) const;
  PhaseSeconds least_of(const SharedSpace& space, Bytes limit, std::int64_t& evaluated,
                        PhaseSeconds least) const;
  void price(RoleOptions& all, int number, const std::vector<bool>& parts) const;
  void price(const SharedSpace& space, const MemoryChoice& choice, const PartNumber& number,
             std::vector<Option>& options) const;
  void take_up(RoleOptions& all, LayoutOptions::Prices& prices,
               const std::vector<Option>& fresh) const;
  void add_option(const Candidate& candidate, const RoleCost& cost, const PartNumber& number,
                  std::vector<Option>& options) const;
  std::vector<std::size_t> undominated(const std::vector<const Option*>& options) const;

  const SearchProblem& problem_;
  EnumArray<Role, Stored> roles_;
  FrontStore::State::PoolShares* pool_shares_ = nullptr;
  FrontStore::State::Reshards* reshards_ = nullptr;
  SharedLists& lists_;
  std::vector<Phase> phases_;
  EnumArray<Role, std::map<int, Seen>> seen_;  // by GPUs
};

}  // namespace tessera
