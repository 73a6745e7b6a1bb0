#include "executor/commands/check_run.h"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/comm/nccl_world.h"
#include "executor/commands/run_rules.h"
#include "executor/loop/resume.h"

namespace tessera {
namespace {

/// All ranks on this host: each wants a GPU.
void require_gpus(int ranks) {
  const int gpus = cuda_device_count();
  if (gpus >= ranks) return;
  throw Error(ExitCode::missing, "the run wants " + std::to_string(ranks) + " GPUs, and " +
                                     std::to_string(gpus) + " are visible (nvidia-smi lists them)");
}

/// A path to go on from holds a checkpoint whose files are whole.
void check_resume(const CheckpointConfig& config) {
  if (config.resume_mode != ResumeMode::resume_path) return;
  Problems problems;
  if (sound_checkpoints(config, {}, {}, problems).empty()) {
    throw Error(ExitCode::bad_input, std::move(problems));
  }
}

}  // namespace

void check_run(const TrainOptions& options, const RunInputs& inputs) {
  Problems problems;
  check_rewards(inputs, problems);
  std::vector<std::string> notes;
  try {
    notes = notes_of(inputs, read_run_prompts(inputs));
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_input) throw;
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  check_resume(inputs.config.trainer.checkpoint);
  const std::string& rules = inputs.config.trainer.rules;
  if (!rules.empty()) RunRules(rules, inputs.plan, options.device == "cpu");
  if (options.device == "cuda") require_gpus(inputs.plan.world_size());
  if (!options.run.empty()) return;  // the run that follows says them in its log
  for (const std::string& line : notes) std::puts(line.c_str());
}

}  // namespace tessera
