// tessera-run train: one rank of a run. mpirun, torchrun or srun start as many as the plan places.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cost_models/documents/out_of_memory.h"
#include "cost_models/documents/problem.h"
#include "executor/arena/shared_arena.h"
#include "executor/comm/nccl_world.h"
#include "executor/commands/check_run.h"
#include "executor/commands/commands.h"
#include "executor/commands/memory_report.h"
#include "executor/commands/rank_error.h"
#include "executor/commands/run_inputs.h"
#include "executor/commands/run_records.h"
#include "executor/launch/device_setup.h"
#include "executor/launch/pci_bus.h"
#include "executor/launch/start_stages.h"
#include "executor/launch/stop_signals.h"
#include "executor/loop/resume.h"
#include "executor/loop/run_saver.h"
#include "executor/loop/save_model.h"
#include "executor/loop/share.h"
#include "executor/loop/training_loop.h"
#include "executor/nvml/device_sampler.h"
#include "executor/records/run_trace.h"
#include "executor/rl/sampling.h"
#include "planner/plan/plan.h"
#include "simulator/flight_recorder/flight_recorder.h"
#include "simulator/timeline/rank_status.h"
#include "simulator/timeline/run_lock.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

MemoryOptions memory_options(const TrainerConfig& trainer) {
  return {.limit_bytes = static_cast<std::int64_t>(trainer.memory_limit_gib * (1 << 30)),
          .allocator = trainer.allocator};
}

/// Until now the rank's process was started.
StartStages after_processes() {
  StartStages stages;
  end_stage(stages, "processes");
  return stages;
}

class Rank {
 public:
  Rank(const TrainOptions& options, RunInputs inputs)
      : options_(options),
        inputs_(std::move(inputs)),
        folder_(options.run.empty() ? options.output : options.run),
        plan_file_(options.run.empty() ? fs::path(options.plan) : folder_ / "plan.json"),
        stages_(after_processes()),
        setup_(set_up_rank(options.device, inputs_.config.trainer.timeout_s,
                           memory_options(inputs_.config.trainer), &waiting_, &recorder_)),
        times_(setup_.rank, std::move(setup_.clock)) {
    end_stage(stages_, "communication");
    const bool bare = options.run.empty();
    watch_stop_signals(/*all=*/bare);  // from here on there is a folder to leave in order
    const bool resumes = checkpoints().resume_mode == ResumeMode::automatic;
    lock_ = take_folder(folder_, bare, resumes, setup_.host());
    const RankLife life{.stall_limit_s = inputs_.config.trainer.timeout_s,
                        .waiting = &waiting_,
                        .marks_end = !bare};
    status_ = std::make_unique<RankStatusFile>(folder_, setup_.rank, life);
    ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a full disk, not the end
    keep_collectives();
    sample_device();
    if (setup_.rank != 0) return;
    records_ = std::make_unique<RunRecords>(folder_, inputs_.config, inputs_.plan,
                                            !setup_.device.is_cuda());
  }

  /// Marks the rank as finished with the code that the process will exit with.
  int run() {
    try {
      const int code = train();
      status_->finish(code);
      leave_together();
      return code;
    } catch (const NoDraw&) {
      return end_with_all(broken_weights(worker_, inputs_.plan, phase_, step_));
    } catch (const std::exception& error) {
      const auto refusal = setup_.memory->refusal_of(error);
      if (!refusal) {
        if (is_of_all(error)) return end_with_all(error);
        status_->finish(static_cast<int>(code_of(error)));
        throw;
      }
      const std::string where = tell(*refusal);
      status_->finish(static_cast<int>(kOutOfMemory));
      throw Error(kOutOfMemory, where);
    }
  }

 private:
  /// Of an error that every rank has: one says so, in the log too, before the launcher ends the
  /// others, and before programs that score are gone.
  int end_with_all(const std::exception& error) {
    const int code = static_cast<int>(code_of(error));
    status_->finish(code);
    const auto* const own = dynamic_cast<const Error*>(&error);
    const std::string words = own != nullptr ? with_places(*own, options_).what() : error.what();
    if (records_) records_->note("tessera: " + words);
    leave_together();
    return code;
  }

  /// A log like the others: without it a run goes on.
  void keep_collectives() {
    try {
      recorder_.keep_in(folder_, setup_.rank);
    } catch (const Error& error) {
      std::fprintf(stderr, "tessera: %s; the run's last collectives are not kept\n", error.what());
    }
  }

