// Token limits of the calls of a role that train and of the others, each solved from its own
// memory.
//
// Both kinds of calls are never awake together, and a call depends on no limit but its own
// (Evaluator): one price for each limit gives those of all pairs. Of these only pairs are built
// that no other is as quick as in as few bytes. Pure; seconds and bytes of a rank.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/spec/units.h"
#include "planner/pricing/evaluate.h"
#include "planner/request/candidate.h"

namespace tessera {

/// A candidate with its cost.
struct Limited {
  Candidate candidate;
  RoleCost cost;
};

/// True where a cost says what each phase needs.
bool states_bytes(const RoleCost& cost);

/// True where a candidate, or with `limits_apart` either kind of its calls, fits into `limit`
/// bytes.
bool fits_somewhere(const RoleCost& cost, bool limits_apart, Bytes limit);

/// Pairs of limits of candidates that differ in their one token limit alone and state bytes; those
/// that fit.
std::vector<Limited> combine_limits(const std::vector<Limited>& alike, Bytes limit);

}  // namespace tessera
