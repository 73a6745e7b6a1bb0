#include "planner/search/slots.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "planner/engines/engine.h"
#include "planner/plan/phase_seconds.h"
#include "planner/pricing/fixed.h"
#include "planner/pricing/iteration.h"
#include "planner/request/candidate.h"
#include "planner/request/describe.h"
#include "planner/request/objective.h"
#include "planner/request/request.h"
#include "planner/request/solution.h"
#include "planner/search/incumbent.h"
#include "planner/space/layout_space.h"

namespace tessera {
namespace {

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Sequences of the replica that has most.
std::int64_t present(const PlanRequest& request, const Candidate& rollout) {
  return most_sequences(request.workload, engine_named(request.engine).prompts, rollout.dp);
}

Candidate with_slots(const Workload& workload, Candidate candidate, std::int64_t slots) {
  const BatchLimit batch = rollout_batch(workload, slots);
  candidate.tokens = batch.tokens;
  candidate.max_sequences = batch.max_sequences;
  return candidate;
}

// Whether a solution's rollout may decode so many sequences at once.
class Fit {
 public:
  Fit(const SearchProblem& problem, const Workload& workload, const Solution& solution)
      : problem_(problem), workload_(workload), own_(solution.choice.at(Role::rollout)) {
    limit_ = problem.views.empty()
                 ? problem.memory_limit
                 : problem.views[static_cast<std::size_t>(own_.view)].memory_limit;
    for (const std::vector<Role>& block : solution.placement) {
      if (std::find(block.begin(), block.end(), Role::rollout) == block.end()) continue;
      for (const Role role : block) {
        if (role == Role::rollout) continue;
        roles_.push_back(problem.evaluator.bytes_of(solution.choice.at(role)));
      }
    }
  }

  Bytes bytes(std::int64_t slots) const {
    std::vector<RoleCost> together = roles_;
    together.push_back(problem_.evaluator.bytes_of(with_slots(workload_, own_, slots)));
    return bytes_together(together);
  }

  // The largest of [fits, most]. Bytes are nearly linear in the number: secants, then halves.
  std::int64_t most(std::int64_t fits, std::int64_t most) const {
    Bytes high_bytes = bytes(most);
    if (high_bytes <= limit_) return most;
    Bytes low_bytes = bytes(fits);
    std::int64_t low = fits, high = most;
    for (int round = 0; high - low > 1; ++round) {
      const double part = (limit_ - low_bytes) / std::max(Bytes{1}, high_bytes - low_bytes);
      const auto secant = low + static_cast<std::int64_t>(part * static_cast<double>(high - low));
      const std::int64_t next =
          round % 3 == 2 ? low + (high - low) / 2 : std::clamp(secant, low + 1, high - 1);
      const Bytes needed = bytes(next);
      (needed <= limit_ ? low : high) = next;
      (needed <= limit_ ? low_bytes : high_bytes) = needed;
    }
    return low;
  }

 private:
  const SearchProblem& problem_;
  const Workload& workload_;
  Candidate own_;
  Bytes limit_;
  std::vector<RoleCost> roles_;  // that share its GPUs
};

// The solution with so many sequences at once.
Solution priced_with(const SearchProblem& problem, const Workload& workload, std::int64_t slots,
                     Solution solution) {
  Candidate& rollout = solution.choice.at(Role::rollout);
  rollout = with_slots(workload, rollout, slots);
  solution.seconds[Phase::gen] = problem.evaluator.role(rollout).seconds[Phase::gen];
  const auto schedule = schedule_of(problem.schedule, solution.placement, solution.policy_lag);
  solution.step_s =
      Iteration(schedule, blocks_of(schedule, solution.placement)).step_seconds(solution.seconds);
  return solution;
}

// Numbers of sequences tried per layout, and the least seconds between each and the next.
class Between {
 public:
  Between(const SearchProblem& problem, const PlanRequest& request)
      : problem_(problem),
        workload_(request.workload),
        prompts_(engine_named(request.engine).prompts) {}

  SearchProblem open() {
    SearchProblem open = problem_;
    open.settings[Role::rollout].splits = splits_;
    open.spaces = [this](Role role, int gpus) {
      std::vector<LayoutSpace> spaces = problem_.spaces(role, gpus);
      if (role != Role::rollout) return spaces;
      for (LayoutSpace& space : spaces) space.batches = batches_of(space.layout);
      return spaces;
    };
    open.evaluator.role = [this](const Candidate& candidate) { return least_cost(candidate); };
    return open;
  }

