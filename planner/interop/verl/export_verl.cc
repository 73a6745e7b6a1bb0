// verl: the same settings as a Hydra file and as a script of overrides; as a Ray job, too.
#include "cost_models/documents/problem.h"
#include "planner/interop/files/environment.h"
#include "planner/interop/files/script.h"
#include "planner/interop/verl/prepare_model.h"
#include "planner/interop/verl/verl.h"
#include "planner/interop/verl/verl_engines.h"
#include "planner/interop/verl/verl_job.h"
#include "planner/interop/verl/verl_settings.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

std::string yaml_file(const Plan& plan, const Settings& settings) {
  std::string text = comment_lines("verl " + std::string(kVerlVersion) +
                                   ": python3 -m verl.trainer.main_ppo --config-path "
                                   "\"$PWD\" --config-name verl. Made by tessera " +
                                   plan.provenance.tessera_version +
                                   "; what the plan does not determine keeps verl's defaults.");
  text += "hydra:\n  searchpath: [\"pkg://verl.trainer.config\"]\ndefaults:\n  - ppo_trainer\n";
  const std::string engine = model_engine(keys_of_plan(plan.engine).engine);
  if (!engine.empty()) text += "  - override model_engine: " + engine + "\n";
  return text + "  - _self_\n\n" + nested_yaml(settings);
}

std::vector<std::string> overrides(const Plan& plan, const Settings& settings) {
  std::vector<std::string> words;
  const std::string engine = model_engine(keys_of_plan(plan.engine).engine);
  if (!engine.empty()) words.emplace_back("model_engine=" + engine);
  for (const Setting& setting : settings) {
    const bool variable = setting.value.text.starts_with("${oc.env:");
    if (!variable) words.push_back(hydra_override(setting));
  }
  return words;
}

std::string demands(const std::vector<VerlVariable>& variables) {
  std::string text;
  for (const VerlVariable& variable : variables) {
    if (text.find(": \"${" + variable.name + ":?") != text.npos) continue;
    std::string what = variable.what;  // in double quotes, within braces
    for (std::size_t at = 0; (at = what.find_first_of("`\"$\\}", at)) != what.npos; at += 2) {
      what.insert(at, 1, '\\');
    }
    text += ": \"${" + variable.name + ":?set it to " + what + "}\"\n";
  }
  return text;
}

// The variables as overrides.
std::string variable_lines(const std::vector<VerlVariable>& variables) {
  std::string names;
  for (const VerlVariable& variable : variables) {
    names += "  \"" + variable.key + "=$" + variable.name + "\"\n";
  }
  return names.empty() ? names : "overrides+=(\n" + names + ")\n";
}

std::string variable_note(const VerlVariable& variable, RayStart ray) {
  return "Set the environment variable " + variable.name + " to " + variable.what + " (" +
         variable.key + "): the plan does not know it. " +
         (ray == RayStart::running ? "submit.sh stops with this sentence where it is missing."
          : ray == RayStart::by_hand
              ? "run.sh stops with this sentence where it is missing; verl.yaml reads it too."
              : "run.sh stops with this sentence where it is missing.");
}

std::string runtime_env(const std::vector<EnvironmentVariable>& environment) {
  std::string text = "working_dir: ./\nenv_vars:\n";
  for (const EnvironmentVariable& variable : environment) {
    text += comment_lines(variable.reason, "  # ");
    // Strings even where they look like numbers: Ray refuses others.
    text += "  " + variable.name + ": " + yaml_string(variable.value) + "\n";
  }
  return text;
}

// Variables by verl's own way to every worker: exported they would reach the trainer's process and
// what Ray starts on its host alone, and verl takes a name that it finds exported out of what it
// sends to the others (trainer/constants_ppo.py, get_ppo_ray_runtime_env).
Settings worker_environment(const std::vector<EnvironmentVariable>& environment) {
  Settings settings;
  for (const EnvironmentVariable& variable : environment) {
    settings.push_back({"ray_kwargs.ray_init.runtime_env.env_vars." + variable.name,
                        node_of(std::string_view(variable.value)), variable.reason, true});
  }
  return settings;
}

// The same as overrides, each below its reason.
std::string worker_lines(const Settings& settings) {
  if (settings.empty()) return {};
  std::string text =
      comment_lines("For every worker process, on every node that Ray runs on.") + "overrides+=(\n";
  for (const Setting& setting : settings) {
    text += comment_lines(setting.comment, "  # ");
    text += "  " + shell_word(hydra_override(setting)) + "\n";
  }
  return text + ")\n";
}

// Ray joins a command's words for a shell that reads them again on the cluster (subprocess'
// list2cmdline, then shell=True) and so loses quotes: the words travel in a file of working_dir.
constexpr const char* kRayCommand =
    "printf '%s\\0' python3 -m verl.trainer.main_ppo \"${overrides[@]}\" \"$@\" >verl_words\n"
    "exec ray job submit --address \"${RAY_ADDRESS:-http://127.0.0.1:8265}\" \\\n"
    "  --runtime-env runtime_env.yaml --no-wait -- xargs -0 -a verl_words env\n";

}  // namespace

