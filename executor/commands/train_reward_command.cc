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

#include "cost_models/documents/problem.h"
#include "executor/bench/train_layout.h"
#include "executor/comm/nccl_world.h"
#include "executor/commands/bench_run.h"
#include "executor/commands/commands.h"
#include "executor/launch/relaunch.h"
#include "executor/launch/stop_signals.h"
#include "executor/preference/reward_state.h"
#include "executor/preference/reward_training.h"
#include "planner/plan/recompute.h"

namespace tessera {
namespace {

struct Options {
  BenchStart start{.ranks = 1};
  std::vector<std::string> files, validation;
  std::string layout, dtype = "auto", recompute = "none", overlong = "error", decay = "constant";
  std::int64_t max_tokens = 0, steps = 0, epochs = 1;
  double timeout_s = 600;
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

/// What follows from the data, the ranks and the device.
RewardTrainingOptions complete(const Options& options, const PreferenceSet& train,
                               const ModelSpec& model, const RankSetup& setup) {
  RewardTrainingOptions made = options.training;
  made.layout = train_layout(options.layout, model, setup.size);
  const std::string fallback = setup.device.is_cuda() ? "bf16" : "fp32";
  made.dtype = *dtype_from(options.dtype == "auto" ? fallback : options.dtype);
  for (const Recompute each : {Recompute::selective, Recompute::full}) {
    if (name_of(each) == options.recompute) made.recompute = each;
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
  train_layout(options.layout, model, options.start.ranks);
  std::error_code error;
  if (!training.resume && std::filesystem::exists(training.output, error)) {
    throw Error(ExitCode::bad_input, {{.file = training.output.string(),
                                       .found = "it exists",
                                       .expected = "a new folder, or --resume"}});
  }
}

int train(const Options& options) {
  end_on_stop_signals(/*all=*/true);
  ModelSpec model = bench_model(options.training.model.string());
  model.head = ModelHead::value;
  const PreferenceSet pairs = read_pairs(options.files, options, model);
  std::optional<PreferenceSet> validation;
  if (!options.validation.empty()) validation = read_pairs(options.validation, options, model);
  Problems problems;
  const std::string config = classifier_config(options.training.model, pairs.end, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
  const bool alone = !launched();
  if (alone) check_alone(options, model);
  check_count(options, pairs);
  if (options.start.ranks > 1 && alone) {
    const BenchStart& start = options.start;
    const int gpus = cuda_device_count();
    relaunch(start.words, start.ranks, get_gpus(start.device, start.ranks, gpus));
  }
  RankSetup setup = set_up_rank(options.start.device, options.timeout_s);
  watch_stop_signals(/*all=*/true);
  if (setup.rank == 0) {
    for (const std::string& line : pairs.notes) std::printf("%s\n", line.c_str());
    if (validation) {
      for (const std::string& line : validation->notes) std::printf("%s\n", line.c_str());
    }
  }
  RewardTrainingOptions training = complete(options, pairs, model, setup);
  training.config_json = config;
  const RewardTrainingResult result =
      train_reward_model(setup, model, pairs, validation ? &*validation : nullptr, training);
  if (result.stopped == StopReason::requeue) return static_cast<int>(ExitCode::requeue);
  if (result.stopped == StopReason::stop) return static_cast<int>(ExitCode::stopped);
  if (setup.rank == 0) {
    std::printf("wrote %s\n", (options.training.output / "hf").c_str());
  }
  return 0;
}

void add_optimizer(CLI::App& command, RewardTrainingOptions& training, Options& o) {
  command.add_option("--lr", training.schedule.lr, "Learning rate")->check(CLI::PositiveNumber);
  command.add_option("--lr-decay", o.decay, "constant or cosine")
      ->check(CLI::IsMember({"constant", "cosine"}));
  command.add_option("--warmup-ratio", training.schedule.warmup_ratio, "Of the steps")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--weight-decay", training.optimizer.weight_decay, "Of AdamW")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--grad-clip", training.optimizer.clip_norm, "Largest norm; 0 = none")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--center-coefficient", training.center_coefficient,
                  "Of (chosen + rejected)^2 in the loss; TRL's center_rewards_coefficient")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--offload-optimizer", training.optimizer.offload,
                   "Optimizer states in host memory");
}

void add_data(CLI::App& command, Options& o) {
  command.add_option("pairs", o.files, "JSONL files of {prompt, chosen, rejected, margin}")
      ->required();
  command.add_option("--validation", o.validation, "JSONL files of pairs that are only scored");
  command.add_option("--max-tokens", o.max_tokens, "Of a prompt and an answer; 0 = no limit")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--overlong", o.overlong,
                  "Pairs with more: error, filter (left out), truncate (prompts are cut at "
                  "their beginning)")
      ->check(CLI::IsMember({"error", "filter", "truncate"}));
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
      ->check(CLI::NonNegativeNumber);
  add_optimizer(*command, training, *o);
  command->add_option("--layout", o->layout,
                      "tp=2,cp=2,pp=2,vpp=2,dp=2,zero=0..3,replicate=2,sp,ulysses; default FSDP "
                      "over all ranks");
  command->add_option("--ranks", o->start.ranks, "Ranks, one GPU each where there are enough")
      ->check(CLI::Range(1, 1024));
  command->add_option("--device", o->start.device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  command->add_option("--dtype", o->dtype, "Of the weights: bf16, on a CPU fp32")
      ->check(CLI::IsMember({"auto", "bf16", "fp32"}));
  command->add_option("--recompute", o->recompute, "none, selective or full")
      ->check(CLI::IsMember({"none", "selective", "full"}));
  command
      ->add_option("--micro-batch-tokens", training.token_limit, "Per replica; 0 = one micro-batch")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seed", training.seed, "Of the pairs' order and a drawn head");
  command->add_option("--save-freq", training.save_freq, "Steps between two checkpoints; 0 = none")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--test-freq", training.test_freq,
                   "Steps between two validations; 0 = one after the last step")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--timeout", o->timeout_s, "Seconds that a rank waits for its peers")
      ->check(CLI::PositiveNumber);
  command->add_flag("--resume", training.resume, "From the newest checkpoint of the folder");
  command->callback([o] {
    const int code = train(*o);
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace tessera
