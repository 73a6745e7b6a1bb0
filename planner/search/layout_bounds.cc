// The least that the candidates of one layout take, before they are priced one by one.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planner/plan/phase_seconds.h"
#include "planner/request/candidate.h"
#include "planner/search/fronts.h"
#include "planner/search/token_limits.h"
#include "planner/space/layout_space.h"

namespace tessera {
namespace {

// The batches that bound a layout's seconds: of a rollout's, which may be many, the two largest,
// between which its seconds may jump (all sequences, or all but one), and one for every doubling of
// the sequences at once.
std::vector<BatchLimit> bounding(Role role, std::span<const BatchLimit> batches) {
  if (role != Role::rollout) return {batches.begin(), batches.end()};
  std::vector<BatchLimit> chosen;
  for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch) {
    if (chosen.size() < 2 || batch->max_sequences <= (chosen.back().max_sequences + 1) / 2) {
      chosen.push_back(*batch);
    }
  }
  return chosen;
}

// Alone, within so many bytes.
bool may_fit(const RoleCost& cost, const SharedSpace& space, Bytes limit) {
  return cost.may_shrink || fits_somewhere(cost, space.limits_apart, limit);
}

// The ZeRO stages of a layout's choices.
std::vector<int> stages_of(const SharedSpace& space) {
  std::vector<int> stages;
  for (const MemoryChoice& choice : space.choices) {
    if (std::find(stages.begin(), stages.end(), choice.zero) == stages.end()) {
      stages.push_back(choice.zero);
    }
  }
  return stages;
}

}  // namespace

// Of a ZeRO stage of a role that trains or scores, whatever its token limits are.
PhaseSeconds Fronts::least_of_stage(const SharedSpace& space, int zero) const {
  return problem_.evaluator.least_seconds(space.at({.zero = zero}, space.batches.back()),
                                          space.batches.front().tokens);
}

// Whether ranks can hold what they hold between calls, by any of the layout's choices.
bool Fronts::holds(const SharedSpace& space, int zero) const {
  if (!problem_.held) return true;
  return std::any_of(space.choices.begin(), space.choices.end(), [&](const MemoryChoice& choice) {
    return choice.zero == zero &&
           problem_.held(space.at(choice, space.batches.front())).between_calls <= priced_limit();
  });
}

std::vector<int> Fronts::held_stages(const SharedSpace& space) const {
  std::vector<int> stages = stages_of(space);
  std::erase_if(stages, [&](int zero) { return !holds(space, zero); });
  return stages;
}

// No more than least_in, and quickly known: whatever memory candidates need, and of rollouts their
// decode steps alone.
const PhaseSeconds& Fronts::hoped_in(RoleOptions& all, std::size_t number) {
  LayoutOptions& layout = all.layouts[number];
  if (layout.known >= LayoutOptions::Known::hoped) return layout.least;
  const SharedSpace& space = layout.space;
  layout.least.fill(kForever);
  layout.known = LayoutOptions::Known::hoped;
  std::int64_t looked_at = 0;
  if (space.layout.role == Role::rollout) {
    for (const BatchLimit& batch : bounding(Role::rollout, space.batches)) {
      const Candidate candidate = space.at({}, batch);
      lower(layout.least, problem_.evaluator.least_seconds(candidate, candidate.tokens));
      ++looked_at;
    }
  } else {
    for (const int zero : stages_of(space)) {
      lower(layout.least, least_of_stage(space, zero));
      looked_at += std::ssize(space.batches);
    }
  }
  if (!std::exchange(layout.counted, true)) all.evaluated += looked_at;
  return layout.least;
}

