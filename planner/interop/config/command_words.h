// Words of a command as keys and values: overrides of Hydra, and flags.
//
// Pure functions.
#pragma once

#include <cstddef>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/config/config_values.h"
#include "planner/interop/shell/shell_words.h"

namespace tessera {

/// One override of Hydra, "key=value", "+key=value" or "~key".
void read_override(const ShellWord& word, ConfigValues& out, Problems& problems);

/// --flag value, --flag=value and --flag alone, from the word `first` on; a leading word without a
/// flag is a served model. 0: of a command without a program that is known.
void read_flags(const ShellCommand& command, std::size_t first, ConfigValues& out);

}  // namespace tessera
