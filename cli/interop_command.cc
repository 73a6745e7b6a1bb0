// tessera export and import: a plan as files of other tools, and their files as plans.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cost_models/documents/printable.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "planner/explain/report.h"
#include "planner/interop/export.h"
#include "planner/interop/import.h"
#include "planner/interop/price.h"
#include "planner/interop/verl/verl.h"
#include "planner/interop/write_export.h"
#include "planner/plan/plan_json.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct ExportCommand {
  std::string plan, target, output;
  ExportOptions options;
  bool json = false;
};

void print_json(const Export& made, const ExportCommand& command) {
  Node root = map_node();
  add(root, "target", node_of(std::string_view(command.target)));
  Node files = list_node(), notes = list_node();
  for (const ExportedFile& file : made.files) {
    Node each = map_node();
    add(each, "path", node_of(std::string_view((fs::path(command.output) / file.name).native())));
    add(each, "executable", node_of(file.executable));
    files.items.push_back(std::move(each));
  }
  for (const std::string& note : made.notes) notes.items.push_back(node_of(std::string_view(note)));
  add(root, "files", std::move(files));
  add(root, "notes", std::move(notes));
  std::printf("%s", json_text(root).c_str());
}

// "vllm or sglang".
std::string rollout_names() {
  std::string all;
  for (const std::string_view name : kVerlRollouts) {
    all += (all.empty() ? "" : " or ") + std::string(name);
  }
  return all;
}

int run_export(const ExportCommand& command) {
  Problems problems;
  const ExportTarget* const target = export_target_from(command.target, problems);
  const std::string& rollout = command.options.rollout;
  if (std::find(kVerlRollouts.begin(), kVerlRollouts.end(), rollout) == kVerlRollouts.end()) {
    problems.push_back({"--rollout", "", "'" + rollout + "'", rollout_names(), ""});
  }
  if (!problems.empty()) throw Error(ExitCode::usage, std::move(problems));
  const Plan plan = read_plan_or_throw(command.plan);
  const auto made = export_plan(plan, *target, command.options, problems);
  if (!made) {
    for (Problem& problem : problems) {
      if (problem.file == "plan") problem.file = command.plan;
    }
    throw Error(ExitCode::bad_input, std::move(problems));
  }
  write_export(*made, command.output);
  const int code = code_of_fit(plan, calibration_of(plan, ""), "export");
  for (const std::string& note : made->notes) {
    std::fprintf(stderr, "export: %s\n", printable(note).c_str());
  }
  if (command.json) {
    print_json(*made, command);
    return code;
  }
  for (const ExportedFile& file : made->files) {
    std::printf("%s\n", (fs::path(command.output) / file.name).c_str());
  }
  return code;
}

struct ImportCommand {
  std::string file, cluster, calibration, output;
  std::int64_t nodes = 0;          // 0 = the cluster's
  std::vector<std::string> types;  // POOL=TYPE
  ImportOptions options;
  bool json = false;
};

void run_import(const ImportCommand& command) {
  Problems problems;
  const auto text = read_text_file(command.file, std::size_t{1} << 20, problems);
  const auto cluster = read_cluster_spec(command.cluster, problems);
  if (!text || !cluster) throw Error(ExitCode::bad_input, std::move(problems));
  ImportOptions options = command.options;
  options.cluster = with_nodes(*cluster, command.nodes);
  for (const std::string& word : command.types) {
    const auto equals = word.find('=');
    if (equals == word.npos) {
      throw Error(ExitCode::usage,
                  {Problem{"--types", "", "'" + word + "'", "POOL=TYPE", "trainer=H100-SXM-80GB"}});
    }
    options.gpu_types[word.substr(0, equals)] = word.substr(equals + 1);
  }
  auto imported = import_config(*text, command.file, options, problems);
  if (!imported) throw Error(std::move(problems));
  Plan& plan = imported->plan;
  plan.provenance.tessera_version = TESSERA_VERSION;
  const Calibration calibration = calibration_for(plan.cluster, command.calibration);
  const Pricing pricing = price(plan, calibration, imported->memory_share);
  for (const IgnoredKey& key : imported->ignored) {
    std::fprintf(stderr, "import: %s:%s: %s is ignored: %s\n", command.file.c_str(),
                 key.place.c_str(), printable(key.key).c_str(), printable(key.why).c_str());
  }
  for (const std::string& note : imported->notes) {
    std::fprintf(stderr, "import: %s\n", printable(note).c_str());
  }
  for (const std::string& note : pricing.notes) {
    std::fprintf(stderr, "import: %s\n", printable(note).c_str());
  }
  if (!command.output.empty()) write_plan(plan, command.output);
  const std::string report = command.json ? to_json(plan) : describe(plan, &calibration);
  std::printf("%s", report.c_str());
  if (!pricing.fits) throw Error(ExitCode::infeasible, pricing.notes.back());
}

}  // namespace

