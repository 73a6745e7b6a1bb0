// Trainers that generate while they would be idle: what it takes them, and whether memory allows
// it.
//
// The rollout's own layout on the ranks that train, as many replicas as they hold; its weights come
// from the training weights of those ranks, as if none lay in place already, and go when the
// trainers train. Where the cache and the weights of a replica do not fit beside what the trainers
// keep, their optimizer states wait in host memory meanwhile, which costs the way there and back;
// where a replica still does not hold its longest sequence, nothing is lent. Also the second copy
// of its weights that an actor keeps for others to read while it trains on. Bytes of a rank,
// seconds, nanoseconds; made of a plan, of one thread, and keeps references to what it was made of.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/engine/role_costs.h"
#include "simulator/schedules/steady_state.h"

namespace tessera {

class LentRollout {
 public:
  /// Draws lengths from the options' seed on, as call_times.
  LentRollout(const Plan& plan, const Calibration& calibration, const SimulationOptions& options,
              const CallRanks& ranks);

  /// Why no trainer can be lent beside so many further bytes of each rank; empty: they can. Sets
  /// what `share` says.
  std::string why_not(std::int64_t beside);
  /// The calls where trainers answer the last `prompts` of a step, after why_not. Precondition: the
  /// times' draws are the first of those that this was made with.
  CallTimes times(const CallTimes& whole, std::int64_t prompts);
  LentShare share(std::int64_t prompts) const;

  /// Weights of a rank of the actor, as they are sent, and why there is no room for them.
  std::int64_t copy_bytes() const { return copy_bytes_; }
  std::string why_no_copy() const;

 private:
  struct Use {
    std::int64_t resident = 0, peak = 0, parkable = 0, limit = 0;
  };
  void measure(const Calibration& calibration, const SimulationOptions& options);
  std::int64_t generation_ns(int draw, std::int64_t first, std::int64_t prompts, bool lent);
  double weights_seconds(Bytes weights);

  const Plan& plan_;
  PlanCosts costs_;
  const Calibration& calibration_;
  std::uint64_t seed_;
  std::vector<int> rollout_, trainers_;
  std::vector<Use> use_;  // by rank
  std::int64_t copy_bytes_ = 0;
  LentShare share_;
  double cache_tokens_ = 0;
  std::map<std::pair<int, std::int64_t>, std::pair<std::int64_t, std::int64_t>> known_;
};

}  // namespace tessera
