// What a plan is held to: nothing that the tool itself offers beside it is better.
//
// Better by more than the certificate's gap and 1e-9 of the objective. Pure but for the generator;
// values as value_of (planner/request/solution.h).
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "planner/request/request.h"

namespace tessera {

struct Plan;

struct Violation {
  std::string check, found;
  double by = 0;  // relative to the plan's value
};

struct CheckOptions {
  int fixes = 200;     // random settings that are tried, in searches that share their prices
  int whole = 2;       // of them that are planned anew, with a certificate of their own
  int draws = 16;      // of response lengths that are simulated; 0 = none
  double seconds = 0;  // that the settings may take; 0 = as long as they need
};

struct Findings {
  std::int64_t plans = 0, listed = 0, fixed = 0, whole = 0, neighbours = 0, more = 0, engines = 0,
               simulated = 0;
  double worst_simulated = 0;  // beyond twice the standard error of its draws
  std::vector<Violation> violations;

  Findings& operator+=(const Findings& other);
};

/// Plans and checks; nothing where no plan fits.
Findings check_offered(const PlanRequest& request, const CheckOptions& options,
                       std::mt19937_64& random);

}  // namespace tessera
