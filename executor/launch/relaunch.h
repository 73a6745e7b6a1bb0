// Starting a command again on several ranks of this host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// True when a launcher started this process.
bool launched();

/// The words of a command line with `--device` set to what it came out as.
std::vector<std::string> on_device(const std::vector<std::string>& words, bool gpu);

/// Where this program lies.
std::string own_path();

/// Whether each of `ranks` ranks gets one of the host's `gpus`. Throws Error (missing) where
/// `device` is cuda and there are too few: what asks for GPUs is never measured or trained on CPUs.
bool get_gpus(std::string_view device, int ranks, int gpus);

/// mpirun (CPU) or this program's `start` (GPU) with this program and on_device(words) on `ranks`
/// ranks.
std::vector<std::string> launcher_line(const std::vector<std::string>& words, int ranks, bool gpu);

/// Replaces this process by launcher_line(...). Throws Error (missing) when the launcher cannot be
/// started.
[[noreturn]] void relaunch(const std::vector<std::string>& words, int ranks, bool gpu);

}  // namespace tessera
