#include "executor/rewards/reward_functions.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

std::vector<std::string> words_of(const RewardFunction& function, const RewardPrograms& programs) {
  if (function.unit_tests) return unit_test_reward(programs.python, function.kwargs);
  if (function.file.empty()) return function.command;
  return python_reward(programs.python, function.file, function.function, function.kwargs);
}

/// Whether execvp would find it.
bool can_be_executed(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/bin:/usr/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

/// The program of a command, or the interpreter, that nobody finds.
std::optional<Problem> missing_program(const RewardFunction& function,
                                       const RewardPrograms& programs) {
  const bool python = function.command.empty();
  const std::string& program = python ? programs.python : function.command[0];
  if (can_be_executed(program)) return std::nullopt;
  return Problem{
      .file = programs.run_file,
      .place = python ? "reward.workers.python" : "reward.functions (" + function.name + ")",
      .found = program + ", which is not there or cannot be executed",
      .expected = python ? "a Python interpreter" : "a program"};
}

/// Has a process load what it needs and end again.
void check_start(const RewardFunction& function, const RewardPrograms& programs,
                 const std::vector<std::string>& words, Problems& problems) {
  const auto refusal = refusal_of_start(words, programs.limits);
  if (!refusal) return;
  const bool at_line = refusal->line > 0;
  const bool of_file = !function.file.empty();
  const bool late = refusal->late;
  problems.push_back(
      {.file = !of_file                ? programs.run_file
               : refusal->file.empty() ? function.file.string()
                                       : refusal->file,
       .place = at_line   ? std::to_string(refusal->line)
                : of_file ? ""
                          : "reward.workers.python",
       .found = refusal->found,
       .expected = of_file ? function.function +
                                 "(data_source, solution_str, ground_truth, extra_info" +
                                 (function.kwargs == "{}" ? "" : ", and those of reward_kwargs") +
                                 "), which " + programs.python + " can load"
                           : "an interpreter that runs",
       .hint = late ? "reward.workers.start_timeout_s" : ""});
}

}  // namespace

void check_reward_functions(const RewardOptions& options, Problems& problems) {
  for (const RewardFunction& function : options.functions) {
    if (function.rule != nullptr) continue;
    if (function.service) {
      check_service(options.programs.service, options.programs.run_file, problems);
      continue;
    }
    std::error_code error;
    if (!function.file.empty() && !std::filesystem::is_regular_file(function.file, error)) {
      const bool folder = std::filesystem::is_directory(function.file, error);
      problems.push_back(
          {.file = options.programs.run_file,
           .place = function.key,
           .found = "'" + function.file.string() + "', " + (folder ? "a folder" : "no such file"),
           .expected = "a Python file with " + function.function});
      continue;
    }
    bool boxed = false;
    const RewardPrograms& programs = options.programs;
    const auto words = in_sandbox(words_of(function, programs), programs.limits.sandbox, boxed,
                                  problems, programs.run_file);
    if (!words) return;  // the same of every other
    if (const auto missing = missing_program(function, programs)) {
      problems.push_back(*missing);
    } else if (function.command.empty()) {
      check_start(function, programs, *words, problems);
    }
  }
}

std::unique_ptr<RewardScorer> make_reward_scorer(const RewardFunction& function,
                                                 const RewardPrograms& programs, int rank,
                                                 int ranks, Problems& problems) {
  const int count = reward_workers_of(rank, programs.workers, ranks);
  if (function.rule != nullptr || count == 0) return nullptr;
  if (function.service) {
    const SandboxService& service = programs.service;
    const int connections = reward_workers_of(rank, service.connections, ranks);
    return std::make_unique<SandboxScorer>(service, std::max(1, connections));
  }
  bool boxed = false;
  auto words = in_sandbox(words_of(function, programs), programs.limits.sandbox, boxed, problems,
                          programs.run_file);
  if (!words) return nullptr;
  return std::make_unique<RewardWorkers>(std::move(*words), programs.limits, count);
}

}  // namespace tessera