  void split(const Candidate& candidate) {
    const std::int64_t slots = candidate.max_sequences;
    Batches& own = of_layouts_.try_emplace(key_of(candidate), batches_of(candidate)).first->second;
    const auto next = above(own, slots);
    const std::int64_t end = next == own.end() ? slots + 1 : next->max_sequences;
    const std::vector<std::int64_t> tried{slots, slots + 1, slots + (end - slots) / 4,
                                          slots + (end - slots) / 2};
    splits_.push_back({key_of(candidate), tried});
    for (const std::int64_t number : tried) {
      const auto place = above(own, number - 1);
      const bool known = place != own.end() && place->max_sequences == number;
      if (number < end && !known) own.insert(place, rollout_batch(workload_, number));
    }
  }

 private:
  using Batches = std::vector<BatchLimit>;  // ascending by their sequences at once

  // Of a rollout's layout, whatever its batches and its view.
  static std::pair<int, Degrees> key_of(const Candidate& candidate) {
    return {candidate.gpus, candidate.degrees()};
  }

  // The first with more sequences.
  static Batches::const_iterator above(const Batches& batches, std::int64_t sequences) {
    return std::upper_bound(
        batches.begin(), batches.end(), sequences,
        [](std::int64_t number, const BatchLimit& batch) { return number < batch.max_sequences; });
  }

  // Layouts whose replicas have as many sequences have them in common until one of them is split.
  const Batches& batches_of(const Candidate& candidate) {
    if (const auto own = of_layouts_.find(key_of(candidate)); own != of_layouts_.end()) {
      return own->second;
    }
    const std::int64_t sequences = most_sequences(workload_, prompts_, candidate.dp);
    auto [entry, added] = by_sequences_.try_emplace(sequences);
    if (added) entry->second = batches_within(sequences);
    return entry->second;
  }

  Batches batches_within(std::int64_t sequences) const {
    constexpr int kPerOctave = 32;
    std::set<std::int64_t> numbers;
    for (int k = 0; numbers.empty() || *numbers.begin() > 1; ++k) {
      numbers.insert(static_cast<std::int64_t>(std::ceil(
          static_cast<double>(sequences) * std::exp2(-static_cast<double>(k) / kPerOctave) -
          1e-9)));
    }
    for (int waves = 3; waves < 8; ++waves) numbers.insert(divided_up(sequences, waves));
    // Where all are decoded at once no slot is refilled: seconds jump from one less to all.
    numbers.insert(std::max<std::int64_t>(1, sequences - 1));
    Batches batches;
    for (const std::int64_t number : numbers) batches.push_back(rollout_batch(workload_, number));
    return batches;
  }

  RoleCost least_cost(const Candidate& candidate) {
    RoleCost cost = problem_.evaluator.role(candidate);
    if (candidate.role != Role::rollout || cost.seconds[Phase::gen] == 0) return cost;
    const Batches& batches = batches_of(candidate);
    const auto next = above(batches, candidate.max_sequences);
    // It stands for itself alone.
    if (next == batches.end() || next->max_sequences == candidate.max_sequences + 1) return cost;
    const Candidate other = with_slots(workload_, candidate, next->max_sequences);
    const PhaseSeconds seconds = problem_.evaluator.seconds
                                     ? problem_.evaluator.seconds(other)
                                     : problem_.evaluator.role(other).seconds;
    Seconds& own = cost.seconds[Phase::gen];
    own = std::min(own, seconds[Phase::gen]);
    return cost;
  }

