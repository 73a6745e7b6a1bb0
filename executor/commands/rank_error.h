// What the error that ends a rank is told as, and with which code.
#pragma once

#include <cstdint>
#include <exception>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/workload.h"

namespace tessera {

struct Plan;
struct Worker;

/// The code that the process ends with because of an error.
ExitCode code_of(const std::exception& error);

/// Every rank has the error, with the same words.
bool is_of_all(const std::exception& error);

/// What a NoDraw in this phase of this step is told as: bad_input where the model's folder holds
/// numbers that are NaN or infinite, else check_failed, as the run has diverged. Looks at the
/// rank's weights.
Error broken_weights(const Worker& worker, const Plan& plan, Phase phase, std::int64_t step);

}  // namespace tessera
