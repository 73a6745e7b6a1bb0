#include "executor/commands/run_inputs.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/strict_yaml.h"
#include "cost_models/documents/yaml_overrides.h"
#include "cost_models/layout/parameter_table.h"
#include "executor/checkpoint/base_digest.h"
#include "executor/checkpoint/peft_folder.h"
#include "executor/config/dataflow_check.h"
#include "executor/config/run_config_lora.h"
#include "executor/config/run_config_vllm.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/hub_name.h"

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
          .end_token = inputs.plan.model_of(Role::actor).eos_token,
          .seed = data.seed,
          .shuffle = data.shuffle};
}

bool goes_on(const RunInputs& inputs, const PromptSet& prompts) {
  return inputs.origin && !inputs.config.trainer.seed_stated &&
         continues(*inputs.origin, data_of(prompts));
}

DefaultSeeds seeds_after(const std::optional<TrainingOrigin>& origin) {
  if (!origin) return {};
  return {.run = static_cast<std::uint64_t>(next_seed(*origin)),
          .order = static_cast<std::uint64_t>(origin->data.seed)};
}

/// What trained the weights before, and what of it this run repeats.
std::string note_of(const TrainingOrigin& origin, const RunInputs& inputs, bool continued) {
  const TrainerConfig& trainer = inputs.config.trainer;
  const std::string line = "[Start] the weights were trained for " + std::to_string(origin.steps) +
                           " steps by a run with seed " + std::to_string(origin.seed) +
                           "; this one has seed " + std::to_string(trainer.seed);
  if (static_cast<std::int64_t>(trainer.seed) == origin.seed) {
    return line + ", as its file states, and draws the same numbers again";
  }
  if (trainer.seed_stated) return line + ", as its file states";
  return line + " and begins " +
         (continued ? "after the " + std::to_string(origin.prompts) + " prompts of that one"
                    : "with the first of other prompts");
}

}  // namespace

Error with_places(const Error& error, const TrainOptions& options) {
  const std::string& name = options.config_name.empty() ? options.config : options.config_name;
  Problems none;
  const auto file = find_config(name, "runs", ".yaml", none);
  const auto text = file ? read_text_file(*file, kMostYaml, none) : std::nullopt;
  const auto document = text ? parse_yaml_as_far(*text, name, none) : std::nullopt;
  if (!document) return error;
  Problems problems = error.problems();
  place_overridden(*document, options.overrides, problems);
  return {error.code(), std::move(problems)};
}

