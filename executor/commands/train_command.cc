// tessera-run train: one rank of a run. mpirun, torchrun or srun start as many as the plan places.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/documents/out_of_memory.h"
#include "cost_models/documents/problem.h"
#include "executor/arena/shared_arena.h"
#include "executor/comm/nccl_world.h"
#include "executor/commands/commands.h"
#include "executor/commands/memory_report.h"
#include "executor/launch/device_setup.h"
#include "executor/launch/start_stages.h"
#include "executor/launch/stop_signals.h"
#include "executor/loop/resume.h"
#include "executor/loop/run_saver.h"
#include "executor/loop/save_model.h"
#include "executor/loop/share.h"
#include "executor/loop/training_loop.h"
#include "executor/records/run_log.h"
#include "executor/records/step_progress.h"
#include "executor/rl/samples.h"
#include "planner/engines/read_plan.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/rank_status.h"
#include "simulator/timeline/run_lock.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  std::string run;                   // a folder that `tessera run` prepared, or:
  std::string plan, config, output;  // what a bare launcher starts from
  std::string device = "auto";
  std::string config_name;  // what messages call the configuration; default its file
  bool check = false;       // read everything and leave
};

struct Inputs {
  Plan plan;
  RunConfig config;
};

Inputs read_inputs(const TrainOptions& options) {
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

PromptSet read_prompts(const Inputs& inputs) {
  const DataConfig& data = inputs.config.data;
  return read_prompt_set({.files = data.train_files,
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
                          .shuffle = data.shuffle});
}

/// All ranks on this host: each wants a GPU.
void require_gpus(int ranks) {
  const int gpus = cuda_device_count();
  if (gpus >= ranks) return;
  throw Error(ExitCode::missing, "the run wants " + std::to_string(ranks) + " GPUs, and " +
                                     std::to_string(gpus) + " are visible (nvidia-smi lists them)");
}

constexpr double kLockPatience = 10;  // seconds: ranks of a run whose parent died are ending

/// Rank 0 makes the run's folder where a bare launcher has started the ranks (it must not exist,
/// unless the run goes on in it), locks it, and removes what a run that died has left half done.
/// Every rank learns of what goes wrong.
std::optional<RunLock> take_folder(const fs::path& folder, bool create, bool may_exist,
                                   Communicator& host) {
  std::optional<RunLock> lock;
  Problems problems;
  if (host.rank() == 0) {
    std::error_code error;
    const bool made = !create || fs::create_directory(folder, error) || (may_exist && !error);
    if (!made) {
      problems.push_back({.file = folder.string(),
                          .found = error ? error.message() : "it exists",
                          .expected = "a new folder for this run, or resume_mode: auto"});
    } else {
      lock = RunLock::take(folder / "lock", kLockPatience, problems);
    }
    if (lock) remove_leftovers(checkpoints_of(folder));
  }
  const std::string failure = problems.empty() ? "" : to_string(problems.front());
  for (const std::string& text : share_texts(host, failure)) {
    if (!text.empty()) throw Error(ExitCode::bad_input, text);
  }
  return lock;
}

/// Says of a step whose updates were skipped that they were.
void note_skipped(std::int64_t step, const Metrics& numbers, StepProgress& progress) {
  double skipped = 0;
  for (const char* name : {"actor/skipped_share", "critic/skipped_share"}) {
    const auto found = numbers.find(name);
    if (found != numbers.end()) skipped = std::max(skipped, found->second);
  }
  if (skipped <= 0) return;
  char text[120];
  std::snprintf(text, sizeof text,
                "step %lld: %.0f %% of the updates skipped: the gradient is not finite",
                static_cast<long long>(step), 100 * skipped);
  progress.note(text);
}

void write_trace(const Timeline& mine, const fs::path& file, Communicator& host) {
  const Timeline all = share_spans(host, mine);
  if (host.rank() == 0) write_text_file(file, to_chrome_trace({&all}));
}

/// A path to go on from holds a checkpoint whose files are whole.
void check_resume(const CheckpointConfig& config) {
  if (config.resume_mode != ResumeMode::resume_path) return;
  Problems problems;
  if (sound_checkpoints(config, {}, {}, problems).empty()) {
    throw Error(ExitCode::bad_input, std::move(problems));
  }
}

MemoryOptions memory_options(const TrainerConfig& trainer) {
  return {.limit_bytes = static_cast<std::int64_t>(trainer.memory_limit_gib * (1 << 30)),
          .allocator = trainer.allocator};
}

/// The code that the process ends with because of an error.
ExitCode code_of(const std::exception& error) {
  if (const auto* own = dynamic_cast<const Error*>(&error)) return own->code();
  return dynamic_cast<const PeerLost*>(&error) != nullptr ? ExitCode::peer_lost
                                                          : ExitCode::internal;
}

/// Until now the rank's process was started.
StartStages after_processes() {
  StartStages stages;
  end_stage(stages, "processes");
  return stages;
}

class Rank {
 public:
  Rank(const TrainOptions& options, Inputs inputs)
      : inputs_(std::move(inputs)),
        folder_(options.run.empty() ? options.output : options.run),
        plan_file_(options.run.empty() ? fs::path(options.plan) : folder_ / "plan.json"),
        stages_(after_processes()),
        setup_(set_up_rank(options.device, inputs_.config.trainer.timeout_s,
                           memory_options(inputs_.config.trainer))),
        times_(setup_.rank, std::move(setup_.clock)) {
    end_stage(stages_, "communication");
    const bool bare = options.run.empty();
    const bool resumes = checkpoints().resume_mode == ResumeMode::automatic;
    lock_ = take_folder(folder_, bare, resumes, setup_.host());
    status_ = std::make_unique<RankStatusFile>(folder_, setup_.rank);
    watch_stop_signals(/*all=*/bare);
    ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a full disk, not the end
    if (setup_.rank != 0) return;
    log_ = std::make_unique<RunLog>(folder_);
    progress_ = std::make_unique<StepProgress>(folder_, inputs_.config.trainer.total_training_steps,
                                               shown_on_terminal());
  }

  /// Marks the rank as finished with the code that the process will exit with.
  int run() {
    try {
      const int code = train();
      status_->finish(code);
      leave_together();
      return code;
    } catch (const std::exception& error) {
      const auto refusal = setup_.memory->refusal_of(error);
      if (!refusal) {
        status_->finish(static_cast<int>(code_of(error)));
        throw;
      }
      const std::string where = tell(*refusal);
      status_->finish(static_cast<int>(kOutOfMemory));
      throw Error(kOutOfMemory, where);
    }
  }

 private:
  /// Launchers end the other ranks as soon as one has left with a code: by then all are marked.
  void leave_together() {
    try {
      setup_.host().barrier();
    } catch (const PeerLost&) {
      // Who is gone was finished, or is told as lost by its own file.
    }
  }

  /// The report of a rank that ran out of memory, from the first that did; returns its first words.
  std::string tell(const MemoryRefusal& refusal) {
    const MemoryReport report =
        memory_report(inputs_.plan, refusal, setup_.rank, setup_.device.str(), phase_, step_);
    return tessera::tell(report, folder_,
                         "tessera plan --from " + plan_file_.string() + " -o smaller.json");
  }

  /// Says how long it took from the command to the first step.
  void note_start() {
    end_stage(stages_, "prompts");
    char text[80];
    std::snprintf(text, sizeof text,
                  "[Start] the first step begins %.1f s after the command: ", stages_.until_s);
    progress_->note(text + to_string(stages_));
  }

  void enter(Phase phase, std::int64_t step) {
    phase_ = phase;
    step_ = step;
    status_->enter(name_of(phase), step);
  }

  const CheckpointConfig& checkpoints() const { return inputs_.config.trainer.checkpoint; }

  /// Lines of rank 0 for people.
  Note note() {
    if (!progress_) return {};
    return [this](const std::string& line) { progress_->note(line); };
  }

  /// Restores the run's state where it goes on from a checkpoint, and makes what saves it.
  RunSaver make_saver(const PromptSet& prompts, const std::vector<fs::path>& candidates) {
    const Plan& plan = inputs_.plan;
    std::int64_t first_step = 0;
    if (!candidates.empty()) {
      first_step = resume(worker_, candidates, data_of(prompts, plan, inputs_.config),
                          inputs_.config, note());
    }
    if (log_) log_->forget_after(first_step);
    return {worker_, plan, inputs_.config, prompts, folder_, note(), first_step};
  }

  int train() {
    const Plan& plan = inputs_.plan;
    const std::vector<fs::path> candidates =
        resume_candidates(checkpoints(), folder_, setup_.host(), note());
    if (!candidates.empty()) {
      std::int64_t& from = inputs_.config.reshard.wire_from_step;
      from = std::max<std::int64_t>(1, from - step_of_checkpoint(candidates.front()));
    }
    if (shares_layers(plan)) side_ = make_side_lane(setup_);
    fill_worker(worker_, plan, inputs_.config,
                {.world = setup_.world.get(),
                 .host = &setup_.host(),
                 .device = setup_.device,
                 .stream = setup_.stream,
                 .side = &side_,
                 .decorate = times_.decorator(),
                 .memory = setup_.memory.get(),
                 .stages = &stages_,
                 .resumes = !candidates.empty()});
    print_memory(worker_);
    const PromptSet prompts = read_prompts(inputs_);
    for (const std::string& line : prompts.notes) {
      if (progress_) progress_->note(line);
    }
    RunSaver saver = make_saver(prompts, candidates);
    const LoopResult result =
        run_training(worker_, plan, inputs_.config, prompts, observer(prompts), &saver);
    enter(Phase::save_checkpoint, result.steps);
    write_trace(result.timeline, folder_ / "trace.json", setup_.host());
    // Who queues the run again waits, and the checkpoint holds the model.
    if (result.stopped == StopReason::requeue) return static_cast<int>(ExitCode::requeue);
    save_actor(worker_, plan, folder_ / "hf");
    return result.stopped == StopReason::stop ? static_cast<int>(ExitCode::stopped) : 0;
  }

  /// Prints what one memory of training and rollout spares, on the rank where it spares the least.
  void print_memory(const Worker& worker) {
    if (!worker.memory.shared) return;
    std::int64_t least = -spared_bytes(*worker.memory.shared);
    setup_.host().all_reduce(&least, 1, DType::int64, ReduceOp::max);
    if (!log_ || least == 0) return;
    char text[160];
    std::snprintf(text, sizeof text,
                  "[Memory] training weights lie in the rollout's memory: %.4g GB less per rank, "
                  "%.4g GB lie twice",
                  static_cast<double>(-least) * 1e-9,
                  static_cast<double>(worker.memory.shared->held_twice) * 1e-9);
    progress_->note(text);
  }

  RunObserver observer(const PromptSet& prompts) {
    RunObserver observer;
    observer.phase_started = [this](Phase phase, std::int64_t step) {
      if (phase_ == Phase::load && log_) note_start();
      enter(phase, step);
      times_.enter(phase, static_cast<int>(step));
    };
    observer.communication = [this] { return times_.metrics(); };
    observer.should_stop = [this] {
      const StopReason asked = setup_.rank == 0 ? requested_stop(folder_) : StopReason::none;
      return std::max(asked, stop_signalled());
    };
    observer.note = note();
    if (!log_) return observer;
    observer.weights_moved = [this](std::int64_t, const ReshardReport& report) {
      progress_->detail(to_string(report));
    };
    observer.step_finished = [this, &prompts](std::int64_t step, const Metrics& numbers,
                                              const Experience& experience) {
      log_->add_step(step, numbers);
      for (const Sequence& sequence : experience.sequences) {
        const SequenceText text = text_of(prompts, sequence);
        log_->add_sample(sample_line(step, sequence, {text.prompt, text.response, text.truth}));
      }
      note_skipped(step, numbers, *progress_);
      progress_->step(step, numbers);
    };
    return observer;
  }

  Inputs inputs_;
  fs::path folder_, plan_file_;
  StartStages stages_;
  RankSetup setup_;
  std::optional<RunLock> lock_;  // of rank 0
  std::unique_ptr<RankStatusFile> status_;
  std::unique_ptr<RunLog> log_;
  std::unique_ptr<StepProgress> progress_;
  Phase phase_ = Phase::load;
  std::int64_t step_ = 0;
  CommTimes times_;
  SideLane side_;
  Worker worker_;  // kept when training fails, so that what is in use can be told
};

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "train", "One rank of a run: mpirun, torchrun --no-python or srun start it");
  auto options = std::make_shared<TrainOptions>();
  CLI::Option* run =
      command->add_option("--folder", options->run, "Folder that `tessera run` prepared");
  command->add_option("plan", options->plan, "plan.json")->excludes(run);
  command->add_option("--config", options->config, "run.yaml or a preset")->excludes(run);
  command->add_option("-o,--output", options->output, "Folder of the run; must not exist")
      ->excludes(run);
  command->add_option("--device", options->device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  command->add_option("--config-name", options->config_name,
                      "What messages call the configuration");
  command->add_flag("--check", options->check,
                    "Read plan, configuration and data, look for the device's GPUs, and leave");
  command->callback([options] {
    if (options->run.empty() &&
        (options->plan.empty() || options->config.empty() || options->output.empty())) {
      throw Error(ExitCode::usage, "train needs --folder, or a plan, --config and --output");
    }
    Inputs inputs = read_inputs(*options);
    if (options->check) {
      for (const std::string& line : read_prompts(inputs).notes) std::puts(line.c_str());
      check_resume(inputs.config.trainer.checkpoint);
      if (options->device == "cuda") require_gpus(inputs.plan.world_size());
      return;
    }
    const int code = Rank(*options, std::move(inputs)).run();
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace tessera
