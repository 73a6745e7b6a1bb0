#include "planner/search/fronts.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "planner/search/pareto.h"

namespace tessera {
namespace {

std::size_t at(Phase phase) { return static_cast<std::size_t>(phase); }
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a reshard's bytes depend on.
std::array<int, 9> layout_key(const Candidate& c) {
  return {c.tp, c.cp, c.pp, c.vpp, c.ep, c.etp, c.dp, c.dp_shard, c.head_layers};
}

// True when `candidate` differs from `other` at most in larger batches, so that it needs no fewer
// bytes: twice the tokens (there are at least half as many micro-batches), or more slots.
bool needs_no_less(Candidate candidate, const Candidate& other) {
  const bool larger = candidate.role == Role::rollout
                          ? candidate.max_sequences >= other.max_sequences
                          : candidate.tokens == 2 * other.tokens;
  candidate.tokens = other.tokens;
  candidate.max_sequences = other.max_sequences;
  return larger && candidate == other;
}

std::string name_in(const std::map<Role, std::string>& names, Role role) {
  const auto found = names.find(role);
  return found == names.end() ? std::string() : found->second;
}

FrontPoint point_of(const Option& option, const std::vector<Phase>& phases, std::size_t index) {
  FrontPoint point;
  for (std::size_t p = 0; p < phases.size(); ++p) point.seconds[p] = option.seconds[at(phases[p])];
  point.resident = option.resident;
  point.transient = option.transient;
  point.option[0] = static_cast<int>(index);
  return point;
}

}  // namespace

FrontStore::FrontStore() : state_(std::make_unique<State>()) {}
FrontStore::~FrontStore() = default;

Fronts::Fronts(const SearchProblem& problem, FrontStore::State& store) : problem_(problem) {
  for (const Role role : kEveryRole) {
    const std::string setting = name_in(problem.settings, role);
    stored(role) = {&store.priced[{role, setting}],
                    &store.roles[{role, setting + "; " + name_in(problem.layouts, role)}]};
  }
  reshards_ = &store.reshards[name_in(problem.settings, Role::actor) + "; " +
                              name_in(problem.settings, Role::rollout)];
  for (const ScheduledCall& call : problem.schedule) phases_.push_back(call.phase);
}

const RoleFront& Fronts::of(Role role, int gpus, bool apart) {
  auto [entry, added] = stored(role).fronts->fronts.try_emplace({gpus, apart});
  if (added) entry->second = plain_front(role, gpus, apart);
  return entry->second;
}

const PhaseSeconds& Fronts::least(Role role, int gpus, bool apart) {
  auto [entry, added] = stored(role).fronts->least.try_emplace({gpus, apart});
  if (!added) return entry->second;
  PhaseSeconds least = options(role, gpus).least;
  if (paired(role, apart)) {
    const PhaseSeconds& rollout = options(Role::rollout, gpus).least;
    for (std::size_t p = 0; p < least.size(); ++p) least[p] += rollout[p];
  }
  return entry->second = least;
}

bool Fronts::paired(Role role, bool apart) const {
  return role == Role::actor && !apart &&
         std::find(problem_.roles.begin(), problem_.roles.end(), Role::rollout) !=
             problem_.roles.end();
}

const RoleOptions& Fronts::options(Role role, int gpus) {
  const RoleOptions& all = priced(role, gpus);
  if (looked_at_[static_cast<std::size_t>(role)].try_emplace(gpus, true).second) {
    evaluated_ += all.evaluated;
  }
  if (!problem_.allows) return all;
  auto [entry, added] = stored(role).fronts->allowed.try_emplace(gpus);
  RoleOptions& allowed = entry->second;
  if (!added) return allowed;
  allowed = all;
  std::erase_if(allowed.options,
                [&](const Option& option) { return !problem_.allows(option.candidate); });
  if (allowed.options.size() == all.options.size()) return allowed;
  allowed.least = least_of(allowed.options);
  return allowed;
}

const RoleOptions& Fronts::priced(Role role, int gpus) {
  auto [entry, added] = stored(role).priced->try_emplace(gpus);
  RoleOptions& all = entry->second;
  if (!added) return all;
  std::map<std::array<int, 9>, std::vector<Option>> by_layout;
  std::optional<Candidate> refused;
  for (const Candidate& candidate : problem_.candidates(role, gpus)) {
    ++all.evaluated;
    if (refused && needs_no_less(candidate, *refused)) {
      refused = candidate;
      continue;
    }
    const RoleCost cost = problem_.evaluator.role(candidate);
    if (std::max(cost.peak, cost.switching) > problem_.memory_limit) {
      refused = candidate;
      continue;
    }
    by_layout[layout_key(candidate)].push_back({candidate, cost.seconds, cost.resident,
                                                cost.peak - cost.resident,
                                                cost.switching - cost.resident, 0});
  }
  all.least_resident = problem_.memory_limit;
  for (auto& [key, options] : by_layout) {
    keep_best(options);
    for (Option& option : options) {
      option.layout = all.layouts;
      all.least_resident = std::min(all.least_resident, option.resident);
      all.options.push_back(option);
    }
    ++all.layouts;
  }
  all.least = least_of(all.options);
  return all;
}

double Fronts::reshard_seconds(int gpus, const Option& actor, const Option& rollout) {
  auto& by_actor = (*reshards_)[gpus];
  if (by_actor.empty()) {
    by_actor.resize(static_cast<std::size_t>(priced(Role::actor, gpus).layouts));
  }
  std::vector<double>& by_rollout = by_actor[static_cast<std::size_t>(actor.layout)];
  if (by_rollout.empty()) {
    by_rollout.assign(static_cast<std::size_t>(priced(Role::rollout, gpus).layouts), -1.0);
  }
  double& seconds = by_rollout[static_cast<std::size_t>(rollout.layout)];
  if (seconds < 0) {
    seconds = problem_.evaluator.reshard_seconds(actor.candidate, rollout.candidate, true);
  }
  return seconds;
}

// Phases in which any of the options spends time.
std::vector<Phase> Fronts::used_phases(const std::vector<Option>& options) const {
  std::vector<Phase> used;
  for (const Phase phase : phases_) {
    const bool any = std::any_of(options.begin(), options.end(), [&](const Option& option) {
      return option.seconds[at(phase)] != 0;
    });
    if (any) used.push_back(phase);
  }
  return used;
}

// Keeps the undominated options of one layout. Options to be paired also differ in what they need
// while weights move.
void Fronts::keep_best(std::vector<Option>& options) const {
  const std::vector<Phase> phases = used_phases(options);
  std::vector<FrontPoint> points;
  for (std::size_t i = 0; i < options.size(); ++i) {
    points.push_back(point_of(options[i], phases, i));
    points.back().switching = options[i].switching;
  }
  keep_front(points, static_cast<int>(phases.size()));
  std::vector<Option> kept;
  for (const FrontPoint& point : points) {
    kept.push_back(options[static_cast<std::size_t>(point.option[0])]);
  }
  options = std::move(kept);
}

PhaseSeconds Fronts::least_of(const std::vector<Option>& options) const {
  PhaseSeconds seconds{};
  seconds.fill(options.empty() ? kInfinity : 0);
  for (const Phase phase : phases_) {
    double least = kInfinity;
    for (const Option& option : options) least = std::min(least, option.seconds[at(phase)]);
    seconds[at(phase)] = least;
  }
  return seconds;
}

RoleFront Fronts::plain_front(Role role, int gpus, bool apart) {
  const std::vector<Option>& all = options(role, gpus).options;
  const bool moves = apart && (role == Role::actor || role == Role::rollout);
  std::vector<Option> arranged = all;
  for (Option& option : arranged) {
    if (moves) option.transient = std::max(option.transient, option.switching);
    // Weights that come from elsewhere take as long whatever the actor's layout is.
    if (apart && role == Role::rollout) {
      option.seconds[at(Phase::reshard)] =
          problem_.evaluator.reshard_seconds(Candidate{}, option.candidate, false);
    }
  }
  const std::vector<Phase> phases = used_phases(arranged);
  std::vector<FrontPoint> points;
  for (std::size_t i = 0; i < arranged.size(); ++i) {
    points.push_back(point_of(arranged[i], phases, i));
  }
  keep_front(points, static_cast<int>(phases.size()));
  RoleFront front;
  for (const FrontPoint& point : points) {
    front.options.push_back(arranged[static_cast<std::size_t>(point.option[0])]);
  }
  front.least = least_of(front.options);
  return front;
}

}  // namespace tessera
