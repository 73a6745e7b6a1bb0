// Programs that this process starts and clears up, with all that they leave behind.
//
// A child leads a process group of its own, so that what a terminal sends reaches this process
// only; it gets SIGTERM when this process ends. One thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

inline constexpr int kNotStarted = 127;  // exit code of a child whose program cannot be executed

/// From now on this process is the parent of what its children leave.
void adopt_orphans();

/// The program, found by PATH, without standard input. Throws Error where no process can be made.
pid_t start_child(const std::vector<std::string>& command);

/// A shell's exit code of a status of waitpid.
int exit_code_of_status(int status);

/// Kills every child and what those leave, for a second at most.
void kill_children();

/// Runs a program to its end; its exit code, 128 and the signal where one has ended it. nullopt
/// once `cancelled` is true: the program is ended then, with all that it has started. Throws Error
/// where it cannot be started.
std::optional<int> run_child(const std::vector<std::string>& command,
                             const std::function<bool()>& cancelled);

}  // namespace tessera