  void sample_device() {
    if (!setup_.device.is_cuda()) return;
    sampler_.emplace(SampledDevice{setup_.rank, pci_bus_id_of(setup_.device.index())});
  }

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
    end_stage(stages_, "loop");
    char text[80];
    std::snprintf(text, sizeof text,
                  "[Start] the first step begins %.1f s after the command: ", stages_.until_s);
    records_->note(text + to_string(stages_));
  }

  void enter(Phase phase, std::int64_t step) {
    phase_ = phase;
    step_ = step;
    status_->enter(name_of(phase), step);
    recorder_.enter(name_of(phase), step);
  }

  const CheckpointConfig& checkpoints() const { return inputs_.config.trainer.checkpoint; }

  /// Lines of rank 0 for people.
  Note note() {
    if (!records_) return {};
    return [this](const std::string& line) { records_->note(line); };
  }

  /// Restores the run's state where it goes on from a checkpoint, and makes what saves it.
  RunSaver make_saver(const PromptSet& prompts, const std::vector<fs::path>& candidates) {
    std::int64_t first_step = 0;
    if (!candidates.empty()) {
      first_step = resume(worker_, candidates, data_of(prompts), inputs_.config, note()).step;
      end_stage(stages_, "checkpoint");
    }
    if (records_) records_->begin_after(first_step, !candidates.empty());
    return {worker_, inputs_.plan, inputs_.config, prompts, folder_, note(), first_step};
  }

  int train() {
    const Plan& plan = inputs_.plan;
    const auto candidates = resume_candidates(checkpoints(), folder_, setup_.host(), note());
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
                 .logs = folder_,
                 .stages = &stages_,
                 .resumes = !candidates.empty()});
    print_memory(worker_);
    const RunPromptSets prompts = read_run_prompts(inputs_);
    for (const std::string& line : notes_of(inputs_, prompts)) {
      if (records_) records_->note(line);
    }
    end_stage(stages_, "prompts");
    RunSaver saver = make_saver(prompts.train, candidates);
    const RunPrompts sets{prompts.train, prompts.validation ? &*prompts.validation : nullptr};
    const LoopResult result = run_training(worker_, plan, inputs_.config, sets,
                                           observer(sets, saver.first_step()), &saver);
    enter(Phase::save_checkpoint, result.steps);
    const Timeline all = share_spans(setup_.host(), result.timeline);
    if (setup_.rank == 0) write_trace(all, saver.first_step());
    return leave_model(saver, result);
  }

  /// Exports the model of a run that has ended, and returns the code to end with.
  int leave_model(RunSaver& saver, const LoopResult& result) {
    const bool asked = result.stopped != StopReason::none, sound = saver.sound(result.steps);
    const bool unsaved = asked && sound && !saver.saved(result.steps);
    // Who queues the run again waits, and the checkpoint holds the model.
    const bool requeued = result.stopped == StopReason::requeue;
    if (sound && !requeued && !inputs_.config.validation.only) {
      save_actor(worker_, inputs_.plan, inputs_.config, saver.origin(result.steps), folder_ / "hf");
    }
    if (unsaved) return static_cast<int>(ExitCode::io);
    if (requeued) return static_cast<int>(ExitCode::requeue);
    if (asked) return static_cast<int>(ExitCode::stopped);
    return static_cast<int>(sound ? ExitCode::ok : ExitCode::check_failed);
  }

  /// A log like the others: a full disk costs it, and not the model that comes after it.
  void write_trace(const Timeline& timeline, std::int64_t first_step) {
    try {
      write_run_trace(folder_ / "trace.json", timeline, first_step);
    } catch (const Error& error) {
      if (error.code() != ExitCode::io) throw;
      if (records_) records_->note(std::string(error.what()) + "; the run ends without it");
    }
  }

  /// Prints what one memory of training and rollout spares, on the rank where it spares the least.
  void print_memory(const Worker& worker) {
    if (!worker.memory.shared) return;
    std::int64_t least = -spared_bytes(*worker.memory.shared);
    setup_.host().all_reduce(&least, 1, DType::int64, ReduceOp::max);
    if (!records_ || least == 0) return;
    char text[160];
    std::snprintf(text, sizeof text,
                  "[Memory] training weights lie in the rollout's memory: %.4g GB less per rank, "
                  "%.4g GB lie twice",
                  static_cast<double>(-least) * 1e-9,
                  static_cast<double>(worker.memory.shared->held_twice) * 1e-9);
    records_->note(text);
  }

  /// Communication seconds, and what the rank's GPU did.
  Metrics measured() {
    Metrics numbers = times_.metrics();
    if (!sampler_) return numbers;
    numbers.merge(sampler_->take());
    if (const std::string trouble = sampler_->trouble(); records_ && !trouble.empty()) {
      records_->note("[GPU] utilisation and power are not known: " + trouble);
    }
    return numbers;
  }

  /// Keeps references to the prompts. The run goes on after `first_step` steps.
  RunObserver observer(const RunPrompts& prompts, std::int64_t first_step) {
    RunObserver observer;
    observer.phase_started = [this](Phase phase, std::int64_t step) {
      if (phase_ == Phase::load && records_) note_start();
      if (phase_ == Phase::load && sampler_) sampler_->take();  // loading is no step
      enter(phase, step);
      times_.enter(phase, static_cast<int>(step));
    };
    observer.measured = [this] { return measured(); };
    observer.should_stop = [this] {
      const StopReason asked = setup_.rank == 0 ? requested_stop(folder_) : StopReason::none;
      return std::max(asked, stop_signalled());
    };
    observer.note = note();
    observer.pauses = [this](std::int64_t step) {
      if (records_) records_->paused(step);
      status_->enter("paused", step);
    };
    if (!records_) return observer;
    observer.paused = [this] { return pause_requested(folder_); };
    observer.judged = [this](std::int64_t step, const Metrics& numbers) {
      return records_->judge(step, numbers);
    };
    observer.rolled_back = [this](std::int64_t step) { records_->rolled_back(step); };
    observer.weights_moved = [this](std::int64_t, const ReshardReport& report) {
      records_->detail(to_string(report));
    };
    observer.weights_verified = [this](std::int64_t, const CertificateReport& report) {
      records_->detail(to_string(report));
    };
    observer.step_finished = [this, &prompts](std::int64_t step, const Metrics& numbers,
                                              const Experience& experience) {
      records_->step(step, numbers, prompts.train, experience.sequences);
    };
    observer.validated = [this, &prompts, first_step](std::int64_t step, const Metrics& numbers,
                                                      std::span<const Sequence> answers) {
      // After a step its numbers are among the step's.
      records_->validation(step, numbers, step == first_step, *prompts.validation, answers);
    };
    return observer;
  }

  TrainOptions options_;
  RunInputs inputs_;
  fs::path folder_, plan_file_;
  StartStages stages_;
  std::atomic<bool> waiting_ = false;  // for another rank
  FlightRecorder recorder_;
  RankSetup setup_;
  std::optional<RunLock> lock_;  // of rank 0
  std::unique_ptr<RankStatusFile> status_;
  std::unique_ptr<RunRecords> records_;  // of rank 0, else nullptr
  Phase phase_ = Phase::load;
  std::int64_t step_ = 0;
  CommTimes times_;
  std::optional<DeviceSampler> sampler_;  // of the rank's GPU
  SideLane side_;
  Worker worker_;  // kept when training fails, so that what is in use can be told
};

void train(const TrainOptions& options) {
  if (options.run.empty() &&
      (options.plan.empty() || options.config.empty() || options.output.empty())) {
    throw Error(ExitCode::usage, "train needs --folder, or a plan, --config and --output");
  }
  if (!options.check) end_on_stop_signals(/*all=*/options.run.empty());
  RunInputs inputs = read_run_inputs(options);
  if (options.check) return check_run(options, inputs);
  // Where `tessera run` is the parent it has looked already.
  Problems problems;
  if (options.run.empty()) check_rewards(inputs, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  const int code = Rank(options, std::move(inputs)).run();
  if (code != 0) throw CLI::RuntimeError(code);
}

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
                      "The file or preset that messages name as the configuration");
  command->add_option("--set", options->overrides, "What of it messages name as --set KEY=VALUE");
  command->add_flag("--check", options->check,
                    "Read plan, configuration and data, look for the device's GPUs, and leave");
  command->callback([options] {
    try {
      train(*options);
    } catch (const Error& error) {
      throw with_places(error, *options);
    }
  });
}

}  // namespace tessera
