// The rewards of a run: rules and outside programs, each with a weight.
//
// Plain values; a run file says them (docs/inputs/run.md, "Rewards").
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "executor/rewards/reward_workers.h"
#include "executor/rewards/rules.h"
#include "executor/rewards/sandbox_service.h"

namespace tessera {

/// The name of the built-in program that runs unit tests (unit_test_reward).
inline constexpr std::string_view kUnitTestsName = "unit_tests";

/// The name of the reward of a sandbox service.
inline constexpr std::string_view kSandboxName = "sandbox_fusion";

/// One of them: a rule, or where `rule` is null unit tests, a sandbox service, the function of a
/// Python file, or where `file` is empty a command.
struct RewardFunction {
  std::string name;  // in metrics and messages
  double weight = 1;
  const RewardRule* rule = nullptr;
  std::filesystem::path file;
  std::string key = "reward.custom_reward_function.path";  // of run.yaml, that names the file
  std::string function = "compute_score", kwargs = "{}";   // of the file; a JSON object
  std::vector<std::string> command;
  bool unit_tests = false;  // with `kwargs`
  bool service = false;     // RewardPrograms::service
};

/// How outside programs are run.
struct RewardPrograms {
  int workers = 8;  // processes of each program, over all ranks
  std::string python = "python3";
  std::string run_file = "run.yaml";  // that says all this, as messages call it
  WorkerLimits limits;
  SandboxService service;
};

struct RewardOptions {
  std::vector<RewardFunction> functions = {{.name = "fraction", .rule = reward_rule("fraction")}};
  RewardPrograms programs;
};

/// What would cost every response its score: programs, files, sandboxes and services that are not
/// there, and Python files that cannot be loaded or whose function cannot be called. Each file is
/// loaded once, by a process as a run's, which ends then.
void check_reward_functions(const RewardOptions& options, Problems& problems);

/// Whose process scores the i-th sequence where `workers` processes are dealt to `ranks`.
inline int rank_of_reward(std::size_t i, int workers, int ranks) {
  return static_cast<int>(i % static_cast<std::size_t>(workers)) % ranks;
}
/// How many of them this rank has.
inline int reward_workers_of(int rank, int workers, int ranks) {
  return workers / ranks + (rank < workers % ranks ? 1 : 0);
}

/// The processes of one function on one rank, or its connections to the service; null for a rule,
/// and where the rank has none.
std::unique_ptr<RewardScorer> make_reward_scorer(const RewardFunction& function,
                                                 const RewardPrograms& programs, int rank,
                                                 int ranks, Problems& problems);

}  // namespace tessera
