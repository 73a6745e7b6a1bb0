// The least that the candidates of one layout take, before they are priced one by one.
#include <algorithm>
#include <optional>
#include <span>

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

// True where no phase of the first takes less than the other's.
bool none_less(const PhaseSeconds& seconds, const PhaseSeconds& least) {
  return std::none_of(kEveryPhase.begin(), kEveryPhase.end(),
                      [&](Phase phase) { return seconds[phase] < least[phase]; });
}

}  // namespace

// A choice without recomputation and offload for every ZeRO stage whose ranks can hold what they
// hold between calls, which recomputation does not change.
std::vector<MemoryChoice> Fronts::quickest_of(const SharedSpace& space) const {
  std::vector<MemoryChoice> quickest, refused;
  for (const MemoryChoice& choice : space.choices) {
    const bool known =
        std::any_of(quickest.begin(), quickest.end(),
                    [&](const MemoryChoice& other) { return other.zero == choice.zero; });
    const bool alike = std::any_of(refused.begin(), refused.end(), [&](const MemoryChoice& other) {
      return other.zero == choice.zero && other.offload == choice.offload;
    });
    if (known || alike) continue;
    if (problem_.held &&
        problem_.held(space.at(choice, space.batches.front())).between_calls > priced_limit()) {
      refused.push_back(choice);
      continue;
    }
    quickest.push_back({.zero = choice.zero});
  }
  return quickest;
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
  const std::vector<MemoryChoice> quickest = quickest_of(space);
  const auto& bound = problem_.evaluator.least_seconds;
  if (space.layout.role != Role::rollout && bound) {
    evaluated += static_cast<std::int64_t>(quickest.size() * space.batches.size());
    for (const MemoryChoice& choice : quickest) {
      lower(least, bound(space.at(choice, space.batches.back()), space.batches.front().tokens));
    }
    return least;
  }
  std::span<const BatchLimit> batches = space.batches;
  if (space.layout.role == Role::rollout) batches = fitting(space, limit);
  if (batches.size() < space.batches.size() && !batches.empty()) {
    // What it takes may be what the next one would, which does not fit.
    for (const MemoryChoice& choice : space.choices) {
      const RoleCost cost = problem_.evaluator.role(space.at(choice, batches.back()));
      if (may_fit(cost, space, limit)) lower(least, cost.seconds);
    }
    batches = batches.first(batches.size() - 1);
  }
  for (const BatchLimit& batch : bounding(space.layout.role, batches)) {
    for (const MemoryChoice& choice : quickest) {
      const Candidate candidate = space.at(choice, batch);
      ++evaluated;
      if (bound && none_less(bound(candidate, candidate.tokens), least)) continue;
      lower(least, problem_.evaluator.seconds ? problem_.evaluator.seconds(candidate)
                                              : problem_.evaluator.role(candidate).seconds);
    }
  }
  return least;
}

// What is not known of a layout keeps none of its candidates out.
std::vector<LayoutOptions::Floor> Fronts::floors_of(const SharedSpace& space) const {
  std::vector<LayoutOptions::Floor> floors;
  for (const MemoryChoice& choice : space.choices) {
    const bool known = std::any_of(floors.begin(), floors.end(), [&](const auto& other) {
      return other.choice.zero == choice.zero && other.choice.offload == choice.offload;
    });
    if (known) continue;
    const SearchProblem::Held held = problem_.held(space.at(choice, space.batches.front()));
    if (held.between_calls > priced_limit()) continue;
    const MemoryChoice quickest{.zero = choice.zero, .offload = choice.offload};
    floors.push_back({quickest, held,
                      problem_.evaluator.least_seconds(space.at(quickest, space.batches.back()),
                                                       space.batches.front().tokens)});
  }
  return floors;
}

// Whether any way to hold less between calls leaves the others enough for a step below the limit.
bool Fronts::may_stay_below(LayoutOptions& layout, const LayoutQuery& query) const {
  const bool known = problem_.held && problem_.evaluator.least_seconds;
  if (!query.step_beside || !known) return true;
  if (!layout.floors) layout.floors = floors_of(layout.space);
  return std::any_of(layout.floors->begin(), layout.floors->end(), [&](const auto& floor) {
    return query.step_beside(floor.least, floor.held) < query.limit;
  });
}

}  // namespace tessera
