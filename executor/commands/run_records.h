// What rank 0 of a run writes and prints: metrics, samples, answers of validations, lines for
// people.
//
// Owned by rank 0's Rank; one thread. A file that cannot be written later warns and never ends the
// run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "executor/commands/run_rules.h"
#include "executor/config/run_config.h"
#include "executor/http/page_server.h"
#include "executor/prompts/prompt_set.h"
#include "executor/records/run_log.h"
#include "executor/records/step_progress.h"
#include "executor/rl/rows.h"

namespace tessera {

class RunRecords {
 public:
  /// Error (io) where the run's files cannot be opened, (bad_input) where its rules cannot be read.
  /// A port for Prometheus that is taken is told, and nobody listens. `on_processors`: the ranks
  /// are.
  RunRecords(const std::filesystem::path& run, const RunConfig& config, const Plan& plan,
             bool on_processors);

  /// A line that is written and printed, or only written.
  void note(const std::string& line) { progress_.note(line); }
  void detail(const std::string& line) { progress_.detail(line); }

  /// Before the first step of a run that begins after `step`, from a checkpoint or from nothing:
  /// later numbers are forgotten. Says where that makes steps anew, and where none is left.
  void begin_after(std::int64_t step, bool from_checkpoint);

  /// What the rules and people ask for after a step; says which rules it violates, and of one whose
  /// updates were skipped that they were. A rule's pause is asked for in the run's folder.
  AskedActions judge(std::int64_t step, const Metrics& numbers);
  /// Says who has the run pause after `step`, saved.
  void paused(std::int64_t step);
  /// The steps after `step` come again.
  void rolled_back(std::int64_t step);

  /// A step that has ended; its line says which plan ran it, and how many steps these processes
  /// have made.
  void step(std::int64_t step, Metrics numbers, const PromptSet& prompts,
            std::span<const Sequence> sequences);
  /// A validation after `step` steps; its numbers join the step's line of the metrics, or
  /// have one, where they come `alone`, else they are among the step's. The answers become
  /// VALIDATION/STEP.jsonl.
  void validation(std::int64_t step, const Metrics& numbers, bool alone, const PromptSet& prompts,
                  std::span<const Sequence> answers);

 private:
  void serve(int port);

  RunLog log_;
  StepProgress progress_;
  std::filesystem::path run_, answers_;  // folders
  std::int64_t steps_;                   // that the run is to make; 0 where it validates alone
  bool record_experts_;                  // of the rollout, with its samples
  double plan_number_;
  std::int64_t steps_since_start_ = 0;
  std::optional<RunRules> rules_;
  std::optional<PageServer> prometheus_;
};

}  // namespace tessera