// No more than hoped_in.
const PhaseSeconds& Fronts::glanced_in(RoleOptions& all, std::size_t number) {
  LayoutOptions& layout = all.layouts[number];
  if (layout.known != LayoutOptions::Known::nothing) return layout.least;
  const SharedSpace& space = layout.space;
  const auto& glance = problem_.evaluator.glanced_seconds;
  if (!glance || space.layout.role == Role::rollout) return hoped_in(all, number);
  layout.least.fill(kForever);
  layout.known = LayoutOptions::Known::glanced;
  const std::vector<int> stages = stages_of(space);
  for (const int zero : stages) {
    lower(layout.least,
          glance(space.at({.zero = zero}, space.batches.back()), space.batches.front().tokens));
  }
  if (!std::exchange(layout.counted, true)) {
    all.evaluated += std::ssize(stages) * std::ssize(space.batches);
  }
  return layout.least;
}

// Worked out for the layouts that a search may use: fixed degrees leave few. What ranks hold is
// asked last: it takes as long as the seconds, and seldom keeps a stage out.
const PhaseSeconds& Fronts::least_in(RoleOptions& all, std::size_t number) {
  LayoutOptions& layout = all.layouts[number];
  if (layout.known == LayoutOptions::Known::least) return layout.least;
  PhaseSeconds least;
  least.fill(kForever);
  if (layout.space.layout.role != Role::rollout && hopes()) {
    const std::vector<int> held = held_stages(layout.space);
    if (held == stages_of(layout.space)) {
      least = hoped_in(all, number);
    } else {
      for (const int zero : held) lower(least, least_of_stage(layout.space, zero));
    }
  } else {
    std::int64_t looked_at = 0;
    least = least_of(layout.space, priced_limit(), looked_at, least);
    if (!std::exchange(layout.counted, true)) all.evaluated += looked_at;
  }
  layout.least = least;
  layout.known = LayoutOptions::Known::least;
  return layout.least;
}

// Whether no candidate of the layout takes less in any phase.
bool Fronts::hopeless(RoleOptions& all, std::size_t number, const PhaseSeconds& least) {
  return hopes() &&
         (none_less(glanced_in(all, number), least) || none_less(hoped_in(all, number), least));
}

// A rollout's batches that fit alone, which are the first ones.
std::span<const BatchLimit> Fronts::fitting(const SharedSpace& space, Bytes limit) const {
  const auto fits = [&](const BatchLimit& batch) {
    return std::any_of(space.choices.begin(), space.choices.end(), [&](const MemoryChoice& choice) {
      return may_fit(problem_.evaluator.bytes_of(space.at(choice, batch)), space, limit);
    });
  };
  if (fits(space.batches.back())) return space.batches;
  return {space.batches.begin(),
          std::partition_point(space.batches.begin(), space.batches.end(), fits)};
}

// Of all candidates without recomputation and offload. Where memory keeps a rollout from decoding
// all its sequences at once, it takes far longer than with all of them. A rollout's candidates that
// take no less in any phase than `least`, which other layouts take, are not worked out.
PhaseSeconds Fronts::least_of(const SharedSpace& space, Bytes limit, std::int64_t& evaluated,
                              PhaseSeconds least) const {
  const bool rollout = space.layout.role == Role::rollout;
  const std::vector<int> stages = rollout ? std::vector{0} : held_stages(space);
  const auto& bound = problem_.evaluator.least_seconds;
  const std::span<const BatchLimit> all = space.batches;
  std::span<const BatchLimit> batches = rollout ? fitting(space, limit) : all;
  if (batches.size() < space.batches.size() && !batches.empty()) {
    // What it takes may be what the next one would, which does not fit.
    for (const MemoryChoice& choice : space.choices) {
      const RoleCost cost = problem_.evaluator.role(space.at(choice, batches.back()));
      if (may_fit(cost, space, limit)) lower(least, cost.seconds);
    }
    batches = batches.first(batches.size() - 1);
  }
  for (const BatchLimit& batch : bounding(space.layout.role, batches)) {
    for (const int zero : stages) {
      const Candidate candidate = space.at({.zero = zero}, batch);
      ++evaluated;
      if (bound && none_less(bound(candidate, candidate.tokens), least)) continue;
      lower(least, problem_.evaluator.seconds ? problem_.evaluator.seconds(candidate)
                                              : problem_.evaluator.role(candidate).seconds);
    }
  }
  return least;
}

}  // namespace tessera
