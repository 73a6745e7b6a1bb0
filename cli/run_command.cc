// tessera run: prepares the run's folder, starts the ranks and stays their parent.
#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/dispatch.h"
#include "cli/numbers.h"
#include "cli/processes/child.h"
#include "cli/processes/earlier_documents.h"
#include "cli/processes/run_signals.h"
#include "cli/processes/supervise.h"
#include "cli/replan.h"
#include "cost_models/documents/document.h"
#include "cost_models/documents/out_of_memory.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_yaml.h"
#include "cost_models/documents/yaml_overrides.h"
#include "cost_models/layout/reshard_transport.h"
#include "cost_models/spec/device/device_kind.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/reshard_mode.h"
#include "simulator/run_end/end_cause.h"
#include "simulator/timeline/rank_status.h"
#include "simulator/timeline/run_folder.h"
#include "simulator/timeline/run_lock.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string plan, config, output, device = "auto", reshard = "minimal", transport;
  std::vector<std::string> overrides;  // KEY=VALUE with dots in KEY
  int ranks = 0;                       // 0 = as many as the plan places
  bool replan = false;                 // go on with another plan where memory runs out
  bool resume = false;                 // go on from the newest checkpoint of the folder
  int restarts = 0;                    // how often, after a crash or a stall
  bool elastic = false;                // without the ranks that were lost
};

constexpr int kReplans = 2;  // of a run: what is measured late may ask for a second

Plan checked_plan(const std::string& file) {
  Problems problems;
  const std::optional<Plan> plan = read_executable_plan(file, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  return *plan;
}

/// Whether the ranks go on from a checkpoint of the run's own folder.
bool resumes(const std::string& config) {
  try {
    const YAML::Node trainer = YAML::Load(config)["trainer"];
    return trainer && trainer.IsMap() && trainer["resume_mode"] &&
           trainer["resume_mode"].as<std::string>("") == "auto";
  } catch (const YAML::Exception&) {
    return false;  // the ranks' reader says what is wrong
  }
}

/// The configuration as the ranks read it: the file as it is, or with the overrides merged in.
std::string merged_config(const RunOptions& options) {
  Problems problems;
  const std::optional<fs::path> file = find_config(options.config, "runs", ".yaml", problems);
  if (!file) throw Error(ExitCode::bad_input, std::move(problems));
  const auto text = read_text_file(*file, kMostYaml, problems);
  if (!text) throw Error(ExitCode::bad_input, std::move(problems));
  return options.overrides.empty() ? *text
                                   : with_overrides(*text, options.overrides, file->string());
}

std::string default_output(const std::string& plan) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char time[32];
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", &utc);
  return "runs/" + fs::path(plan).stem().string() + "-" + time;
}

/// A run never overwrites another; one that resumes goes on in its folder. Whether it was made.
bool create_folder(const fs::path& run, bool may_exist) {
  std::error_code error;
  if (run.has_parent_path()) fs::create_directories(run.parent_path(), error);
  if (fs::create_directory(run, error)) return true;
  if (may_exist && !error) return false;
  throw Error(error ? ExitCode::io : ExitCode::bad_input,
              {Problem{.file = run.string(),
                       .found = error ? error.message() : "a folder that exists",
                       .expected = "a new folder for this run",
                       .hint = error ? "" : "--resume goes on in it"}});
}

/// The run's own choices of how weights travel.
void set_reshard(Plan& plan, const RunOptions& options) {
  if (options.reshard == "full") set_reshard_mode(plan, ReshardMode::full);
  if (const auto transport = transport_from(options.transport)) {
    for (PlannedReshard& pair : plan.reshard) pair.transport = *transport;
  }
}

bool on_gpus(const Plan& plan, const RunOptions& options) {
  return options.device == "cuda" ||
         (options.device == "auto" && !is_cpu(plan.cluster.device) && fs::exists("/dev/nvidiactl"));
}

/// The ranks' program reads everything and looks at it; its code, or that of a run which was asked
/// to end before it had begun.
int check(const std::vector<std::string>& command) {
  const auto asked = [] { return asked_to_stop() != StopReason::none; };
  const std::optional<int> code = run_child(command, asked);
  if (code && (*code != 0 || !asked())) return *code;
  std::cerr << words_of_early_end(asked_to_stop());
  return static_cast<int>(exit_code_of(asked_to_stop()));
}

