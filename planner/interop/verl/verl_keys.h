// Which keys verl 0.9.1 has, had and does not read.
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/config/config_values.h"
#include "planner/interop/config/import_options.h"

namespace tessera {

/// Keys of verl that it does not read, given the others, each with the reason.
std::vector<IgnoredKey> ignored_keys(const ConfigValues& config);

/// Problems for keys that verl's version does not have, with did-you-mean or the new name.
Problems unknown_keys(const ConfigValues& config);

/// The name that a key of earlier versions of verl has now; empty where that is its own.
std::string current_name(std::string_view key);

/// Keys of earlier versions of verl under the name that they have now, each with a note; those that
/// are gone are taken out and appended to `gone`.
ConfigValues with_current_names(const ConfigValues& config, std::vector<IgnoredKey>& gone,
                                std::vector<std::string>& notes);

}  // namespace tessera
