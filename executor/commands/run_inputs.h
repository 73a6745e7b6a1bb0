// What a rank of a run reads before it starts: the plan, the run file, the prompts.
//
// Every rank reads the same files, and all of them before the run begins. Torch-free.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/config/run_config.h"
#include "executor/prompts/prompt_set.h"
#include "planner/plan/plan.h"

namespace tessera {

struct TrainOptions {
  std::string run;                   // a folder that `tessera run` prepared, or:
  std::string plan, config, output;  // what a bare launcher starts from
  std::string device = "auto";
  std::string config_name;  // what messages call the configuration; default its file
  bool check = false;       // read everything and leave
};

struct RunInputs {
  Plan plan;
  RunConfig config;
};

/// Throws Error(bad_input) with every problem of the files.
RunInputs read_run_inputs(const TrainOptions& options);

/// The prompts that a run trains on, and those that it validates with, where it has some.
struct RunPromptSets {
  PromptSet train;
  std::optional<PromptSet> validation;
};

/// Throws Error(bad_input) with every problem of the files.
RunPromptSets read_run_prompts(const RunInputs& inputs);

/// For people: prompts left out or cut, an engine that the plan is not for.
std::vector<std::string> notes_of(const RunInputs& inputs, const RunPromptSets& prompts);

}  // namespace tessera
