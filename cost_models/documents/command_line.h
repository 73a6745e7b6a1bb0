// A command line of several commands, parsed and carried out: what tessera and tessera-run share.
//
// A command's callback throws Error for what ends it, or CLI::RuntimeError with a code of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

namespace tessera {

/// Checks of an option's number, which say what was found and what was expected: finite, and above
/// 0 or 0 and more.
CLI::Validator above_zero();
CLI::Validator from_zero();

/// Runs the command that argv names. Returns 0, also for help; the command's own code; or `usage`,
/// once what is wrong with an option is printed. Throws Error(usage) with the nearest command where
/// argv names none, and Error(io) where what was printed did not arrive; `elsewhere` are commands
/// of other programs.
int run_command_line(CLI::App& app, int argc, char** argv,
                     std::span<const std::string> elsewhere = {});

}  // namespace tessera
