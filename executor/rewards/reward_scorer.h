// Who scores responses outside the run: requests go in as responses finish, answers come out.
//
// The interface of processes (reward_workers.h) and of a service (sandbox_service.h). One owner,
// one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/rewards/rules.h"

namespace tessera {

/// One response to be scored: JSON texts for the truth and what else the prompt's line says.
struct RewardRequest {
  std::string data_source, response;
  std::string truth_json, extra_info_json;
};

struct RewardAnswer {
  std::optional<double> score;  // finite
  std::string failure;          // why there is none, in one line
  ScoreDetail detail;           // of a score
  std::string kind = {};        // of an exception: where it is raised and its type
  std::string traceback = {};   // of an exception, several lines
  std::string left_out = {};    // what was said beside a score and is not taken, and why
};

class RewardScorer {
 public:
  virtual ~RewardScorer() = default;

  /// Adds a request to those that wait.
  virtual void submit(RewardRequest request) = 0;
  /// Lets work go on, and takes in what has been answered, without waiting.
  virtual void poll() = 0;
  /// How many of the submitted requests have their answer.
  virtual std::size_t answered() const = 0;
  /// Lets work go on until all have their answer, or `most` has passed; whether all have.
  virtual bool wait(std::chrono::milliseconds most) = 0;
  /// Waits for all; one answer for each request submitted since the last call, in their order.
  virtual std::vector<RewardAnswer> finish() = 0;

  /// Submits these, with nothing submitted before, and waits for them.
  std::vector<RewardAnswer> score(std::span<const RewardRequest> requests) {
    for (const RewardRequest& request : requests) submit(request);
    return finish();
  }
};

}  // namespace tessera
