// The report of a rank that ran out of memory: what it lacked, beside what the plan allowed it, and
// the limit under which a plan would have fitted.
//
// Pure functions over the plan and what was measured; one rank of a run writes the report, the one
// that was first. Bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "cost_models/memory.h"
#include "cost_models/spec/units.h"
#include "cost_models/spec/workload.h"
#include "executor/memory/memory_use.h"

namespace tessera {

struct Plan;

/// What the plan says of the rank in the phase; in a phase of no plan (load), of its fullest.
struct PlannedMemory {
  Phase phase = Phase::load;
  MemoryUse use;    // of all roles on the rank; the reserve apart
  Bytes reserve{};  // outside the allocator: context, libraries, communicators
  Bytes sum{};      // with the reserve
  Bytes limit{};    // that plans may fill
};

struct MemoryReport {
  int rank = 0;
  std::string device;  // "cuda:1", "cpu"
  Phase phase = Phase::load;
  std::int64_t step = 0;
  MemoryRefusal refusal;
  std::optional<PlannedMemory> planned;  // nullopt: the plan's constants are not found here
  double measured_share = 0;             // needed / planned; 0 = not known
  Bytes would_fit{};                     // the limit of a plan that fits by what was measured
};

/// `step`: 0 while the models load. The limit that would fit is the plan's, or the run's where that
/// is lower, over needed / planned where more was needed than planned. It always excludes the plan
/// that failed.
MemoryReport memory_report(const Plan& plan, const MemoryRefusal& refusal, int rank,
                           const std::string& device, Phase phase, std::int64_t step);

/// Several lines. `plan_again`: the command that plans anew, without its limit.
std::string describe(const MemoryReport& report, const std::string& plan_again);
/// oom.json.
std::string to_json(const MemoryReport& report);

/// Writes `folder`/oom.json and prints the report on standard error, unless another rank was first.
/// Returns one line that says who ran out.
std::string tell(const MemoryReport& report, const std::filesystem::path& folder,
                 const std::string& plan_again);

}  // namespace tessera
