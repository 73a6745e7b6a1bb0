// The plan that others have to beat.
//
// Plain values: seconds of a step; GPUs, and what they count by their prices (units of the
// cluster's mean price).
#pragma once

#include <algorithm>
#include <limits>

#include "cost_models/spec/units.h"
#include "planner/request/objective.h"
#include "planner/request/solution.h"

namespace tessera {

struct Bill {
  int gpus = 0;
  double billed = 0;
};

struct Incumbent {
  Seconds step_s = kForever;  // kForever: there is none
  Bill bill;

  bool found() const { return step_s < kForever; }

  /// A plan on that many GPUs or more must take less than this to be better.
  Seconds step_limit(Objective objective, Bill least) const {
    if (step_s == kForever) return kForever;
    switch (objective) {
      case Objective::step_time:
        return step_s;
      case Objective::tokens_per_gpu:
        return step_s * bill.gpus / least.gpus;
      case Objective::cost:
        return step_s * bill.billed / least.billed;
      case Objective::fewest_gpus:
        break;
    }
    if (least.gpus > bill.gpus) return -kForever;
    return least.gpus == bill.gpus ? step_s : kForever;
  }
};

inline Incumbent incumbent_of(const Solution& solution) {
  return {solution.step_s, {solution.gpus(), solution.billed_gpus}};
}

/// The plans that a search has to beat: the best plan of its own placements, which it looks for,
/// and the best of all placements so far.
struct Rivals {
  Incumbent own, all;
  /// The relative error that is allowed in the best of these placements where it is not the best of
  /// all: near ties are many.
  double slack = 0;

  /// As Incumbent::step_limit: of plans that are worth looking for.
  Seconds step_limit(Objective objective, Bill least) const {
    const Seconds limit = own.step_limit(objective, least);
    const Seconds best = all.step_limit(objective, least);
    if (slack == 0 || limit <= best) return limit;
    return std::max(best, (1 - slack) * limit);
  }
};

/// The objective at a bound of the step: what branches are tried by.
inline double order_of(Objective objective, Seconds step, Bill bill) {
  if (objective == Objective::step_time) return step.value;
  if (objective == Objective::fewest_gpus) return bill.gpus;
  return step.value * (objective == Objective::cost ? bill.billed : bill.gpus);
}

}  // namespace tessera
