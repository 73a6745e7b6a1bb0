// Scores from a sandbox service: the code of a response is run there, by HTTP, test by test.
//
// A service that crashes, hangs, lies or floods costs the responses that it was asked about, and no
// more: each request has a limit of time and size, is tried again where the service may only be
// busy, and a response of which one test could not be run has no score. One owner, one thread;
// requests go over several connections, each with a thread of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "cost_models/documents/problem_list.h"
#include "executor/rewards/reward_scorer.h"
#include "executor/rewards/sandbox_cases.h"

namespace tessera {

struct SandboxService {
  std::string server;              // http://HOST:PORT; empty = none
  std::string path = "/run_code";  // of the service
  int connections = 64;            // at once, over all ranks
  SandboxLimits limits;
  int tries = 3;             // of a request that was refused, or answered by 429, 502, 503 or 504
  double retry_delay_s = 1;  // after the first try, twice as long after the second, ...
  std::size_t largest_reply = std::size_t{1} << 20;  // bytes
};

/// Seconds that one request may take: verl's, a case's time to compile and to run and ten more.
double request_timeout_s(const SandboxLimits& limits);

/// A Problem of `run_file` where nobody listens there.
void check_service(const SandboxService& service, const std::string& run_file, Problems& problems);

class SandboxScorer final : public RewardScorer {
 public:
  /// Precondition: connections > 0. Connects with the first request.
  SandboxScorer(SandboxService service, int connections);
  /// Gives up what is on its way.
  ~SandboxScorer() override;

  void submit(RewardRequest request) override;
  void poll() override;
  std::size_t answered() const override;
  bool wait(std::chrono::milliseconds most) override;
  std::vector<RewardAnswer> finish() override;

 private:
  class Lanes;
  std::unique_ptr<Lanes> lanes_;
};

}  // namespace tessera
