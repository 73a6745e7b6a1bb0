// Where a plan's step goes: what it is made of along the longest chain of its calls.
//
// Pure functions. The parts are the prices of the plan's own layouts (evaluator_of) and sum to the
// predicted step. Seconds.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_models/spec/enum_array.h"
#include "cost_models/spec/units.h"
#include "cost_models/spec/workload.h"

namespace tessera {

struct Plan;
struct Calibration;

enum class StepPart {
  computation,
  communication,  // that nothing hides, reshards included (Prediction::exposed_comm_s)
  bubble,         // stages of a pipeline wait for what others compute
  host            // calls, an engine's software, copies from and to host memory (a fetched
                  // reference's layers too), what runs without a model
};
template <>
inline constexpr std::size_t kEnumerators<StepPart> = 4;
inline constexpr std::array kEveryStepPart{StepPart::computation, StepPart::communication,
                                           StepPart::bubble, StepPart::host};

/// "computation", "host and copies".
std::string_view name_of(StepPart part);

using StepParts = EnumArray<StepPart, Seconds>;

/// The calls of the predicted step of which each ends when the next begins, from the step's end
/// back to its start.
std::vector<Phase> longest_chain(const Plan& plan);

/// `calibration`: the plan's.
StepParts step_parts(const Plan& plan, const Calibration& calibration);

/// What of the generation the GPUs wait for the front end of an inference server, the process that
/// hands every token over (DecodeTraits::token_served); 0 where their own steps take longer.
Seconds waited_for_front_end(const Plan& plan, const Calibration& calibration);

/// By how much each part is longer in `other`, the largest difference first. What differs by less
/// than a hundredth of the largest is left out.
std::vector<std::pair<StepPart, Seconds>> parts_apart(const StepParts& one, const StepParts& other);

}  // namespace tessera
