// What a run's own configuration says of its switches, as far as their bytes follow from it.
//
// The executor reads all of RUN/run.yaml and refuses what is wrong there; here only the keys below
// `reshard` are read that change how many bytes move. Plain values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "cost_models/spec/dtype.h"
#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem.h"
#include "planner/plan/plan.h"

namespace tessera {

struct WireOptions {
  std::optional<DType> wire;        // instead of the weights' own type, from `wire_from_step` on
  std::int64_t wire_from_step = 1;  // the first is 1
  bool incremental = false;         // what did not change since the last switch stays
};

/// The keys `wire` and `wire_from_step` of a run's section `reshard`.
void read_wire(ObjectReader& reshard, std::optional<DType>& wire, std::int64_t& from_step);

/// Of the run in a folder, or of the folder that a file of it lies in; defaults where there is no
/// run.yaml. What cannot be read is appended to `problems`.
WireOptions read_wire_options(const std::filesystem::path& run, Problems& problems);

/// Bytes that the busiest rank receives in the switch of `step`; at most that many where the switch
/// is incremental.
std::int64_t switch_bytes(const Plan& plan, const PlannedReshard& pair, const WireOptions& options,
                          std::int64_t step);

}  // namespace tessera
