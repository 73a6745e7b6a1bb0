// tessera train-reward: a reward model from pairs of a better and a worse answer.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/command_line.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/device/device_kind.h"
#include "executor/bench/train_layout.h"
#include "executor/comm/nccl_world.h"
#include "executor/commands/bench_run.h"
#include "executor/commands/commands.h"
#include "executor/commands/train_reward_plan.h"
#include "executor/launch/relaunch.h"
#include "executor/launch/stop_signals.h"
#include "executor/launch/watched_ranks.h"
#include "executor/preference/reward_state.h"
#include "executor/preference/reward_training.h"
#include "planner/plan/recompute.h"
#include "simulator/run_end/end_cause.h"
#include "simulator/run_end/rank_words.h"
#include "simulator/timeline/run_folder.h"

namespace tessera {
namespace {

struct Options {
  BenchStart start{.ranks = 1};
  std::vector<std::string> files, validation;
  std::string cluster;  // what it is planned for; empty = not planned
  std::string layout, dtype = "auto", recompute, overlong = "error", decay = "constant";
  std::int64_t max_tokens = 0, micro_batch_tokens = 0, steps = 0, epochs = 1;
  double timeout_s = 600;
  bool ranks_stated = false, check = false;
  int restarts = 0;  // how often the ranks are started again
  RewardTrainingOptions training;
};

PreferenceSet read_pairs(const std::vector<std::string>& files, const Options& options,
                         const ModelSpec& model) {
  return read_preference_set({.files = {files.begin(), files.end()},
                              .model = options.training.model,
                              .max_tokens = options.max_tokens,
                              .overlong = *overlong_pair_from(options.overlong),
                              .vocabulary = model.vocab,
                              .end_token = model.eos_token});
}

/// The plan for `ranks`, 0 = as many as are best, that keeps what the command line states.
std::optional<RewardPlan> planned(const Options& options, const PreferenceSet& train,
                                  const ModelSpec& model, int ranks) {
  if (options.cluster.empty()) return std::nullopt;
  RewardPlanQuestion question{.cluster = options.cluster,
                              .model = options.training.model.string(),
                              .pairs_per_step = options.training.pairs_per_step,
                              .dtype = dtype_from(options.dtype),
                              .fixed = {}};
  std::vector<std::string>& fixed = question.fixed;
  if (!options.layout.empty()) {
    if (ranks == 0) throw Error(ExitCode::usage, "--layout with --cluster needs --ranks");
    fixed = settings_of(train_layout(options.layout, model, ranks));
  }
  if (ranks > 0) fixed.push_back("critic.gpus=" + std::to_string(ranks));
  if (!options.recompute.empty()) fixed.push_back("critic.recompute=" + options.recompute);
  if (options.training.optimizer.offload) fixed.emplace_back("critic.offload=optimizer");
  if (options.micro_batch_tokens > 0) {
    fixed.push_back("critic.tokens=" + std::to_string(options.micro_batch_tokens));
  }
  return plan_reward_training(question, train);
}

/// What follows from the data, the plan, the ranks and the device.
RewardTrainingOptions complete(const Options& options, const PreferenceSet& train,
                               const ModelSpec& model, const std::optional<RewardPlan>& plan,
                               const RankSetup& setup) {
  RewardTrainingOptions made = options.training;
  if (plan) {
    follow(plan->plan, made);
  } else {
    made.layout = train_layout(options.layout, model, setup.size);
    const std::string fallback = setup.device.is_cuda() ? "bf16" : "fp32";
    made.dtype = *dtype_from(options.dtype == "auto" ? fallback : options.dtype);
    for (const Recompute each : {Recompute::selective, Recompute::full}) {
      if (name_of(each) == options.recompute) made.recompute = each;
    }
    made.values_tokens = made.update_tokens = options.micro_batch_tokens;
  }
  const auto pairs = static_cast<std::int64_t>(train.pairs.size());
  made.schedule.total_steps =
      options.steps > 0 ? options.steps : options.epochs * (pairs / made.pairs_per_step);
  made.schedule.decay = options.decay == "cosine" ? LrDecay::cosine : LrDecay::constant;
  return made;
}

/// A step finds its pairs.
void check_count(const Options& options, const PreferenceSet& train) {
  const RewardTrainingOptions& training = options.training;
  const auto pairs = static_cast<std::int64_t>(train.pairs.size());
  if (training.pairs_per_step > pairs) {
    throw Error(ExitCode::bad_input,
                {{.file = options.files.front(),
                  .found = std::to_string(pairs) + " pairs",
                  .expected = "at least " + std::to_string(training.pairs_per_step) +
                              ", those of a step (--batch)"}});
  }
}

/// What else can be known to be wrong before this process starts ranks, or is the only one.
void check_alone(const Options& options, const ModelSpec& model) {
  const RewardTrainingOptions& training = options.training;
  if (options.cluster.empty()) train_layout(options.layout, model, options.start.ranks);
  std::error_code error;
  if (!training.resume && std::filesystem::exists(training.output, error)) {
    throw Error(ExitCode::bad_input, {{.file = training.output.string(),
                                       .found = "it exists",
                                       .expected = "a new folder, or --resume"}});
  }
}

/// A plan's seconds and bytes are those of its own devices.
void check_device(const Plan& plan, const RankSetup& setup) {
  const bool gpus = !is_cpu(plan.cluster.device);
  if (gpus == setup.device.is_cuda()) return;
  throw Error(ExitCode::bad_input,
              {{.file = "--cluster",
                .found = plan.cluster.name + ", devices " + plan.cluster.device.name,
                .expected = gpus ? "--device cuda, or a cluster of processors such as local-cpu"
                                 : "--device cpu, or a cluster of these GPUs"}});
}

void print_start(const PreferenceSet& pairs, const PreferenceSet* validation,
                 const std::optional<RewardPlan>& plan) {
  for (const std::string& line : pairs.notes) std::printf("%s\n", line.c_str());
  if (validation != nullptr) {
    for (const std::string& line : validation->notes) std::printf("%s\n", line.c_str());
  }
  if (plan) std::printf("%s", described(*plan).c_str());
  std::fflush(stdout);
}

/// How to go on behind a rank's loss.
std::string newest_checkpoint_text(const std::filesystem::path& output) {
  const auto newest = newest_step(output / kCheckpointsFolder);
  if (!newest) return "there is no checkpoint (--save-freq writes them): --resume begins again";
  return "the newest checkpoint is of step " + std::to_string(*newest) +
         ", from which --resume goes on";
}

/// The code of ranks that have all ended; tells of a rank that was lost.
int code_of_end(const WatchedEnd& end, const std::filesystem::path& output) {
  const bool lost = end.cause == EndCause::lost;
  if (!lost && end.cause != EndCause::lost_peer) return end.code;
  const std::string rank = where(*end.rank);
  std::fprintf(stderr, "tessera: %s; %s\n", (lost ? "lost " + rank : rank + " lost a peer").c_str(),
               newest_checkpoint_text(output).c_str());
  return static_cast<int>(ExitCode::peer_lost);
}

/// Whether the ranks can go on: one was lost, or failed within, and nobody has asked for an end.
bool may_restart(const WatchedEnd& end) {
  return end.cause == EndCause::lost || end.cause == EndCause::lost_peer ||
         (end.cause == EndCause::failed && end.code == static_cast<int>(ExitCode::internal));
}

/// Starts the ranks, again where they may go on, and stays until they have ended; their code.
int watch(const Options& options, int ranks, bool gpu) {
  const std::filesystem::path& output = options.training.output;
  std::vector<std::string> words = options.start.words;
  for (int restarts = 0;; ++restarts) {
    const WatchedEnd end = watch_ranks(words, ranks, gpu, output);
    const int code = code_of_end(end, output);
    if (!may_restart(end) || restarts == options.restarts) return code;
    if (restarts == 0 && !options.training.resume) words.emplace_back("--resume");
    std::fprintf(stderr, "train-reward: restart %d of %d, from the %s\n", restarts + 1,
                 options.restarts,
                 newest_step(output / kCheckpointsFolder) ? "newest checkpoint" : "beginning");
  }
}

int train(const Options& options) {
  if (!options.check) end_on_stop_signals(/*all=*/true);
  ModelSpec model = bench_model(options.training.model.string());
  model.head = ModelHead::value;
  const PreferenceSet pairs = read_pairs(options.files, options, model);
  std::optional<PreferenceSet> held_out;
  if (!options.validation.empty()) held_out = read_pairs(options.validation, options, model);
  const PreferenceSet* const validation = held_out ? &*held_out : nullptr;
  Problems problems;
  const std::string config = classifier_config(options.training.model, pairs.end, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  const bool alone = !launched();
  if (alone) check_alone(options, model);
  check_count(options, pairs);
  std::optional<RewardPlan> plan;
  if (alone) {
    plan = planned(options, pairs, model, options.ranks_stated ? options.start.ranks : 0);
    const int ranks = plan ? plan->plan.world_size() : options.start.ranks;
    if (options.check) {
      print_start(pairs, validation, plan);
      return 0;
    }
    if (ranks > 1 || options.restarts > 0) {
      const int gpus = cuda_device_count();
      return watch(options, ranks, get_gpus(options.start.device, ranks, gpus));
    }
  }
  RankSetup setup = set_up_rank(options.start.device, options.timeout_s);
  watch_stop_signals(/*all=*/true);
  if (!alone) plan = planned(options, pairs, model, setup.size);
  if (plan) check_device(plan->plan, setup);
  if (setup.rank == 0) print_start(pairs, validation, plan);
  RewardTrainingOptions training = complete(options, pairs, model, plan, setup);
  training.config_json = config;
  const RewardTrainingResult result = train_reward_model(setup, model, pairs, validation, training);
  if (result.stopped != StopReason::none) return static_cast<int>(exit_code_of(result.stopped));
  if (setup.rank == 0) {
    std::printf("wrote %s\n", (options.training.output / "hf").c_str());
  }
  return 0;
}

void add_optimizer(CLI::App& command, RewardTrainingOptions& training, Options& o) {
  command.add_option("--lr", training.schedule.lr, "Learning rate")->check(above_zero());
  command.add_option("--lr-decay", o.decay, "constant or cosine")
      ->check(CLI::IsMember({"constant", "cosine"}));
  command.add_option("--warmup-ratio", training.schedule.warmup_ratio, "Of the steps")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--weight-decay", training.optimizer.weight_decay, "Of AdamW")
      ->check(from_zero());
  command.add_option("--grad-clip", training.optimizer.clip_norm, "Largest norm; 0 = none")
      ->check(from_zero());
  command
      .add_option("--center-coefficient", training.center_coefficient,
                  "Of (chosen + rejected)^2 in the loss; TRL's center_rewards_coefficient")
      ->check(from_zero());
  command.add_flag("--offload-optimizer", training.optimizer.offload,
                   "Optimizer states in host memory");
}

void add_data(CLI::App& command, Options& o) {
  command
      .add_option("pairs", o.files, "JSONL or Parquet files of {prompt, chosen, rejected, margin}")
      ->required();
  command.add_option("--validation", o.validation, "Files of pairs that are only scored");
  command.add_option("--max-tokens", o.max_tokens, "Of a prompt and an answer; 0 = no limit")
      ->check(from_zero());
  command
      .add_option("--overlong", o.overlong,
                  "Pairs with more: error, filter (left out), truncate (prompts are cut at "
                  "their beginning)")
      ->check(CLI::IsMember({"error", "filter", "truncate"}));
}

/// What is saved and looked at meanwhile, and how it goes on.
void add_course(CLI::App& command, RewardTrainingOptions& training, Options& o) {
  command.add_option("--save-freq", training.save_freq, "Steps between two checkpoints; 0 = none")
      ->check(from_zero());
  command
      .add_option("--test-freq", training.test_freq,
                  "Steps between two validations; 0 = one after the last step")
      ->check(from_zero());
  command.add_option("--timeout", o.timeout_s, "Seconds that a rank waits for its peers")
      ->check(above_zero());
  command
      .add_option("--restarts", o.restarts,
                  "How often ranks that this command starts go on from the newest checkpoint after "
                  "a crash or a stall")
      ->check(CLI::Range(0, 1'000'000));
  command.add_flag("--resume", training.resume, "From the newest checkpoint of the folder");
}

}  // namespace

void add_train_reward(CLI::App& app, const std::vector<std::string>& words) {
  CLI::App* command =
      app.add_subcommand("train-reward", "Train a reward model on pairs of answers");
  auto o = std::make_shared<Options>();
  RewardTrainingOptions& training = o->training;
  o->start.words = words;
  training.pairs_per_step = 64;
  training.schedule.lr = 1e-5;
  add_data(*command, *o);
  command->add_option("--model", training.model, "Folder of a language or a reward model")
      ->required();
  command->add_option("-o,--output", training.output, "Folder; must not exist without --resume")
      ->required();
  command->add_option("--batch", training.pairs_per_step, "Pairs of a step")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  command->add_option("--epochs", o->epochs, "Times that the pairs are taken")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  command->add_option("--steps", o->steps, "Instead of epochs; 0 = the epochs'")
      ->check(from_zero());
  add_optimizer(*command, training, *o);
  command->add_option("--cluster", o->cluster,
                      "Cluster YAML or preset: what is not stated of ranks, layout, micro-batches, "
                      "recomputation and offloading is planned for it");
  command->add_flag("--check", o->check,
                    "Read everything, plan where --cluster is given, and leave");
  command->add_option("--layout", o->layout,
                      "tp=2,cp=2,pp=2,vpp=2,dp=2,zero=0..3,replicate=2,sp,ulysses; default the "
                      "plan's, without one FSDP over all ranks");
  CLI::Option* const ranks =
      command->add_option("--ranks", o->start.ranks, "Ranks, one GPU each where there are enough")
          ->check(CLI::Range(1, 1024));
  command->add_option("--device", o->start.device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  command->add_option("--dtype", o->dtype, "Of the weights: bf16, on a CPU fp32")
      ->check(CLI::IsMember({"auto", "bf16", "fp32"}));
  command->add_option("--recompute", o->recompute, "none, selective or full")
      ->check(CLI::IsMember({"none", "selective", "full"}));
  command
      ->add_option("--micro-batch-tokens", o->micro_batch_tokens,
                   "Per replica; 0 = the plan's, without one a single micro-batch")
      ->check(from_zero());
  command->add_option("--seed", training.seed, "Of the pairs' order and a drawn head");
  add_course(*command, training, *o);
  command->callback([o, ranks] {
    o->ranks_stated = ranks->count() > 0;
    const int code = train(*o);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace tessera
