// The account of memory of a rank of a plan: what every role on it holds in a phase, class by
// class.
//
// The numbers are those by which the planner fills its ranks (peak_memory.h): the largest sum of
// all ranks and phases is the plan's peak. Pure functions; bytes, ranks are global.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/memory.h"
#include "cost_models/spec/units.h"
#include "cost_models/spec/workload.h"
#include "planner/pricing/memory_limit.h"

namespace tessera {

struct Calibration;
struct Plan;

/// One role on the rank in a phase.
struct RoleAccount {
  Role role = Role::actor;
  int stage = 0, stages = 1;  // of its pipeline
  MemoryUse use;              // on the device; without the reserve
  MemoryUse asleep;           // kept off the device: in host memory, or unmapped
};

/// The rank in one phase.
struct PhaseAccount {
  Phase phase = Phase::gen;
  std::vector<RoleAccount> roles = {};
  Bytes reserve = {};  // outside the allocator: context, libraries, communicators
  Bytes sum = {};      // of all roles, and the reserve
  int fullest_rank = 0;
  Bytes fullest_sum = {};  // of the rank that holds most in this phase
};

struct MemoryAccount {
  int rank = 0;
  std::size_t at = 0;                     // of `phases`: the one that is looked at
  std::vector<PhaseAccount> phases = {};  // of the schedule, in its order
  Bytes device = {}, limit = {};          // of the rank
  MemoryMargin margin = {};               // what `limit` leaves of `device`
  Bytes peak = {};                        // of the fullest rank in its fullest phase
  Bytes planned_peak = {};                // as the plan states it; another where its constants are

  const PhaseAccount& looked_at() const { return phases[at]; }
};

/// nullopt: the fullest rank, and the phase in which the rank holds most.
struct MemoryQuestion {
  std::optional<int> rank = {};
  std::optional<Phase> phase = {};
  std::optional<double> risk = {};  // nullopt: the one that the plan was made with
};

/// nullopt where the plan has no such rank or phase, or a layout that is impossible: then Problems
/// are appended. Precondition: the plan is valid.
std::optional<MemoryAccount> memory_account(const Plan& plan, const Calibration& calibration,
                                            const MemoryQuestion& question, Problems& problems);

/// What a rank holds at most, and what a plan may use of its device.
struct RankPeak {
  Bytes peak = {}, limit = {};
};

/// Of every rank of the plan by its number, those without a role at zero; empty and Problems where
/// a layout is impossible. Throws Stopped. Precondition: the plan is valid.
std::vector<RankPeak> rank_peaks(const Plan& plan, const Calibration& calibration,
                                 Problems& problems, const std::stop_token& stop = {});

/// The classes of the rank in the phase, by role, against the limit; then all phases of the rank.
std::string describe(const MemoryAccount& account);
std::string to_json(const MemoryAccount& account);

}  // namespace tessera
