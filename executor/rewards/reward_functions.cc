#include "executor/rewards/reward_functions.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

std::vector<std::string> words_of(const RewardFunction& function, const RewardPrograms& programs) {
  if (function.unit_tests) return unit_test_reward(programs.python, function.kwargs);
  if (function.file.empty()) return function.command;
  return python_reward(programs.python, function.file, function.function, function.kwargs);
}

}  // namespace

void check_reward_functions(const RewardOptions& options, Problems& problems) {
  for (const RewardFunction& function : options.functions) {
    if (function.rule != nullptr) continue;
    if (function.service) {
      check_service(options.programs.service, problems);
      continue;
    }
    std::error_code error;
    if (!function.file.empty() && !std::filesystem::is_regular_file(function.file, error)) {
      problems.push_back({.file = function.file.string(),
                          .found = "no file",
                          .expected = "a Python file with " + function.function});
      continue;
    }
    bool boxed = false;
    if (!in_sandbox(words_of(function, options.programs), options.programs.limits.sandbox, boxed,
                    problems)) {
      return;  // the same of every other
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
  auto words = in_sandbox(words_of(function, programs), programs.limits.sandbox, boxed, problems);
  if (!words) return nullptr;
  return std::make_unique<RewardWorkers>(std::move(*words), programs.limits, count);
}

}  // namespace tessera
