// Keys of another tool's script that differ between two plans.
//
// Pure but for what exporting reads.
#pragma once

#include <string>
#include <vector>

namespace tessera {

struct Plan;
class ConfigValues;

/// "KEY: OLD -> NEW", in the order of the keys; "(not set)" where one side lacks it,
/// and Hydra's + before a key that verl's own files do not list. Empty where
/// the plan's engine has no export of its own name, or a plan cannot be said in its keys.
///
/// Old values are those of `script`, which `before` was read from; of the export of `before` where
/// that is nullptr. A limit of tokens that changes is of no effect in a script of verl whose
/// micro-batches count sequences: the switch to dynamic batches is then among the keys. Keys that a
/// script leaves to verl and that would follow a changed one (the reference's, the actor's) are
/// among them with the plan's value, and those that it states under a former name are to be
/// removed.
std::vector<std::string> changed_keys(const Plan& before, const Plan& after,
                                      const ConfigValues* script = nullptr);

}  // namespace tessera
