// The probability of running out of memory that a request accepts (--risk).
//
// Plain values and pure functions.
#pragma once

#include <string>

#include "cost_models/documents/problem_list.h"

namespace tessera {

struct Plan;

/// Plans hold with 98 % unless something else is asked for.
inline constexpr double kDefaultRisk = 0.02;
/// The error bars come from a few dozen runs: they say nothing of rarer events. At one half a plan
/// is as likely to fail as to run.
inline constexpr double kLeastRisk = 1e-6, kMostRisk = 0.5;
/// One step of safety: a tenth of the risk.
inline constexpr double kSafetyStep = 0.1;

/// A Problem of --risk where it is outside of kLeastRisk to kMostRisk, or no number.
void check_risk(double risk, Problems& problems);

/// The number that a word states; kDefaultRisk and a Problem where it is none that a request may
/// have.
double risk_from(const std::string& word, Problems& problems);

/// The risk that a plan was made with; kDefaultRisk where it states none (plans that no search
/// made, and those of earlier versions).
double risk_of(const Plan& plan);

}  // namespace tessera
