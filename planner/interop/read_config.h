// Which form another tool's configuration has, and its keys and values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/config/config_values.h"

namespace tessera {

/// Recognises what the text is by its content (and `file`'s extension) and reads it. nullopt and
/// Problems where it is none of the forms of config_values.h or does not parse.
std::optional<ConfigValues> read_config_values(std::string_view text, const std::string& file,
                                               Problems& problems);

}  // namespace tessera