  const SearchProblem& problem_;
  const Workload& workload_;
  PromptDealing prompts_;
  std::map<std::int64_t, Batches> by_sequences_;           // of the replica that has most
  std::map<std::pair<int, Degrees>, Batches> of_layouts_;  // that were split
  std::vector<RoleSettings::Split> splits_;
};

bool same_place(const Solution& a, const Solution& b) {
  return a.placement == b.placement && a.policy_lag == b.policy_lag;
}

// Than the plan that the problem says is known.
bool is_better(const SearchProblem& problem, const Solution& solution) {
  return solution.step_s <
         problem.better_than.step_limit(problem.objective, incumbent_of(solution).bill);
}

bool solves_slots(const SearchProblem& problem, const PlanRequest& request) {
  return std::find(problem.roles.begin(), problem.roles.end(), Role::rollout) !=
             problem.roles.end() &&
         !request.fixed.find(Role::rollout, Field::max_sequences);
}

// By how much a bound is below a value, as a part of it: of the step, where GPUs are counted.
double gap_between(Objective objective, const Incumbent& bound, const Incumbent& best) {
  if (objective == Objective::fewest_gpus) objective = Objective::step_time;
  const double value = order_of(objective, best.step_s, best.bill);
  return std::max(0.0, (value - order_of(objective, bound.step_s, bound.bill)) / value);
}

}  // namespace

void take_up(Objective objective, Solution next, std::vector<Solution>& best) {
  const auto value = [&](const Solution& solution) { return value_of(objective, solution); };
  const auto known = std::find_if(best.begin(), best.end(),
                                  [&](const Solution& other) { return same_place(other, next); });
  if (known == best.end()) {
    best.push_back(std::move(next));
  } else if (value(next) < value(*known)) {
    *known = std::move(next);
  }
  std::stable_sort(best.begin(), best.end(),
                   [&](const Solution& a, const Solution& b) { return value(a) < value(b); });
}

Solution with_most_slots(const SearchProblem& problem, const PlanRequest& request,
                         const Solution& solution) {
  const Workload& workload = request.workload;
  const Candidate& rollout = solution.choice.at(Role::rollout);
  const std::int64_t sequences = present(request, rollout);
  const std::int64_t most =
      rollout.max_sequences >= sequences
          ? sequences
          : Fit(problem, workload, solution).most(rollout.max_sequences, sequences);
  const std::int64_t own = rollout.max_sequences;
  const std::int64_t waves = divided_up(sequences, most);
  Solution best = priced_with(problem, workload, most, solution);
  const auto consider = [&](std::int64_t slots) {
    if (slots < 1 || slots >= most) return;
    Solution other = priced_with(problem, workload, slots, solution);
    const std::int64_t best_slots = best.choice.at(Role::rollout).max_sequences;
    const bool tie = other.step_s == best.step_s &&
                     divided_up(sequences, slots) <= divided_up(sequences, best_slots);
    if (tie || other.step_s < best.step_s) best = std::move(other);
  };
  consider(divided_up(sequences, waves));
  consider(own);
  // Sequences that enter last may make a smaller number quicker: downhill from the best of these.
  for (std::int64_t step = std::max<std::int64_t>(1, most / 64); step > 0; step /= 2) {
    const std::int64_t from = best.choice.at(Role::rollout).max_sequences;
    consider(from - step);
    if (from + step < most) consider(from + step);
  }
  return best;
}

SolvedSearch search_with_slots(const SearchProblem& problem, const PlanRequest& request,
                               FrontStore& store, int rounds) {
  constexpr double kSmallGap = 1e-3;
  SolvedSearch solved{search_exactly(problem, store)};
  std::vector<Solution>& best = solved.result.best;
  if (!solves_slots(problem, request) || (best.empty() && !problem.better_than.found())) {
    return solved;
  }
  for (Solution& solution : best) solution = with_most_slots(problem, request, solution);
  if (!best.empty()) take_up(problem.objective, best.front(), best);
  Between between(problem, request);
  for (int round = 0; round < rounds; ++round) {
    SearchProblem open = between.open();
    const Incumbent known = best.empty() ? problem.better_than : incumbent_of(best.front());
    open.better_than = known;
    const SearchResult found = search_exactly(open, store);
    solved.result.evaluated += found.evaluated;
    solved.result.pruned += found.pruned;
    if (found.best.empty()) {
      solved.gap = 0;
      break;
    }
    Solution next = with_most_slots(problem, request, found.best.front());
    solved.gap = gap_between(problem.objective, incumbent_of(found.best.front()), known);
    between.split(next.choice.at(Role::rollout));
    if (is_better(problem, next)) take_up(problem.objective, std::move(next), best);
    if (solved.gap <= kSmallGap) break;
  }
  if (problem.objective == Objective::fewest_gpus) solved.gap = 0;
  return solved;
}

}  // namespace tessera
