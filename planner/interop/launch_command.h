// What a launch script starts, and with which settings: the words of its commands as keys and
// values. Pure; nothing is run.
#pragma once

#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "planner/interop/config/config_values.h"
#include "planner/interop/shell/shell_words.h"

namespace tessera {

/// The command that starts a trainer of verl or a server, or the arguments of Megatron-LM, vLLM or
/// SGLang themselves. Problems where there is none of them.
void read_commands(const std::vector<ShellCommand>& commands, ConfigValues& out,
                   Problems& problems);

}  // namespace tessera
