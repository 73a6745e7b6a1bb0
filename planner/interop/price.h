// A hand-written plan under the planner's cost models.
//
// One thread for each call; seconds and bytes.
#pragma once

#include <string>
#include <vector>

#include "cost_models/calibration.h"

namespace tessera {

struct Plan;

/// Fills memory, reshard and prediction by the cost models. A rollout that a server runs decodes as
/// many sequences at once as there are, as it may, and as its cache holds: what `memory_share` of
/// the GPU leaves beside its weights and workspace. A server that plans nothing else must hold one.
/// Returns what they leave out, and where the plan does not fit, by role and bytes; `fits` tells
/// the latter.
struct Pricing {
  bool fits = true;
  std::vector<std::string> notes;
};
Pricing price(Plan& plan, const Calibration& calibration, double memory_share = 0);

}  // namespace tessera
