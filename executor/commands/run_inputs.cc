#include "executor/commands/run_inputs.h"

#include <filesystem>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/config/run_config_vllm.h"
#include "planner/engines/read_plan.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

PromptSetOptions prompt_options(const RunInputs& inputs) {
  const DataConfig& data = inputs.config.data;
  return {.files = data.train_files,
          .weights = data.train_weights,
          .model = inputs.plan.models.at("actor").path,
          .rewards = inputs.config.reward.functions,
          .components = inputs.config.algorithm.advantage.gdpo_reward_keys,
          .per_step = inputs.plan.workload.prompts_per_step,
          .max_tokens = data.max_prompt_length,
          .filter_overlong = data.filter_overlong_prompts,
          .truncation = data.truncation,
          .chat_options = data.chat_template_options,
          .vocabulary = inputs.plan.model_of(Role::actor).vocab,
          .seed = data.seed,
          .shuffle = data.shuffle};
}

}  // namespace

RunInputs read_run_inputs(const TrainOptions& options) {
  const fs::path plan_file =
      options.run.empty() ? fs::path(options.plan) : fs::path(options.run) / "plan.json";
  const fs::path config_file =
      options.run.empty() ? fs::path(options.config) : fs::path(options.run) / "run.yaml";
  Problems problems;
  std::optional<Plan> plan = read_executable_plan(plan_file, problems);
  if (!plan) throw Error(ExitCode::bad_input, std::move(problems));
  std::optional<RunConfig> config = read_run_config(config_file, *plan, problems);
  for (Problem& problem : problems) {
    if (!options.config_name.empty() && problem.file == config_file) {
      problem.file = options.config_name;
    }
  }
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  return {std::move(*plan), std::move(*config)};
}

RunPromptSets read_run_prompts(const RunInputs& inputs) {
  PromptSetOptions options = prompt_options(inputs);
  RunPromptSets sets{.train = read_prompt_set(options), .validation = {}};
  if (inputs.config.validation.files.empty()) return sets;
  options.files = inputs.config.validation.files;
  options.key = "data.val_files";
  options.weights.clear();
  options.per_step = 1;
  options.shuffle = false;
  sets.validation = read_prompt_set(options);
  return sets;
}

std::vector<std::string> notes_of(const RunInputs& inputs, const RunPromptSets& prompts) {
  std::vector<std::string> all = prompts.train.notes;
  if (prompts.validation) {
    const std::vector<std::string>& more = prompts.validation->notes;
    all.insert(all.end(), more.begin(), more.end());
  }
  if (const std::string note = generation_note(inputs.plan, inputs.config.rollout); !note.empty())
    all.push_back(note);
  return all;
}

}  // namespace tessera