/// One attempt in a folder that exists: writes the plan and the configuration, has them checked,
/// runs. nullopt where the ranks refuse what they read, with their code in `refused`.
std::optional<Verdict> attempt(const Plan& plan, const std::string& config,
                               const RunOptions& options, const fs::path& folder, int& refused) {
  const fs::path program = find_program("tessera-run");
  write_plan(plan, folder / "plan.json");
  write_text_file(folder / "run.yaml", config);
  const bool gpu = on_gpus(plan, options);
  std::vector<std::string> rank{program.string(), "train",        "--folder", folder.string(),
                                "--config-name",  options.config, "--device", gpu ? "cuda" : "cpu"};
  for (const std::string& word : options.overrides) rank.insert(rank.end(), {"--set", word});
  std::vector<std::string> look = rank;
  look.emplace_back("--check");
  refused = check(look);
  if (refused != 0) return std::nullopt;
  const SupervisedRun supervised{
      .command = std::move(rank), .ranks = plan.world_size(), .gpu = gpu, .run = folder};
  std::fprintf(stderr, "run: %d %s ranks, in %s; every step's line in %s\n", supervised.ranks,
               gpu ? "GPU" : "CPU", options.output.c_str(),
               (fs::path(options.output) / "log.txt").c_str());
  return supervise(supervised, std::cerr);
}

/// Words about where the next attempt begins: only complete checkpoints have this name.
std::string begins_from(const fs::path& folder) {
  return newest_step(folder / kCheckpointsFolder) ? "from the newest checkpoint"
                                                  : "from the beginning";
}

/// After an attempt that ran out of memory: the plan to go on with, where there is one and the run
/// is to; else it lies in the folder, for the user.
std::optional<Plan> next_plan(const Plan& failed, const RunOptions& options, const fs::path& folder,
                              int attempts) {
  std::optional<Plan> next = plan_again(failed, folder, std::cerr);
  if (!next) return std::nullopt;
  set_reshard(*next, options);
  if (options.replan && attempts <= kReplans) {
    keep_attempt(folder, attempts);
    std::fprintf(stderr, "run: attempt %d, %s; the one before is in %s\n", attempts + 1,
                 begins_from(folder).c_str(),
                 (fs::path(options.output) / ("attempt-" + std::to_string(attempts))).c_str());
    return next;
  }
  const fs::path file = folder / "replanned.json";
  write_plan(*next, file);
  std::fprintf(stderr,
               "run: that plan is in %s; tessera run --on-oom replan goes on with it by itself\n",
               file.c_str());
  return std::nullopt;
}

/// Whether the run can go on after an attempt that ended so: a rank was lost, or failed within.
bool may_restart(int code) {
  return code == static_cast<int>(ExitCode::peer_lost) ||
         code == static_cast<int>(ExitCode::internal);
}

/// Replaces the plan by one for the ranks that are left, and keeps the old one beside it. False
/// where there is none.
bool go_on_without(std::span<const int> lost, const RunOptions& options, const fs::path& folder,
                   Plan& plan) {
  std::optional<Plan> next = plan_without(plan, lost, std::cerr);
  if (!next) return false;
  set_reshard(*next, options);
  if (on_gpus(plan, options)) hide_devices(lost, plan.world_size());
  write_plan(plan, next_numbered(folder, "plan", ".json"));
  plan = *std::move(next);
  return true;
}

/// Whether the ranks refused what they read, before any of them began to work.
bool refused_by_ranks(int code, int ranks, const fs::path& folder) {
  if (code != static_cast<int>(ExitCode::bad_input)) return false;
  return std::ranges::all_of(read_rank_statuses(folder), [&](const RankStatus& rank) {
    return rank.rank >= ranks || rank.phase == "load";  // others are of an earlier attempt
  });
}

/// Runs until an attempt ends well, is stopped, or may not be followed by another.
int run_attempts(Plan plan, std::string config, const RunOptions& options, const fs::path& folder,
                 bool made) {
  const std::vector<EarlierDocument> earlier = keep_earlier(folder, to_json(plan), config);
  int restarts = 0;
  for (int attempts = 1;; ++attempts) {
    int refused = 0;
    const std::optional<Verdict> end = attempt(plan, config, options, folder, refused);
    const int code = end ? end->exit_code : refused;
    if (!end || (attempts == 1 && refused_by_ranks(code, plan.world_size(), folder))) {
      if (attempts == 1 && made) fs::remove_all(folder);
      if (attempts == 1) put_back(earlier);
      return code;
    }
    if (stop_requested(folder)) return code;  // whatever became of it: nobody wants another
    if (code == static_cast<int>(kOutOfMemory)) {
      std::optional<Plan> next = next_plan(plan, options, folder, attempts);
      if (!next) return code;
      plan = *std::move(next);
    } else if (may_restart(code) && restarts < options.restarts) {
      ++restarts;
      const bool fewer = options.elastic && !end->lost.empty();
      if (fewer && !go_on_without(end->lost, options, folder, plan)) return code;
      std::fprintf(stderr, "run: restart %d of %d, %s\n", restarts, options.restarts,
                   begins_from(folder).c_str());
    } else {
      return code;
    }
    config = with_overrides(config, {kResumeWord}, "run.yaml");
  }
}

