// What the calls of a step wait for, and how far the steps overlap, under a schedule.
//
// A call waits for the calls whose outputs it reads and for its pools, which run their calls in
// the step's order. Plain values and pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cost_models/spec/workload.h"
#include "simulator/schedules/cycle_ratio.h"

namespace tessera {

/// How far the steps of a training overlap.
enum class StepOverlap {
  synchronous,  // a step begins when all calls of the one before have ended
  split,        // calls wait for what they read and for their ranks alone; on policy
  /// Responses are generated a step ahead; every update's weights are sent before the next
  /// generation, for which both pools stop.
  one_step_off,
  /// Responses are generated ahead with weights that lack at most `staleness` updates; sending
  /// them occupies the rollout's ranks alone, as the actor keeps a copy to be read.
  asynchronous,
};

struct StepSchedule {
  StepOverlap overlap = StepOverlap::synchronous;
  int staleness = 0;  // of asynchronous, at least 1: updates that a response's weights may lack
  auto operator<=>(const StepSchedule&) const = default;
};

/// "synchronous", "asynchronous, staleness 2".
std::string name_of(const StepSchedule& schedule);

/// Global ranks of each call, ascending; a phase that is missing is no call of the step.
using CallRanks = std::map<Phase, std::vector<int>>;

/// Ranks that take part in the same calls.
struct Pool {
  std::vector<int> ranks;  // ascending
};

struct RepeatedCall {
  Phase phase = Phase::gen;
  std::vector<int> pools;  // whose ranks it occupies, ascending
  bool lent = false;       // trainers generate, beside the rollout
};

/// Call `call` of step k begins when call `on` of step k - `steps` has ended.
struct CallWait {
  int call = 0, on = 0, steps = 0;
};

struct CallGraph {
  std::vector<RepeatedCall> calls;  // in the step's order
  std::vector<Pool> pools;
  std::vector<CallWait> waits;  // but those for pools
};

/// The number of a call, of generation that of the rollout; -1: the step has none.
int call_number(const CallGraph& graph, Phase phase);
/// The call that takes the weights that responses are generated with: the reshard, else the
/// generation itself; -1: neither is there.
int weights_number(const CallGraph& graph);

/// Why ranks like these cannot run a schedule; empty: they can.
std::string why_no_schedule(const CallRanks& ranks, const StepSchedule& schedule);

/// `lent`: trainers' ranks, ascending, that answer a part of a step's prompts with the weights that
/// they train, before they learn in that step; none: the rollout answers all. Preconditions:
/// why_no_schedule is empty, and no lent rank is the rollout's.
CallGraph call_graph(const Workload& workload, const CallRanks& ranks, const StepSchedule& schedule,
                     const std::vector<int>& lent = {});

/// What calls wait for in their pools: the call before them there, or the last one of the step
/// before.
std::vector<CallWait> pool_waits(const CallGraph& graph);

/// The waits of calls and pools, each as long as the call that is waited for.
std::vector<EventWait> event_waits(const CallGraph& graph,
                                   const std::map<Phase, std::int64_t>& durations_ns,
                                   std::int64_t lent_ns = 0);

}  // namespace tessera
