// Validation: what the present actor answers to prompts that it is never trained on.
//
// Nothing that training reads changes by it: answers are drawn with numbers of their own, torch's
// generators are put back, and the pages of keys and values belong to this call. Called on every
// rank of the world, whose rollout holds the weights in question; every rank gets the same.
#pragma once

#include <vector>

#include "executor/loop/step_rollout.h"

namespace tessera {

struct Validation {
  bool whole = true;                // false: the run is to end, and scores were not awaited
  std::vector<Sequence> sequences;  // with their scores
  Metrics metrics;                  // of validation_metrics
};

/// Answers the prompts of `setting`, a set of their own, after `step` steps. Where the run is to
/// end while programs score, they are not awaited; where it is to end elsewhere, the validation is
/// whole all the same.
Validation validate(const RolloutSetting& setting, std::int64_t step);

}  // namespace tessera
