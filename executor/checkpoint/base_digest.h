// Which weights a model's folder has, told from others by a part of their bytes.
//
// Adapters are worth something beside the weights that they were trained beside, and these may be
// many GB. Plain function; any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cost_models/documents/problem_list.h"
#include "cost_models/layout/parameter_table.h"

namespace tessera {

/// xxh3, 64 bits, in hexadecimal, of name, type, shape and up to four pieces of 4 KiB (the first,
/// the last, and two between) of each tensor of `table` that the folder has; however its files are
/// cut. nullopt with Problems.
std::optional<std::string> base_digest(const std::filesystem::path& folder,
                                       const ParameterTable& table, Problems& problems);

}  // namespace tessera