RunInputs read_run_inputs(const TrainOptions& options) {
  const fs::path plan_file =
      options.run.empty() ? fs::path(options.plan) : fs::path(options.run) / "plan.json";
  const fs::path config_file =
      options.run.empty() ? fs::path(options.config) : fs::path(options.run) / "run.yaml";
  Problems problems;
  std::optional<Plan> plan = read_executable_plan(plan_file, problems);
  if (!plan) throw Error(ExitCode::bad_input, std::move(problems));
  auto origin = read_training_origin(plan->models.at("actor").path, problems);
  std::optional<RunConfig> config =
      read_run_config(config_file, *plan, problems, seeds_after(origin));
  if (config && !config->actor.adapters.empty()) {
    if (auto of_adapters = read_training_origin(config->actor.adapters, problems)) {
      origin = std::move(of_adapters);
      config = read_run_config(config_file, *plan, problems, seeds_after(origin));
    }
  }
  for (Problem& problem : problems) {
    if (!options.config_name.empty() && problem.file == config_file) {
      problem.file = options.config_name;
    }
  }
  if (config) check_dataflow(*plan, *config, plan_file.string(), problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  config->reward.functions.programs.run_file =
      options.config_name.empty() ? config_file.string() : options.config_name;
  return {std::move(*plan), std::move(*config), origin};
}

void check_rewards(const RunInputs& inputs, Problems& problems) {
  if (inputs.plan.find(Role::reward) != nullptr) return;  // a model scores
  check_reward_functions(inputs.config.reward.functions, problems);
}

RunPromptSets read_run_prompts(const RunInputs& inputs) {
  PromptSetOptions options = prompt_options(inputs);
  RunPromptSets sets{.train = read_prompt_set(options), .validation = {}};
  sets.continued = goes_on(inputs, sets.train);
  if (sets.continued) sets.train.source.begin_at(inputs.origin->prompts);
  if (inputs.config.validation.files.empty()) return sets;
  options.files = inputs.config.validation.files;
  options.key = "data.val_files";
  options.weights.clear();
  options.per_step = 1;
  options.shuffle = false;
  options.most = inputs.config.validation.most_prompts;
  sets.validation = read_prompt_set(options);
  return sets;
}

namespace {

/// Answers of the most likely tokens are alike: verl reports them as well, without a word.
std::string validation_note(const ValidationConfig& validation) {
  if (validation.files.empty() || validation.samples < 2) return {};
  if (validation.sampling.temperature > 0) return {};
  const std::string n = std::to_string(validation.samples);
  return "[Validation] val_kwargs: n is " + n + " without do_sample: the " + n +
         " answers of a prompt are the same, and best@" + n + " is mean@" + n;
}

/// Nothing is wrong with it, but rewards that look for an end, and lengths, are others then.
std::string endless_note(const Plan& plan) {
  return "[Rollout] every response has " + std::to_string(plan.workload.response_tokens.max) +
         " tokens, as no token ends one: " + plan.models.at("actor").path +
         " has no eos_token_id in generation_config.json or config.json and no eos_token in "
         "tokenizer_config.json";
}

/// Whether adapters that were trained beside `stated`, a folder or a repository, may stand beside
/// the weights in `path`: the same ones, or, where the former are not here, ones of the same name.
bool is_base(const std::string& stated, const ModelSource& model) {
  std::error_code error;
  if (fs::exists(stated, error)) {
    if (fs::equivalent(stated, model.path, error)) return true;
    Problems none;
    const ParameterTable table = parameter_table(model.spec);
    const auto theirs = base_digest(stated, table, none);
    if (theirs) return theirs == base_digest(model.path, table, none);
  }
  const auto last_part = [](const std::string& path) {
    const fs::path whole = fs::path(path + '/').lexically_normal().parent_path();
    return whole.filename().string();
  };
  if (stated == weights_of(model) || last_part(stated) == last_part(model.path)) return true;
  std::string cached = "models--" + stated;  // a folder of the hub's cache
  for (std::size_t at = 0; (at = cached.find('/', at)) != std::string::npos;) {
    cached.replace(at, 1, "--");
  }
  const fs::path path = model.path;
  return std::find(path.begin(), path.end(), fs::path(cached)) != path.end();
}

/// Adapters to begin with that were trained beside another model than the run's.
std::string base_note(const RunInputs& inputs) {
  const fs::path& folder = inputs.config.actor.adapters;
  if (folder.empty()) return {};
  Problems none;
  const auto settings = read_peft_settings(folder, none);
  const ModelSource& model = inputs.plan.models.at(inputs.plan.find(Role::actor)->model);
  if (!settings || settings->base_model.empty() || is_base(settings->base_model, model)) return {};
  return "[Start] the adapters of " + folder.string() + " were trained beside " +
         settings->base_model +
         ", as base_model_name_or_path of its adapter_config.json says, and "
         "stand beside the weights of " +
         model.path + " here";
}

}  // namespace

std::vector<std::string> notes_of(const RunInputs& inputs, const RunPromptSets& prompts) {
  std::vector<std::string> all = prompts.train.notes;
  if (prompts.validation) {
    const std::vector<std::string>& more = prompts.validation->notes;
    all.insert(all.end(), more.begin(), more.end());
  }
  if (std::string note = validation_note(inputs.config.validation); !note.empty()) {
    all.push_back(std::move(note));
  }
  if (prompts.train.end_tokens.empty()) all.push_back(endless_note(inputs.plan));
  if (inputs.origin) all.push_back(note_of(*inputs.origin, inputs, prompts.continued));
  if (const std::string note = generation_note(inputs.plan, inputs.config.rollout); !note.empty())
    all.push_back(note);
  if (const std::string note = adapter_note(inputs.plan, inputs.config.actor.lora); !note.empty())
    all.push_back(note);
  if (std::string note = base_note(inputs); !note.empty()) all.push_back(std::move(note));
  return all;
}

}  // namespace tessera
