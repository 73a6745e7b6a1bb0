// The loop of a run: the plan's schedule, step after step, on one rank.
//
// Every rank runs it alike; rank 0 also writes what the run folder holds. Collective over the
// world.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "executor/loop/run_saver.h"
#include "executor/loop/worker.h"
#include "executor/prompts/prompt_set.h"
#include "executor/rules/rule_actions.h"
#include "simulator/timeline/rank_status.h"
#include "simulator/timeline/timeline.h"

namespace tessera {

struct Plan;

/// Who is told what happens; every function may be empty. Called on every rank.
struct RunObserver {
  std::function<void(Phase phase, std::int64_t step)> phase_started;
  /// All ranks' numbers of a finished step (equal on every rank) and its experience.
  std::function<void(std::int64_t step, const Metrics& numbers, const Experience& experience)>
      step_finished;
  /// What the rules ask for after a step, before it is saved; every rank's are joined.
  std::function<AskedActions(std::int64_t step, const Metrics& numbers)> judged;
  /// The run is as it was after `step` steps, and goes on from there.
  std::function<void(std::int64_t step)> rolled_back;
  /// The run pauses from now on, for as long as any rank's `paused` says so.
  std::function<void(std::int64_t step)> pauses;
  std::function<bool()> paused;
  /// Answers and numbers of a validation after `step` steps; 0 = before the first one.
  std::function<void(std::int64_t step, const Metrics& numbers, std::span<const Sequence> answers)>
      validated;
  std::function<void(std::int64_t step, const ReshardReport& report)> weights_moved;
  /// The rollout holds what the actor trains.
  std::function<void(std::int64_t step, const CertificateReport& report)> weights_verified;
  Note note;  // lines for people
  /// What was measured on this rank beside the loop since the last call, by metric name; asked for
  /// once a step.
  std::function<Metrics()> measured;
  /// Whether the run should end; asked between phases, the ranks agree on the largest answer.
  std::function<StopReason()> should_stop;
};

struct LoopResult {
  std::int64_t steps = 0;                 // finished ones, those before a resume among them
  StopReason stopped = StopReason::none;  // by should_stop
  Timeline timeline;                      // of this rank
};

/// What a run is made of. `validation` are the prompts of config.validation, nullptr = none.
struct RunPrompts {
  const PromptSet& train;
  const PromptSet* validation = nullptr;
};

/// Runs the steps after `saver->first_step()` up to config.trainer.total_training_steps, saving as
/// the run is configured and where it is stopped; without a saver all steps, and nothing is saved.
/// Validates as the run is configured: before the first step, unless the run goes on from a
/// checkpoint, and after steps, whose numbers then have those of the validation and
/// timing_s/testing.
/// What the rules of a step ask for happens after it: a roll-back, a pause, the end.
/// A stop is obeyed at once until the step's first update, then after the step: what is saved is
/// always the state between two steps. Throws PeerLost when a rank is gone, Error for everything
/// else that ends a run.
LoopResult run_training(Worker& worker, const Plan& plan, const RunConfig& config,
                        const RunPrompts& prompts, const RunObserver& observer,
                        RunSaver* saver = nullptr);

}  // namespace tessera
