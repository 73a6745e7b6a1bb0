#include "cli/dispatch.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct External {
  std::string_view command, program, summary;
};

constexpr std::array<External, 8> kExternal{{
    {"bench", "tessera-run", "Measure reshards, collectives and training beside their ceilings"},
    {"calibrate", "tessera-run", "Measure this machine and fit the cost models to it"},
    {"init-model", "tessera-run", "Write a Hugging Face folder with random weights"},
    {"make-data", "tessera-run", "Write digit tasks (reverse, copy, sort) as JSONL"},
    {"tokenize", "tessera-run", "Print token ids as JSON"},
    {"train-reward", "tessera-run", "Train a reward model on pairs of answers"},
    {"verify-weights", "tessera-run", "Whether two folders or servers hold the same weights"},
    {"gui", "tessera-gui", "Open the window"},
}};

const External* find_external(std::string_view command) {
  const auto* found = std::find_if(kExternal.begin(), kExternal.end(),
                                   [&](const External& e) { return e.command == command; });
  return found == kExternal.end() ? nullptr : found;
}

std::vector<fs::path> candidate_folders() {
  std::vector<fs::path> folders;
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  if (!self.empty()) {
    folders.push_back(self.parent_path());
    folders.push_back(self.parent_path().parent_path() / "executor");  // build tree
    folders.push_back(self.parent_path().parent_path() / "gui");
  }
  if (const char* path = std::getenv("PATH")) {
    std::stringstream list(path);
    for (std::string folder; std::getline(list, folder, ':');) folders.emplace_back(folder);
  }
  return folders;
}

}  // namespace

bool is_external_command(std::string_view command) { return find_external(command) != nullptr; }

fs::path find_program(std::string_view program) {
  for (const fs::path& folder : candidate_folders()) {
    const fs::path candidate = folder / program;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  throw Error(ExitCode::missing,
              std::string(program) + " is not built: " +
                  (program == "tessera-gui"
                       ? "it needs Qt 6 and QCustomPlot (scripts/setup.sh installs them)"
                       : "it needs the torch wheel (scripts/setup.sh installs it)"));
}

int run_external_command(int argc, char** argv) {
  const External* external = find_external(argv[1]);
  TESSERA_CHECK(external != nullptr);
  const fs::path program = find_program(external->program);
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  const int first = external->program == "tessera-gui" ? 2 : 1;  // tessera-run keeps the command
  for (int i = first; i < argc; ++i) arguments.push_back(argv[i]);
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw Error(ExitCode::missing, program.string() + ": " + std::strerror(errno));
}

std::vector<std::string> external_commands() {
  std::vector<std::string> names;
  for (const External& external : kExternal) names.emplace_back(external.command);
  return names;
}

std::string external_commands_help() {
  std::string text = "More commands, in programs of their own (tessera COMMAND --help):\n";
  for (const External& external : kExternal) {
    text += "  " + std::string(external.command) + std::string(15 - external.command.size(), ' ') +
            std::string(external.summary) + "\n";
  }
  return text;
}

}  // namespace tessera
