// What the sums of a forward pass take besides where each of them runs in an order that its sample
// alone decides (executor/ordered, executor/kernels/ordered_attention.cu), and what that asks of a
// plan.
//
// A plain value and a pure function. Products take what they take in any order; attention takes
// longer.
#pragma once

#include <string>
#include <string_view>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/units.h"

namespace tessera {

struct Plan;

/// Of a layer's attention, beside what it takes in the fastest order.
struct FixedOrder {
  Seconds start;     // of a decode step
  double reads = 0;  // of a decode step: parts of the time that reading its keys and values takes
  double products = 0;  // of a pass over whole texts: of that of attention's products at full rate
};

/// The own executor with rollout.batch_invariant.
inline constexpr std::string_view kInvariantEngine = "tessera+invariant";

/// Why actor and rollout have one tensor parallel degree.
inline constexpr std::string_view kWhyEqualTp =
    "sums over other numbers of tensor-parallel ranks differ";

/// Appends a Problem where a plan of such an engine has other degrees in training than in the
/// rollout.
void check_equal_tp(const Plan& plan, const std::string& file, Problems& problems);

}  // namespace tessera
