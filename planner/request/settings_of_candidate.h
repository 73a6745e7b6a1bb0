// A candidate as the settings that fix it.
//
// Pure functions.
#pragma once

#include "planner/request/candidate.h"
#include "planner/request/settings.h"

namespace tessera {

/// The value of Field::offload that says it.
std::int64_t offload_value(const Offload& offload);

/// The field's value in the candidate, as FixedSettings counts it.
std::int64_t value_of(const Candidate& candidate, Field field);

/// The fields that fix a candidate of its role.
std::vector<Field> fields_of(const Candidate& candidate);

}  // namespace tessera
