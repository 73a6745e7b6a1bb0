// The reasons why each pool of a plan lies on the GPU types it has: the same layouts on every other
// type.
//
// Of clusters with several types; nothing where all GPUs are alike. Pure; seconds of the phases
// that the pool's roles compute in.
#pragma once

#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "cost_models/spec/workload.h"

namespace tessera {

struct Plan;

/// A role of a pool as it is and on another type, with the same layout.
struct OnOtherType {
  Role role = Role::actor;
  std::string types, other;  // devices, joined by '+'
  int first_rank = 0, last_rank = 0;
  double seconds = 0, other_s = 0;     // of the role's phases; other_s 0 where it does not fit
  std::int64_t needed = 0, limit = 0;  // bytes of a rank there, where it does not fit
  bool has_room = true;                // so many GPUs of that type are there
};

std::vector<OnOtherType> on_other_types(const Plan& plan, const Calibration& calibration);

/// One line each: "actor on H100-SXM-80GB (ranks 32-63): 2.1x faster than on A100-SXM-80GB", and
/// one for every pool that spans types. Empty where there is one type.
std::string describe_type_reasons(const Plan& plan, const Calibration& calibration);

}  // namespace tessera
