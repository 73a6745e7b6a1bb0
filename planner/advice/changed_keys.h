// Keys of an exported script that differ between two plans.
//
// Pure but for what exporting reads.
#pragma once

#include <string>
#include <vector>

namespace tessera {

struct Plan;

/// "KEY: OLD -> NEW", in the order of the keys; "(not set)" where one side lacks it. Empty where
/// the plan's engine has no export of its own name, or a plan cannot be said in its keys.
std::vector<std::string> changed_keys(const Plan& before, const Plan& after);

}  // namespace tessera
