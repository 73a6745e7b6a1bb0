// The words of a shell script that start a program, without running it.
//
// Understands quotes, continuations, comments, here-documents, assignments, ${X:-default} and its
// kin, integer arithmetic, arrays, and `if`, `case`, `&&` and `||` over tests of known words: what
// launch scripts of training jobs are written with. What it cannot know (command substitution,
// positional arguments, unset variables) stays unknown and is marked. Scripts are read as on a host
// with NVIDIA GPUs, where torch_npu cannot be imported. Where only a run would tell a branch, the
// commands of each are read, and behind them variables are those of the branch that names GPUs
// (gpu, cuda), else of the default one (`else`, `*`; without one, none is taken). Commands inside
// loops and functions are read as if they ran once. Pure; never executes anything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

struct ShellWord {
  std::string text;
  int line = 0;
  bool known = true;               // false: holds something that only a run would tell
  std::string unknown;             // what: "$(nproc)", "$1"
  std::vector<std::size_t> holes;  // where in `text` it is missing
};

using ShellCommand = std::vector<ShellWord>;

/// Every simple command of the script in order, redirections and assignments left out.
/// nullopt-like: an empty list and Problems where quotes do not end or an expansion is malformed.
/// `notes`, where given, gets a sentence for each word and branch that was assumed.
std::vector<ShellCommand> shell_commands(std::string_view script, const std::string& file,
                                         Problems& problems,
                                         std::vector<std::string>* notes = nullptr);

}  // namespace tessera
