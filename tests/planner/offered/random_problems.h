// Random planning problems over the presets: every model, cluster and engine, with drawn workloads;
// and random settings near a plan.
//
// Functions of the generator's state: equal seeds give equal problems. Tokens, sequences, GPUs.
#pragma once

#include <optional>
#include <random>
#include <string>

#include "planner/request/request.h"
#include "planner/request/settings.h"
#include "planner/request/solution.h"

namespace tessera {

struct RandomProblem {
  PlanRequest request;
  std::string told;  // what was drawn, for whoever looks into it
};

/// A problem of any preset; of a cluster with at most `most_nodes` nodes.
RandomProblem random_problem(std::mt19937_64& random, int most_nodes);

/// One to three settings of any role and field or the placement; every third time all settings of
/// `near` with one of them changed.
FixedSettings random_settings(const PlanRequest& request, const Solution& near,
                              std::mt19937_64& random);

/// What an engine runs of a problem that has other calls too: `request` with that engine and only
/// these calls; nullopt where it runs none or has no such model.
std::optional<PlanRequest> part_for_engine(PlanRequest request, const std::string& engine);

}  // namespace tessera
