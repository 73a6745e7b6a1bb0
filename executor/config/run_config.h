// RunConfig: all that a run needs beside its plan, from run.yaml with verl's keys as nested YAML.
//
// Plain data. Defaults are verl 0.9.1's (trainer/config/_generated_ppo_trainer.yaml) where verl has
// the key. What the plan fixes may be repeated in the file, but not contradicted. Torch-free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/adapters.h"
#include "cost_models/documents/problem_list.h"
#include "cost_models/layout/reshard_transport.h"
#include "cost_models/spec/dtype.h"
#include "executor/batching/schedule.h"
#include "executor/checkpoint/run_checkpoint.h"
#include "executor/correction/rollout_correction.h"
#include "executor/data/prompts.h"
#include "executor/estimators/estimators.h"
#include "executor/losses/losses.h"
#include "executor/rewards/reward_functions.h"
#include "executor/rl/aggregate.h"
#include "executor/rl/filter_groups.h"
#include "executor/rl/kl.h"
#include "executor/rl/overlong.h"
#include "executor/rl/pf_ppo.h"
#include "executor/rl/sampling.h"
#include "executor/vllm/options.h"
#include "planner/engines/generation_engine.h"

namespace tessera {

struct Plan;

struct DataConfig {
  std::vector<std::filesystem::path> train_files;  // relative to the working directory
  std::vector<double> train_weights;               // of the files; empty = one set of all prompts
  std::int64_t max_prompt_length = 0;              // tokens; default: the plan's longest prompt
  bool filter_overlong_prompts = false;            // longer ones are left out
  Truncation truncation = Truncation::error;       // of longer ones that are not
  std::string chat_template_options = "{}";        // a JSON object: the template's variables
  bool shuffle = true;
  std::uint64_t seed = 0;  // default: trainer.seed
};

struct KlControlConfig {
  bool adaptive = false;
  double kl_coef = 0.001, target_kl = 0.1, horizon = 10000;
};

/// What the group filter compares: the reward, the score before any shaping, or the accuracy that
/// the reward function states (the score where it states none).
enum class FilterMetric : std::uint8_t { reward, score, accuracy };

struct AlgorithmConfig {
  AdvantageOptions advantage;     // the estimator follows the plan's dataflow
  bool use_kl_in_reward = false;  // the plan's kl
  KlPenalty kl_penalty;
  KlControlConfig kl_ctrl;
  std::optional<RolloutCorrection> rollout_correction;  // unset: not even its metrics
  /// The rollout's log-probs are the old policy's; the loss is then the actor's bypass_mode.
  bool bypass_mode = false;
  BypassLoss bypass_loss = BypassLoss::ppo_clip;
  FilterGroups filter_groups;
  FilterMetric filter_metric = FilterMetric::reward;
  PfPpo pf_ppo;
};

struct OptimConfig {
  double lr = 1e-6;
  LrDecay decay = LrDecay::constant;
  std::int64_t lr_warmup_steps = -1;
  double lr_warmup_steps_ratio = 0, min_lr_ratio = 0;
  double weight_decay = 0.01, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};

/// Whose choice of experts the actor replays: nobody's; in the update that of the old policy's pass
/// (R2); in both that of the rollout (R3). verl's modes.
enum class RouterReplayMode : std::uint8_t { disabled, r2, r3 };
std::string_view name_of(RouterReplayMode mode);

struct ActorConfig {
  OptimConfig optim;
  ActorOptions objective;  // policy loss, entropy bonus, KL loss (the plan's kl), distillation
  std::filesystem::path teacher;  // weights of the role reference; empty = its model's
  Aggregation aggregation;
  double grad_clip = 1.0;
  double router_aux_loss_coef = 0;  // of the routers' load-balancing loss; verl trains without it
  double router_z_loss_coef = 0;    // of their z loss
  RouterReplayMode router_replay = RouterReplayMode::disabled;
  bool record_experts = false;        // of R3 in samples.jsonl
  bool reshard_after_forward = true;  // FSDP; false: layers stay whole until their backward pass
  Lora lora;                          // what is trained beside frozen weights; unused = the weights
  std::filesystem::path adapters;     // peft's folder to begin with; empty = they are drawn
};

struct RolloutConfig {
  SamplingOptions sampling;
  std::uint64_t seed = 0;  // default: trainer.seed
  /// A sample's tokens and log-probs have the same bits whatever else is generated, and are those
  /// that the actor computes.
  bool batch_invariant = false;
  /// Steps between two in which digests prove the rollout's weights, beginning with the first; 0 =
  /// never.
  std::int64_t verify_weights = 10;
  GenerationEngine engine = GenerationEngine::tessera;  // default: the plan's
  VllmOptions vllm;                                     // unused by Tessera's own engine
};

struct CriticConfig {
  OptimConfig optim{.lr = 1e-5};
  double cliprange_value = 0.5;
  Aggregation aggregation;  // default: the actor's
  double grad_clip = 1.0;
  bool reshard_after_forward = true;
};

struct RewardConfig {
  RewardOptions functions;  // rules and programs; unused with a reward model
  OverlongBuffer overlong;  // added to every score
};

/// Prompts that are answered now and then to see how well the actor does, and never trained on.
struct ValidationConfig {
  std::vector<std::filesystem::path> files;  // empty = no validation
  std::int64_t most_prompts = -1;            // the first ones; -1 = all
  SamplingOptions sampling{.temperature = 0};
  std::int64_t samples = 1;              // answers to each prompt
  std::int64_t freq = -1;                // steps between two, and one after the last; -1 = none
  bool before_train = true;              // one before the first step
  bool only = false;                     // that one is all of the run
  std::filesystem::path samples_folder;  // of the answers; empty = RUN/validation
};

/// verl's resume modes. `automatic` (auto): from the newest complete checkpoint of the run's own
/// folder, which may then exist; where it has none from resume_from_path, or the beginning.
enum class ResumeMode : std::uint8_t { disable, automatic, resume_path };
std::string_view name_of(ResumeMode mode);

/// When checkpoints are written, which of them stay, and from which the run goes on.
struct CheckpointConfig {
  std::int64_t save_freq = -1;     // steps between two, and one after the last; -1 = none
  std::int64_t hf_save_freq = -1;  // the same of the actor as a Hugging Face folder
  CheckpointsToKeep keep;
  ResumeMode resume_mode = ResumeMode::disable;
  std::filesystem::path resume_from_path;  // a checkpoint, or a run whose newest is meant
  bool resume_ruined = false;  // also from one that the step after it showed to be ruined
};

/// How far the actions of rules may go (trainer.rule_actions).
struct RuleActionsConfig {
  double lr_factor = 0.5;       // `set lr` multiplies the learning rates by it, each time
  double lr_floor = 0.1;        // down to this part of what the file says
  std::int64_t roll_backs = 2;  // of a run; the next one ends it
};

struct TrainerConfig {
  CheckpointConfig checkpoint;
  RuleActionsConfig rule_actions;
  double timeout_s = 600;  // what a rank waits for its peers, e.g. for another role's phase to end
  std::int64_t total_training_steps = 0;
  std::uint64_t seed = 0;
  bool seed_stated = false;           // by the file
  bool deterministic = false;         // the same bits in every run, for some speed on GPUs
  std::uint16_t prometheus_port = 0;  // of 127.0.0.1, where the newest numbers are read; 0 = none
  double memory_limit_gib = 0;        // of a rank's device memory; 0 = all that it has
  std::string allocator;              // of torch on GPUs; empty = MemoryOptions's choice
  bool random_weights = false;        // models' weights are drawn, no file of them is read
  std::string rules;                  // a profile or a file of rules on each step; empty = none
  std::filesystem::path rollout_replay;  // samples.jsonl to take rollouts from; empty = generate
};

/// How the actor's weights reach the rollout, beside what the plan says of it.
struct ReshardConfig {
  ReshardTransport transport = ReshardTransport::automatic;  // the plan's; may be set where it is
                                                             // automatic
  std::int64_t bucket_bytes = 0;    // the plan's; may be set where it has no bound
  std::optional<DType> wire;        // of fp32 weights, from `wire_from_step` on
  std::int64_t wire_from_step = 1;  // the first is 1
  bool verify = false;              // compare checksums at both ends
  bool incremental = false;         // move only what changed since the last reshard
  bool unmap = false;               // the rollout's memory is given back between generations
  bool preload = false;             // map the rollout's memory again while the actor is updated
  bool overlap = false;             // tensors leave as soon as the optimizer has written them
};

struct RunConfig {
  DataConfig data;
  AlgorithmConfig algorithm;
  ActorConfig actor;
  RolloutConfig rollout;
  CriticConfig critic;
  RewardConfig reward;
  ValidationConfig validation;
  TrainerConfig trainer;
  ReshardConfig reshard;
};

/// Seeds of a run whose file states none: of its numbers, and of its prompts' order.
struct DefaultSeeds {
  std::uint64_t run = 0, order = 0;
};

/// Reads a run YAML for this plan. Unknown keys, keys of verl that tessera does not have (with the
/// reason) and contradictions of the plan (with both values) are Problems; then nullopt.
std::optional<RunConfig> parse_run_config(std::string_view text, const std::string& file,
                                          const Plan& plan, Problems& problems,
                                          const DefaultSeeds& seeds = {});
/// Reads a run's configuration from a file or a preset's name (configs/runs/NAME.yaml).
std::optional<RunConfig> read_run_config(const std::filesystem::path& where, const Plan& plan,
                                         Problems& problems, const DefaultSeeds& seeds = {});

}  // namespace tessera
