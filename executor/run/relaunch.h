// Starting a command again on several ranks of this host.
#pragma once

#include <string>
#include <vector>

namespace tessera {

/// True when a launcher started this process.
bool launched();

/// Replaces this process by mpirun (CPU) or torchrun (GPU) with this program and `words` on `ranks`
/// ranks. Throws Error (missing) when the launcher cannot be started.
[[noreturn]] void relaunch(std::vector<std::string> words, int ranks, bool gpu);

}  // namespace tessera
