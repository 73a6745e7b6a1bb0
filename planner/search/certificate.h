// The certificate of a plan: what it was compared with, and by how much it is better.
//
// Pure functions over a solved search; the runner-ups of the winner's own placement are searched
// with the prices that `store` keeps.
#pragma once

#include "planner/request/request.h"
#include "planner/search/exact.h"
#include "planner/search/slots.h"

namespace tessera {

struct Certificate;
struct Plan;

/// Value, bound, gap, runner-ups and margin of `plan`, composed of the winner of `solved`. The
/// margin is the relative error e of the model at which value (1 + e) = runner-up (1 - e).
Certificate certificate_of(const PlanRequest& request, const SearchProblem& problem,
                           const SolvedSearch& solved, const Plan& plan, FrontStore& store);

}  // namespace tessera
