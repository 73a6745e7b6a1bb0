#include "executor/commands/check_run.h"

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/adapters.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/layout/parameter_table.h"
#include "executor/checkpoint/model_folder.h"
#include "executor/checkpoint/peft_folder.h"
#include "executor/comm/nccl_world.h"
#include "executor/commands/run_rules.h"
#include "executor/loop/resume.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// All ranks on this host: each wants a GPU.
void require_gpus(int ranks) {
  const int gpus = cuda_device_count();
  if (gpus >= ranks) return;
  throw Error(ExitCode::missing, "the run wants " + std::to_string(ranks) + " GPUs, and " +
                                     std::to_string(gpus) + " are visible (nvidia-smi lists them)");
}

/// The weights that the roles read, by the heads of their files; what a model has not is noted.
void check_weights(const RunInputs& inputs, std::vector<std::string>& notes, Problems& problems) {
  if (inputs.config.trainer.random_weights) return;
  std::set<std::pair<std::string, bool>> seen;  // folders, and whether a value head is read
  for (const RolePlan& role : inputs.plan.roles) {
    const ModelSpec model = inputs.plan.model_of(role.role);
    const std::string& path = inputs.plan.models.at(role.model).path;
    const bool read = role.role != Role::rollout && !role.ranks.empty();
    if (!read || !seen.emplace(path, model.head == ModelHead::value).second) continue;
    const auto folder = ModelFolder::open(path, problems);
    const ParameterTable table = parameter_table(model);
    if (!folder || !check_tensors(*folder, table, problems)) continue;
    const std::vector<std::string> others = unknown_tensors(*folder, table);
    if (others.empty() || model.head == ModelHead::value) continue;
    notes.push_back("[Model] " + path + " has " + std::to_string(others.size()) +
                    " tensors that the model has not, which are left out: " + others.front() +
                    (others.size() > 1 ? ", ..." : ""));
  }
}

/// Adapters to begin with, by the head of their file.
void check_adapters(const RunInputs& inputs, Problems& problems) {
  const ActorConfig& actor = inputs.config.actor;
  if (actor.adapters.empty()) return;
  const auto file = open_peft_tensors(actor.adapters, problems);
  if (!file) return;
  const ParameterTable table = parameter_table(inputs.plan.model_of(Role::actor));
  check_peft_tensors(*file, actor.adapters, adapter_table(table, actor.lora), problems);
}

/// A path to go on from holds a checkpoint whose files are whole.
void check_resume(const CheckpointConfig& config) {
  if (config.resume_mode != ResumeMode::resume_path) return;
  Problems problems;
  if (sound_checkpoints(config, {}, {}, problems).empty()) {
    throw Error(ExitCode::bad_input, std::move(problems));
  }
}

/// A profile of rules by name or path; what it says is read by RunRules.
void look_for_rules(const RunInputs& inputs, Problems& problems) {
  const std::string& rules = inputs.config.trainer.rules;
  Problems missing;
  if (rules.empty() || find_config(rules, "rules", ".json", missing)) return;
  for (Problem& problem : missing) {
    problem.found = "'" + problem.file + "', " + problem.found;
    problem.file = inputs.config.reward.functions.programs.run_file;
    problem.place = "trainer.rules";
    problems.push_back(std::move(problem));
  }
}

}  // namespace

void check_run(const TrainOptions& options, const RunInputs& inputs) {
  Problems problems;
  check_rewards(inputs, problems);
  std::vector<std::string> notes;
  check_weights(inputs, notes, problems);
  check_adapters(inputs, problems);
  try {
    const std::vector<std::string> more = notes_of(inputs, read_run_prompts(inputs));
    notes.insert(notes.end(), more.begin(), more.end());
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_input) throw;
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  look_for_rules(inputs, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  check_resume(inputs.config.trainer.checkpoint);
  const std::string& rules = inputs.config.trainer.rules;
  if (!rules.empty()) RunRules(rules, inputs.plan, options.device == "cpu");
  if (options.device == "cuda") require_gpus(inputs.plan.world_size());
  if (!options.run.empty()) return;  // the run that follows says them in its log
  for (const std::string& line : notes) std::puts(line.c_str());
}

}  // namespace tessera
