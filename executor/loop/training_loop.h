// The loop of a run: the plan's schedule, step after step, on one rank.
//
// Every rank runs it alike; rank 0 also writes what the run folder holds. Collective over the
// world.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "executor/loop/prompt_set.h"
#include "executor/loop/worker.h"
#include "simulator/timeline/timeline.h"

namespace tessera {

struct Plan;

/// Who is told what happens; every function may be empty. Called on every rank.
struct RunObserver {
  std::function<void(Phase phase, std::int64_t step)> phase_started;
  /// All ranks' numbers of a finished step (equal on every rank) and its experience.
  std::function<void(std::int64_t step, const Metrics& numbers, const Experience& experience)>
      step_finished;
  std::function<void(std::int64_t step, const ReshardReport& report)> weights_moved;
  /// Communication seconds of this rank since the last call, by metric name.
  std::function<Metrics()> communication;
  /// True when the run should end; asked between phases, the ranks agree.
  std::function<bool()> should_stop;
};

struct LoopResult {
  std::int64_t steps = 0;
  bool stopped = false;  // by should_stop
  Timeline timeline;     // of this rank
};

/// Runs config.trainer.total_training_steps steps. Throws PeerLost when a rank is gone, Error for
/// everything else that ends a run.
LoopResult run_training(Worker& worker, const Plan& plan, const RunConfig& config,
                        const PromptSet& prompts, const RunObserver& observer);

}  // namespace tessera
