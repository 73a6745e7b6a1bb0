// Priced options of every (role, GPUs) and their Pareto fronts, worked out once and kept.
//
// Prices are kept per setting of a role (SearchProblem::settings); which layouts a search allows is
// applied afterwards, so that searches that differ in it share them. Options of one layout that
// another of the same layout beats in everything are dropped: they could win nowhere. One thread.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/exact.h"

namespace tessera {

/// A role's way to run on a number of GPUs.
struct Option {
  Candidate candidate;
  PhaseSeconds seconds{};
  std::int64_t resident = 0, transient = 0, switching = 0;  // the last two: on top of resident
  int layout = 0;  // number of its layout among those of the role on these GPUs
};

/// Options of one (role, GPUs), those of one layout together.
struct RoleOptions {
  std::vector<Option> options;
  PhaseSeconds least{};             // of each phase; infinite where there is no option
  std::int64_t least_resident = 0;  // bytes
  std::int64_t evaluated = 0;       // candidates that were priced for them
  int layouts = 0;
};

/// All undominated options of one (role, GPUs), and the least seconds of each phase among them.
struct RoleFront {
  std::vector<Option> options;
  PhaseSeconds least{};
};

struct FrontStore::State {
  using Key = std::pair<Role, std::string>;
  struct RoleFronts {
    std::map<int, RoleOptions> allowed;                // by GPUs
    std::map<std::pair<int, bool>, RoleFront> fronts;  // by GPUs; bool: apart
    std::map<std::pair<int, bool>, PhaseSeconds> least;
  };
  std::map<Key, std::map<int, RoleOptions>> priced;  // by GPUs
  std::map<Key, RoleFronts> roles;
  /// Seconds of a switch on shared ranks by layout of the actor, then of the rollout; negative: not
  /// worked out yet.
  std::map<std::string, std::map<int, std::vector<std::vector<double>>>> reshards;
};

class Fronts {
 public:
  Fronts(const SearchProblem& problem, FrontStore::State& store);

  /// Undominated options. `apart`: actor and rollout are in different blocks; where they share one
  /// they are paired (pairs.h) instead.
  const RoleFront& of(Role role, int gpus, bool apart);

  /// Bounds without the work of a front: least seconds of each phase over all options, for the
  /// actor with its rollout where they share a block.
  const PhaseSeconds& least(Role role, int gpus, bool apart);

  /// True for an actor whose options are pairs with the rollout's.
  bool paired(Role role, bool apart) const;

  /// All allowed options of a role on a number of GPUs that fit alone.
  const RoleOptions& options(Role role, int gpus);

  /// Seconds of the switch between two options that share their ranks.
  double reshard_seconds(int gpus, const Option& actor, const Option& rollout);

  /// Candidates behind all options that this search has looked at.
  std::int64_t evaluated() const { return evaluated_; }

 private:
  struct Stored {
    std::map<int, RoleOptions>* priced = nullptr;
    FrontStore::State::RoleFronts* fronts = nullptr;
  };

  Stored& stored(Role role) { return roles_[static_cast<std::size_t>(role)]; }
  const RoleOptions& priced(Role role, int gpus);
  std::vector<Phase> used_phases(const std::vector<Option>& options) const;
  void keep_best(std::vector<Option>& options) const;
  PhaseSeconds least_of(const std::vector<Option>& options) const;
  RoleFront plain_front(Role role, int gpus, bool apart);

  const SearchProblem& problem_;
  std::array<Stored, kRoleCount> roles_;
  std::map<int, std::vector<std::vector<double>>>* reshards_ = nullptr;
  std::vector<Phase> phases_;
  std::array<std::map<int, bool>, kRoleCount> looked_at_;
  std::int64_t evaluated_ = 0;
};

}  // namespace tessera