void add_import(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "import", "Read a configuration of verl, Megatron-LM, vLLM or SGLang as a plan and price it");
  auto all = std::make_shared<ImportCommand>();
  command
      ->add_option(
          "file", all->file,
          "verl YAML, overrides or .sh; arguments of Megatron-LM, vLLM or SGLang, or a .sh")
      ->required();
  command->add_option("--cluster", all->cluster, "Cluster YAML or preset")->required();
  add_nodes(*command, all->nodes);
  ImportOptions& options = all->options;
  command->add_option("--model", options.model, "Model instead of the file's");
  command->add_option("--critic", options.critic, "Critic's model instead of the file's");
  command->add_option("--reward", options.reward, "Reward model instead of the file's");
  command->add_option("--set", options.settings,
                      "KEY=VALUE instead of the file's, for what only a run would tell");
  command
      ->add_option("--types", all->types,
                   "POOL=TYPE,... of a cluster with several GPU types: trainer, rollout, reward")
      ->delimiter(',');
  command->add_option("--response-mean", options.response_mean,
                      "Measured mean response in tokens; default: as long as the longest");
  command->add_option("--response-cv", options.response_cv,
                      "Standard deviation of responses over their mean, before the limit cuts "
                      "them; default: 0.5");
  command->add_option("--prompt-mean", options.prompt_mean,
                      "Measured mean prompt in tokens; default: as long as the longest");
  command->add_option("--image-tokens", options.image_tokens,
                      "Tokens of an image, of which every prompt has one; default: no images");
  command->add_flag("--allow-unknown", options.allow_unknown, "Unknown keys are only reported");
  command->add_option("--calibration", all->calibration,
                      "Calibration JSON or preset; default: the one shipped for the device");
  command->add_option("-o,--output", all->output, "Where to write plan.json");
  command->add_flag("--json", all->json, "Print the plan as JSON");
  command->callback([all] { run_import(*all); });
}

void add_export(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "export", "Write a plan as files of verl, Megatron-LM, vLLM, SGLang or a launcher");
  auto all = std::make_shared<ExportCommand>();
  command->add_option("plan", all->plan, "plan.json")->required();
  command->add_option("--to", all->target, export_target_names())->required();
  command->add_option("-o,--output", all->output, "Folder to write")->required();
  ExportOptions& options = all->options;
  command->add_option("--rollout", options.rollout, "verl's rollout engine: " + rollout_names());
  command->add_option("--model,--model-path", options.model,
                      "Folder with weights or hub name; default: the plan's, where it names one");
  command->add_option("--train-files", options.train_files,
                      "verl's data.train_files; default: $TRAIN_FILES of the job");
  command->add_option("--val-files", options.val_files,
                      "verl's data.val_files; default: $VAL_FILES of the job");
  command->add_option("--name", options.name, "Name of the job or experiment");
  command->add_option("--image", options.image, "Container image of a TrainJob");
  command->add_option("--config", options.run_config, "Run configuration that launchers pass on");
  command->add_option("--run", options.run_folder, "Run folder that launchers pass on");
  command->add_flag("--json", all->json, "Print the files and notes as JSON");
  command->callback([all] {
    const int code = run_export(*all);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace tessera