std::optional<VerlJob> verl_job(const Plan& plan, const ExportOptions& options, RayStart ray,
                                Problems& problems) {
  const std::size_t before = problems.size();
  VerlOptions verl;
  verl.rollout = options.rollout;
  verl.model = options.model;
  verl.train_files = options.train_files;
  verl.val_files = options.val_files;
  verl.experiment = options.name;
  VerlSettings made = verl_settings(plan, verl, problems);
  if (problems.size() != before) return std::nullopt;
  std::vector<std::string> notes;
  for (const VerlVariable& variable : made.variables) {
    notes.push_back(variable_note(variable, ray));
  }
  made.notes.insert(made.notes.begin(), notes.begin(), notes.end());
  if (made.quantized) {
    made.notes.emplace_back(
        "The model's published weights are quantized. verl's own examples remove "
        "quantization_config from config.json, disable multi-token prediction (DeepSeek-V3) and "
        "dequantize what nothing else does (gpt-oss): " +
        std::string(kPrepareModel) + " makes such a folder; every node reads it.");
  }
  if (ray == RayStart::running || (ray == RayStart::by_hand && shape_of(plan).nodes > 1)) {
    made.notes.emplace_back(
        "Start Ray on every node before: `ray start --head` on the first, `ray start "
        "--address=HOST:6379` on the others. Ray's dashboard has no password: keep it on a trusted "
        "network (CVE-2023-48022).");
  }
  std::string demand = demands(made.variables);
  std::string array = bash_array("overrides", overrides(plan, made.settings)) + demand +
                      variable_lines(made.variables);
  return VerlJob{std::move(made), std::move(array), std::move(demand)};
}

ExportedFile verl_run_script(const Plan& plan, const ExportTarget& target, const VerlJob& job) {
  return {"run.sh",
          script_head(plan,
                      "Runs verl's PPO trainer as the plan says; arguments are further "
                      "overrides. On several nodes start Ray on all of them first.") +
              job.array + worker_lines(worker_environment(environment_of(plan, target))) +
              "\nexec python3 -m verl.trainer.main_ppo \"${overrides[@]}\" \"$@\"\n",
          true};
}

void add_files_beside(const VerlJob& job, Export& out) {
  if (!job.made.quantized) return;
  out.files.push_back({std::string(kPrepareModel), std::string(kPrepareModelText), true});
}

namespace {

void write_verl(const Plan& plan, const ExportTarget& target, const ExportOptions& options,
                Export& out, Problems& problems) {
  auto job = verl_job(plan, options, RayStart::by_hand, problems);
  if (!job) return;
  const Settings workers = worker_environment(environment_of(plan, target));
  Settings all = job->made.settings;
  all.insert(all.end(), workers.begin(), workers.end());
  out.files.push_back({"verl.yaml", yaml_file(plan, all)});
  out.files.push_back(verl_run_script(plan, target, *job));
  add_files_beside(*job, out);
  out.notes = std::move(job->made.notes);
}

void write_ray(const Plan& plan, const ExportTarget& target, const ExportOptions& options,
               Export& out, Problems& problems) {
  auto job = verl_job(plan, options, RayStart::running, problems);
  if (!job) return;
  out.files.push_back({"runtime_env.yaml", runtime_env(environment_of(plan, target))});
  out.files.push_back(
      {"submit.sh",
       script_head(plan,
                   "Submits verl's PPO trainer to a running Ray cluster; RAY_ADDRESS is its "
                   "dashboard, by default this host's.") +
           job->array + "\ncd \"$(dirname \"$0\")\"\n" +
           comment_lines("Ray hands a command to a shell without its quotes: the words go in a "
                         "file that is sent with this folder.") +
           kRayCommand,
       true});
  add_files_beside(*job, out);
  out.notes = std::move(job->made.notes);
}

std::string type_advice(const Plan&) {
  return "verl 0.9.1 has no key for it and Ray fills its pools from any nodes: give the nodes of "
         "each type a resource of their own (ray start --resources) and its name to "
         "RayResourcePool's accelerator_type where the trainer makes its pools.";
}

}  // namespace

ExportTarget verl_target() {
  return {.name = "verl",
          .meaning = "verl with FSDP",
          .engines = {"verl"},
          .program = ExportedProgram::verl,
          .write = write_verl,
          .type_advice = type_advice,
          .sleep_mode = true};
}

ExportTarget verl_megatron_target() {
  ExportTarget target = verl_target();
  target.name = "verl-megatron";
  target.meaning = "verl with Megatron";
  target.engines = {"verl-megatron"};
  target.megatron_kernels = true;
  return target;
}

ExportTarget verl_veomni_target() {
  ExportTarget target = verl_target();
  target.name = "verl-veomni";
  target.meaning = "verl with VeOmni";
  target.engines = {"verl-veomni"};
  return target;
}

ExportTarget verl_torchtitan_target() {
  ExportTarget target = verl_target();
  target.name = "verl-torchtitan";
  target.meaning = "verl with torchtitan";
  target.engines = {"verl-torchtitan"};
  return target;
}

ExportTarget ray_target() {
  ExportTarget target = verl_target();
  target.name = "ray";
  target.meaning = "the verl job on a Ray cluster";
  target.engines = {"verl", "verl-megatron", "verl-torchtitan", "verl-veomni"};
  target.write = write_ray;
  return target;
}

}  // namespace tessera
