// The constants that a plan was made with: what its provenance states of them, and where they are
// now.
//
// A plan names its calibration with a digest, and holds the constants themselves where no shipped
// file does (a machine's own, learned from a run). Seconds, bytes and flop per second. Pure
// functions of the plan and of the shipped files; any thread.
#pragma once

#include <optional>
#include <string>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem_list.h"
#include "planner/plan/plan.h"

namespace tessera {

/// Digest of constants with those of their views, 16 hexadecimal digits.
std::string digest_of(const Calibration& calibration);

/// States in the plan's provenance that it was made with these.
void state_constants(Plan& plan, const Calibration& calibration);

/// What a plan is judged with.
struct PlanConstants {
  Calibration calibration;
  std::string other;  // why these are not those it was made with; empty where they are
};

/// The plan's own constants, else the shipped file of that name, else those of its cluster. nullopt
/// and Problems where none is there.
std::optional<PlanConstants> constants_of(const Plan& plan, Problems& problems);

}  // namespace tessera
