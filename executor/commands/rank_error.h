// What the error that ends a rank is told as, and with which code.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/workload.h"

namespace tessera {

struct Plan;
struct Worker;

/// What a reader has returned. Throws Error (bad_input) with the problems where there are some, or
/// no value.
template <class Value>
Value required(std::optional<Value> value, Problems& problems) {
  if (!value || !problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  return *std::move(value);
}

/// The code that the process ends with because of an error.
ExitCode code_of(const std::exception& error);

/// Every rank has the error, with the same words.
bool is_of_all(const std::exception& error);

/// What a NoDraw in this phase of this step is told as, alike on every rank: bad_input where the
/// model's folder holds numbers that are NaN or infinite, else check_failed, as the run has
/// diverged. Looks at all ranks' weights. Collective.
Error broken_weights(const Worker& worker, const Plan& plan, Phase phase, std::int64_t step);

}  // namespace tessera
