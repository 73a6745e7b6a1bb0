// A reward as a Python file, and requests to score.
#pragma once

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "executor/rewards/reward_workers.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline RewardRequest request(const std::string& response, const std::string& truth = "\"4\"") {
  return {.data_source = "s",
          .response = response,
          .truth_json = truth,
          .extra_info_json = "{\"index\":3}"};
}

/// A Python file in a folder of its own, and what it makes of responses.
struct PythonReward {
  TemporaryFolder folder;
  WorkerLimits limits{
      .timeout_s = 1.5, .start_timeout_s = 30, .memory_gib = 1, .sandbox = Sandbox::none};

  explicit PythonReward(const std::string& text) {
    std::ofstream(folder.path / "reward.py") << text;
  }
  std::string at(const std::string& name) const { return (folder.path / name).string(); }

  std::vector<RewardAnswer> score(const std::vector<std::string>& responses, int workers = 2,
                                  const std::string& kwargs = "{}") {
    RewardWorkers pool(python_reward("python3", folder.path / "reward.py", "compute_score", kwargs),
                       limits, workers);
    std::vector<RewardRequest> requests;
    for (const std::string& response : responses) requests.push_back(request(response));
    return pool.score(requests);
  }
};

}  // namespace tessera
