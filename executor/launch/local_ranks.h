// All ranks of a run on this host, started at once: what `torchrun --standalone` does, without
// Python.
//
// The process that calls hosts the store in which the ranks meet, and stays until the last has
// ended. One call per process.
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// Starts `line` (a program's path and its arguments) once per rank, with the variables that
/// torchrun sets. When one fails the others are terminated; returns the code of the first that
/// failed (128 + signal where one ended it), 0 where none did. The ranks end with this process.
/// Error (missing) when no process can be started.
int run_local_ranks(const std::vector<std::string>& line, int ranks);

}  // namespace tessera