int run(RunOptions options) {
  if (options.resume && options.output.empty()) {
    throw Error(ExitCode::usage, "--resume needs -o, the folder of the run that goes on");
  }
  if (options.resume) options.overrides.emplace_back(kResumeWord);
  Plan plan = checked_plan(options.plan);
  set_reshard(plan, options);
  if (options.ranks != 0 && options.ranks != plan.world_size()) {
    throw Error(ExitCode::bad_input,
                {Problem{.file = options.plan,
                         .place = "--ranks",
                         .found = std::to_string(options.ranks),
                         .expected = std::to_string(plan.world_size()) + ", as the plan places"}});
  }
  std::string config = merged_config(options);
  if (options.output.empty()) options.output = default_output(options.plan);
  const fs::path folder = fs::absolute(options.output);
  watch_run_signals();  // from here on there is something to leave in order
  const bool made = create_folder(folder, resumes(config));
  Problems problems;
  const auto lock = RunLock::take(folder / "run.lock", 0, problems);
  if (!lock) throw Error(ExitCode::bad_input, std::move(problems));
  if (options.resume && made) {
    std::fprintf(stderr, "run: %s is new and has no checkpoint: the run begins with step 1\n",
                 options.output.c_str());
  }
  end_pause(folder);  // whoever starts a run again wants it to go on
  return run_attempts(std::move(plan), std::move(config), options, folder, made);
}

/// Options of how weights travel.
void add_reshard_options(CLI::App* command, const std::shared_ptr<RunOptions>& options) {
  command
      ->add_option("--reshard", options->reshard,
                   "minimal, or full: gather every tensor, then slice (to compare)")
      ->check(CLI::IsMember({"minimal", "full"}));
  command
      ->add_option(
          "--reshard-transport", options->transport,
          "How weights travel; automatic: the faster of reading peers' memory and messages")
      ->check(CLI::IsMember(transport_names()));
  command
      ->add_option_function<std::string>(
          "--reshard-storage",
          [options](const std::string& storage) {
            options->overrides.push_back("reshard.storage=" + storage);
          },
          "keep the rollout's weights in memory between generations, or unmap them")
      ->check(CLI::IsMember({"keep", "unmap"}));
  const auto shorthand = [command, options](const char* flag, const char* word, const char* what) {
    command->add_flag_callback(
        flag, [options, word] { options->overrides.emplace_back(word); }, what);
  };
  shorthand("--reshard-verify", "reshard.verify=true", "Compare checksums at both ends");
  shorthand("--reshard-incremental", "reshard.incremental=true",
            "Move only what changed since the last reshard");
  shorthand("--reshard-overlap", "reshard.overlap=true",
            "Tensors leave as soon as the optimizer has written them");
  command
      ->add_option_function<std::string>(
          "--reshard-wire",
          [options](const std::string& type) {
            options->overrides.push_back("reshard.wire=" + type);
          },
          "Type on the wire of fp32 weights (reshard.wire_from_step: from which step on)")
      ->check(CLI::IsMember({"bf16", "fp16"}));
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "Execute a plan: one process per rank");
  auto options = std::make_shared<RunOptions>();
  command->add_option("plan", options->plan, "plan.json")->required();
  command->add_option("--config", options->config, "run.yaml or a preset (configs/runs)")
      ->required();
  command->add_option("--set", options->overrides, "KEY=VALUE that replaces a key of the config");
  command->add_option("--ranks", options->ranks, "Checked against the plan");
  command->add_option("--device", options->device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  command
      ->add_option_function<std::string>(
          "--on-oom", [options](const std::string& what) { options->replan = what == "replan"; },
          "Where a rank runs out of memory: stop, or replan: go on with a plan that fits by what "
          "was measured, from the newest checkpoint")
      ->check(CLI::IsMember({"stop", "replan"}));
  command
      ->add_option_function<double>(
          "--memory-limit-gib",
          [options](double limit) {
            options->overrides.push_back("trainer.memory_limit_gib=" + std::to_string(limit));
          },
          "GiB of device memory that a rank may use; default: all of it")
      ->check(memory_in_gib());
  command
      ->add_option("--restarts", options->restarts,
                   "How often the run goes on from its newest checkpoint after a crash or a stall")
      ->check(CLI::Range(0, 1'000'000));
  command
      ->add_flag("--elastic", options->elastic,
                 "Such a restart plans again for the ranks that are left, without those that were "
                 "lost")
      ->needs("--restarts");
  add_reshard_options(command, options);
  command->add_option("-o,--output", options->output,
                      "Folder of the run; must not exist without --resume");
  command->add_flag("--resume", options->resume,
                    "Go on in the folder, from its newest complete checkpoint");
  command->callback([options] {
    const int code = run(*options);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace tessera
