// Commands that live in other programs: `tessera-run` (torch) and `tessera-gui` (Qt).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// True for commands that tessera-run or tessera-gui carries out.
bool is_external_command(std::string_view command);

/// Replaces this process by the program that knows argv[1]. Throws Error(missing) with the way to
/// get the program when it is neither beside this one, nor in the build tree, nor on PATH.
int run_external_command(int argc, char** argv);

/// "tessera-run", "tessera-gui": where it is. Throws Error(missing).
std::filesystem::path find_program(std::string_view program);

/// Names of the commands that other programs carry out.
std::vector<std::string> external_commands();

/// One line per external command, for --help.
std::string external_commands_help();

}  // namespace tessera
