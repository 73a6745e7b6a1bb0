// What a rank of a run reads before it starts: the plan, the run file, the prompts.
//
// Every rank reads the same files, and all of them before the run begins. Torch-free.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/training_origin.h"
#include "executor/config/run_config.h"
#include "executor/prompts/prompt_set.h"
#include "planner/plan/plan.h"

namespace tessera {

struct TrainOptions {
  std::string run;                   // a folder that `tessera run` prepared, or:
  std::string plan, config, output;  // what a bare launcher starts from
  std::string device = "auto";
  std::string config_name;  // the file or preset that the configuration is of; default its own file
  std::vector<std::string> overrides;  // KEY=VALUE of a command line that are merged into it
  bool check = false;                  // read everything and leave
};

struct RunInputs {
  Plan plan;
  RunConfig config;
  std::optional<TrainingOrigin> origin;  // of the actor's weights, where a run has exported them
};

/// The error, its problems of the run's configuration with their place in the file or on the
/// command line that its user has (place_overridden).
Error with_places(const Error& error, const TrainOptions& options);

/// Throws Error(bad_input) with every problem of the files.
RunInputs read_run_inputs(const TrainOptions& options);

/// The prompts that a run trains on, and those that it validates with, where it has some.
struct RunPromptSets {
  PromptSet train;
  std::optional<PromptSet> validation;
  bool continued = false;  // they begin behind those that the run before took
};

/// Prompts of weights that a run has exported begin where it ended, unless the file states a seed.
/// Throws Error(bad_input) with every problem of the files.
RunPromptSets read_run_prompts(const RunInputs& inputs);

/// Appends what would cost every response its score (check_reward_functions). Starts processes: for
/// whoever looks at a run before it starts.
void check_rewards(const RunInputs& inputs, Problems& problems);

/// For people: prompts left out or cut, what trained the weights before, an engine that the plan is
/// not for.
std::vector<std::string> notes_of(const RunInputs& inputs, const RunPromptSets& prompts);

}  // namespace tessera
