// A plan that no search certified, under the planner's cost models: what it says against what it
// costs.
//
// Plain values; seconds and bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/interop/price.h"
#include "planner/plan/plan.h"

namespace tessera {

/// One figure of the file beside the same computed again.
struct StoredValue {
  std::string name;  // "step_s", "phases_s.gen", "peak_bytes", "reshard.0.bytes_received"
  double stored = 0, recomputed = 0;
  bool agrees() const;
};

struct Repriced {
  Plan plan;  // with what was computed
  Pricing pricing;
  std::string why;  // "not from a search", "edited since its search"
  std::vector<StoredValue> values;
  bool agrees() const;  // all of them
};

/// Precondition: the plan is valid.
Repriced repriced(const Plan& stored, const Calibration& calibration);

/// What the plan is, the values that differ, and what it leaves out or lacks.
std::string describe(const Repriced& plan);
std::string to_json(const Repriced& plan);

}  // namespace tessera
