// A run's own settings of its reshards, as far as their bytes follow from them.
//
// The executor reads all of RUN/run.yaml and refuses what is wrong there; here only the keys below
// `reshard` are read that change how many bytes move. Plain values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/dtype.h"
#include "planner/plan/planned_reshard.h"

namespace tessera {

struct Plan;

struct WireOptions {
  std::optional<DType> wire;        // instead of the weights' own type, from `wire_from_step` on
  std::int64_t wire_from_step = 1;  // the first is 1
  bool incremental = false;         // what did not change since the last reshard stays
};

/// The keys `wire` and `wire_from_step` of a run's section `reshard`.
void read_wire(ObjectReader& reshard, std::optional<DType>& wire, std::int64_t& from_step);

/// Settings of the run in a folder, or of the folder that a file of it lies in; defaults where
/// there is no run.yaml. Faults of the file are appended to `problems`.
WireOptions read_wire_options(const std::filesystem::path& run, Problems& problems);

/// Bytes that the busiest rank receives in the reshard of `step`; at most that many where it is
/// incremental.
std::int64_t reshard_bytes(const Plan& plan, const PlannedReshard& pair, const WireOptions& options,
                           std::int64_t step);

}  // namespace tessera
