// verl's keys as a plan: the way back of verl_settings.cc, with verl's defaults where a file is
// silent.
#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/interop/import.h"
#include "planner/interop/verl_settings.h"
#include "planner/search/iteration.h"
#include "planner/search/search.h"

namespace tessera {
namespace {

DType dtype_of(const std::string& name, DType otherwise) {
  return dtype_from(name).value_or(otherwise);
}

class Importer {
 public:
  Importer(const ConfigValues& config, const ImportOptions& options, Problems& problems)
      : config_(config), options_(options), problems_(problems), before_(problems.size()) {}

  std::optional<Imported> run() {
    Plan& plan = out_.plan;
    plan.engine = config_.megatron_engine ? "verl-megatron" : "verl";
    plan.provenance.calibration = "";
    check_keys();
    cluster();
    workload();
    models();
    if (problems_.size() != before_) return std::nullopt;
    roles();
    if (problems_.size() != before_) return std::nullopt;
    plan.schedule =
        schedule_of(default_schedule(plan.workload), placement_of(plan), rollout_gpus_ > 0 ? 1 : 0);
    reshard();
    validate(plan, config_.file, problems_);
    if (problems_.size() != before_) return std::nullopt;
    return std::move(out_);
  }

 private:
  std::int64_t integer(const std::string& key, std::int64_t otherwise, Whole range = kPositive) {
    return config_.integer(key, otherwise, problems_, range);
  }
  bool flag(const std::string& key, bool otherwise) {
    return config_.boolean(key, otherwise, problems_);
  }
  std::string text(const std::string& key, std::string otherwise) {
    return config_.text(key, std::move(otherwise), problems_);
  }
  // Of a path the last part tells the model, even where the folder is only known to a run.
  std::string path(const std::string& key) {
    const Node* const node = config_.find(key);
    return node == nullptr || !node->is(Node::Kind::string) ? text(key, "") : node->text;
  }
  void refuse(const std::string& key, std::string found, std::string expected,
              std::string hint = {}) {
    const auto value = config_.values.find(key);
    problems_.push_back({config_.file, value == config_.values.end() ? "" : value->second.place,
                         key + " = " + std::move(found), std::move(expected), std::move(hint)});
  }
  void note(std::string sentence) { out_.notes.push_back(std::move(sentence)); }

  void check_keys() {
    out_.ignored = ignored_keys(config_);
    for (Problem& problem : unknown_keys(config_)) {
      if (!options_.allow_unknown) {
        problems_.push_back(std::move(problem));
      } else {
        note("unknown key " + problem.found + " at " + problem.place +
             (problem.hint.empty() ? "" : " (" + problem.hint + ")"));
      }
    }
  }

  void cluster();
  void workload();
  void trainer_mode(std::int64_t mini);
  void models();
  void roles();
  void reshard();

  RolePlan role(Role role);
  ParallelLayout fsdp_layout(const std::string& block, const std::string& ulysses_key, Role role);
  ParallelLayout megatron_layout(const std::string& block, const ModelSpec& model);
  std::vector<LayerRange> stages(const std::string& block, const ModelSpec& model,
                                 const ParallelLayout& layout);
  Recompute recompute_of(Role role);
  /// Tokens of a micro-batch on one replica, from limits per GPU or sequences per GPU.
  std::int64_t tokens(bool dynamic, const std::string& limit, std::int64_t otherwise,
                      const std::string& sequences, int cp);
  std::int64_t longest() const {
    return out_.plan.workload.prompt_tokens + out_.plan.workload.response_tokens.max;
  }

  const ConfigValues& config_;
  const ImportOptions& options_;
  Problems& problems_;
  std::size_t before_;
  Imported out_;
  std::int64_t world_ = 1;
  std::int64_t rollout_gpus_ = 0;  // of its own; 0 = it shares the actor's
};

void Importer::cluster() {
  const std::int64_t nodes = integer("trainer.nnodes", 1, {.least = 1, .most = 1 << 20});
  const std::int64_t per_node =
      integer("trainer.n_gpus_per_node", 8, {.least = 1, .most = 1 << 10});
  world_ = nodes * per_node;
  if (world_ > 1 << 20) {
    return refuse("trainer.nnodes", std::to_string(nodes), "at most 1048576 GPUs altogether");
  }
  ClusterSpec& cluster = out_.plan.cluster;
  cluster = options_.cluster;
  if (nodes == 1 && per_node <= cluster.gpus_per_node) return;  // a part of a node
  if (cluster.gpus_per_node != per_node) {
    note("the cluster's nodes have " + std::to_string(cluster.gpus_per_node) +
         " GPUs, the file's " + std::to_string(per_node) + ": the file's count.");
    cluster.gpus_per_node = per_node;
  }
  cluster.nodes = std::max(cluster.nodes, nodes);
}

void Importer::workload() {
  Workload& work = out_.plan.workload;
  const std::string estimator = text("algorithm.adv_estimator", "gae");
  work.algorithm = estimator == "gae" ? "ppo" : "grpo";
  if (estimator != "gae" && estimator != "grpo") {
    note("adv_estimator " + estimator + " has GRPO's calls; it is planned as grpo.");
  }
  work.prompts_per_step = integer("data.train_batch_size", 1024);
  work.samples_per_prompt = integer("actor_rollout_ref.rollout.n", 1);
  work.prompt_tokens = integer("data.max_prompt_length", 512);
  work.response_tokens.max = integer("data.max_response_length", 512);
  work.response_tokens.mean = static_cast<double>(work.response_tokens.max);
  if (options_.response_mean > 0 && options_.response_mean <= work.response_tokens.mean) {
    work.response_tokens.mean = options_.response_mean;
    work.response_tokens.cv = options_.response_mean < work.response_tokens.mean ? 0.5 : 0;
  } else {
    note("every response is counted as long as the longest, " +
         std::to_string(work.response_tokens.max) + " tokens; --response-mean says otherwise.");
  }
  const std::int64_t mini = integer("actor_rollout_ref.actor.ppo_mini_batch_size", 256);
  if (problems_.size() == before_ && work.prompts_per_step % mini != 0) {
    refuse("actor_rollout_ref.actor.ppo_mini_batch_size", std::to_string(mini),
           "a divisor of data.train_batch_size = " + std::to_string(work.prompts_per_step),
           "both count prompts");
  }
  work.mini_batches = std::max<std::int64_t>(1, work.prompts_per_step / mini);
  work.epochs = integer("actor_rollout_ref.actor.ppo_epochs", 1);
  const bool loss = flag("actor_rollout_ref.actor.use_kl_loss", false);
  const bool reward = flag("algorithm.use_kl_in_reward", false);
  work.kl = loss ? KlPlace::loss : reward ? KlPlace::reward : KlPlace::none;
  if (loss && reward) note("KL is in the loss and in the reward; the plan keeps the loss.");
  const bool critic = flag("critic.enable", estimator == "gae");
  if (critic != (work.algorithm == "ppo")) {
    refuse("critic.enable", critic ? "true" : "false",
           critic ? "false with adv_estimator " + estimator : "true with adv_estimator gae");
  }
  if (critic) {
    const std::int64_t critic_mini = integer("critic.ppo_mini_batch_size", mini);
    const std::int64_t critic_epochs = integer("critic.ppo_epochs", work.epochs);
    if (critic_mini != mini) {
      refuse("critic.ppo_mini_batch_size", std::to_string(critic_mini),
             std::to_string(mini) + ", the actor's", "a plan has one size of mini-batches");
    }
    if (critic_epochs != work.epochs) {
      refuse("critic.ppo_epochs", std::to_string(critic_epochs),
             std::to_string(work.epochs) + ", the actor's", "a plan has one number of epochs");
    }
  }
  trainer_mode(mini);
}

/// The synchronous trainer, or the asynchronous one with GPUs of its own for the rollout.
void Importer::trainer_mode(std::int64_t mini) {
  const Workload& work = out_.plan.workload;
  const std::string key = "trainer.v1.trainer_mode", mode = text(key, "sync");
  if (mode == "sync") return;
  if (mode != "separate_async") {
    return refuse(
        key, mode, "sync or separate_async",
        mode == "colocate_async"
            ? "a plan's calls on the same GPUs follow one another; this trainer generates "
              "into a buffer between them"
            : "");
  }
  const std::string block = "trainer.v1.separate_async";
  const std::int64_t sync = integer(block + ".parameter_sync_step", 4);
  if (work.prompts_per_step != sync * mini) {
    refuse(block + ".parameter_sync_step", std::to_string(sync),
           "data.train_batch_size / ppo_mini_batch_size = " + std::to_string(work.mini_batches),
           "verl asserts it");
  }
  if (flag(block + ".hybrid_rollout.enable_switch", false)) {
    refuse(block + ".hybrid_rollout.enable_switch", "true", "false",
           "a plan's GPUs do not change their role within a step");
  }
  if (flag("actor_rollout_ref.hybrid_engine", true)) {
    note(
        "actor_rollout_ref.hybrid_engine = true keeps rollout replicas on the trainer's GPUs, "
        "for validation; the plan does not have them.");
  }
  const Whole degree{.least = 1, .most = 1 << 20};
  const std::string rollout = "actor_rollout_ref.rollout";
  rollout_gpus_ =
      integer(rollout + ".nnodes", 1, degree) * integer(rollout + ".n_gpus_per_node", 8, degree);
  if (rollout_gpus_ > 1 << 20) {
    return refuse(rollout + ".nnodes", std::to_string(rollout_gpus_) + " GPUs",
                  "at most 1048576 GPUs altogether");
  }
  ClusterSpec& cluster = out_.plan.cluster;
  cluster.nodes = std::max(
      cluster.nodes, (world_ + rollout_gpus_ + cluster.gpus_per_node - 1) / cluster.gpus_per_node);
}

void Importer::models() {
  Plan& plan = out_.plan;
  const auto add = [&](const char* key, const std::string& place, const std::string& name) {
    if (const auto model = find_model(name, config_, place, out_.notes, problems_)) {
      plan.models.emplace(key, *model);
    }
  };
  const std::string actor_key = "actor_rollout_ref.model.path";
  const std::string actor = options_.model.empty() ? path(actor_key) : options_.model;
  if (actor.empty()) {
    refuse(actor_key, "nothing", "a model's folder", "or --model");
  } else {
    add("actor", actor_key, actor);
  }
  Workload& work = plan.workload;
  if (work.algorithm == "ppo") {
    const std::string key = "critic.model.path";
    const std::string critic = options_.critic.empty() ? path(key) : options_.critic;
    if (critic.empty()) {
      note("no critic.model.path: the critic is planned with the actor's architecture.");
    } else if (critic != actor) {
      add("critic", key, critic);
      work.critic_model = critic;
    }
  }
  if (!flag("reward.reward_model.enable", false)) return;
  const std::string key = "reward.reward_model.model_path";
  const std::string reward = options_.reward.empty() ? path(key) : options_.reward;
  if (reward.empty()) return refuse(key, "nothing", "a model's folder", "or --reward");
  add("reward", key, reward);
  work.reward_model = reward;
}

ParallelLayout Importer::fsdp_layout(const std::string& block, const std::string& ulysses_key,
                                     Role role) {
  ParallelLayout layout;
  const bool actor = role != Role::critic;
  // The actor's outer key wins where it is above one (FSDPActorConfig.__post_init__).
  const std::int64_t own = integer(block + ".ulysses_sequence_parallel_size", 1);
  const std::int64_t inherited =
      role == Role::reference ? integer("actor_rollout_ref.actor.ulysses_sequence_parallel_size", 1)
                              : 1;
  const std::int64_t outer = actor ? integer(ulysses_key, inherited) : 1;
  layout.cp = static_cast<int>(std::min<std::int64_t>(outer > 1 ? outer : own, 1 << 20));
  if (world_ % layout.cp != 0) {
    refuse(ulysses_key, std::to_string(layout.cp),
           "a divisor of the " + std::to_string(world_) + " GPUs");
    return layout;
  }
  layout.ulysses = layout.cp > 1;
  const int dp = static_cast<int>(world_ / layout.cp);
  const std::int64_t size = integer(block + ".fsdp_size", -1, {.least = -1});
  const bool reshard = flag(block + ".reshard_after_forward", true);
  layout.dp_replicate = dp;
  if (size == 1 || world_ == 1) return layout;  // nothing is cut
  if (!reshard) {
    layout.zero = 2;
    if (size > 1 && size < world_)
      note(block + ": hybrid ZeRO-2 is counted as ZeRO-2 over all GPUs.");
    return layout;
  }
  layout.zero = 3;
  layout.dp_replicate = 1;
  layout.dp_shard = dp;
  if (size <= 0 || size >= world_) return layout;
  if (world_ % size != 0 || size % layout.cp != 0) {
    refuse(block + ".fsdp_size", std::to_string(size),
           "a divisor of the " + std::to_string(world_) + " GPUs and a multiple of Ulysses' " +
               std::to_string(layout.cp));
    return layout;
  }
  layout.dp_replicate = static_cast<int>(world_ / size);
  layout.dp_shard = static_cast<int>(size / layout.cp);
  if (layout.dp_shard == 1) layout.zero = 0;
  return layout;
}

std::vector<LayerRange> Importer::stages(const std::string& block, const ModelSpec& model,
                                         const ParallelLayout& layout) {
  // The reference's override_transformer_config is the actor's.
  const bool reference = block.find(".ref.") != std::string::npos;
  const std::string prefix = (reference ? "actor_rollout_ref.actor.megatron" : block) +
                             ".override_transformer_config.num_layers_in_";
  const std::int64_t first = integer(prefix + "first_pipeline_stage", 0);
  const std::int64_t last = integer(prefix + "last_pipeline_stage", 0);
  const std::int64_t chunks = std::int64_t{layout.pp} * layout.vpp;
  const std::int64_t open = chunks - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const std::int64_t left = model.layers - first - last;
  const bool given = first > 0 || last > 0;
  if (left < 0 || open < 0 || (open == 0 && left != 0) || (open > 0 && left % open != 0) ||
      (given && layout.vpp > 1)) {
    refuse(block + ".pipeline_model_parallel_size", std::to_string(layout.pp),
           "stages of equally many of the " + std::to_string(model.layers) + " layers",
           "num_layers_in_first_pipeline_stage and num_layers_in_last_pipeline_stage make uneven "
           "ones");
    return {};
  }
  std::vector<LayerRange> made;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < chunks; ++i) {
    std::int64_t count = open > 0 ? left / open : 0;
    if (i == 0 && first > 0) count = first;
    if (i == chunks - 1 && last > 0) count = last;
    made.push_back({at, at + count});
    at += count;
  }
  return made;
}

ParallelLayout Importer::megatron_layout(const std::string& block, const ModelSpec& model) {
  // The reference inherits the actor's degrees in verl's own YAML.
  const bool inherits = block.find(".ref.") != std::string::npos;
  const std::string actor = "actor_rollout_ref.actor.megatron";
  const Whole degree{.least = 1, .most = 1 << 20};
  const auto size = [&](const char* name) {
    const bool own = config_.has(block + "." + name);  // null stands for one
    const std::int64_t otherwise =
        inherits && !own ? integer(actor + "." + name, 1, degree) : std::int64_t{1};
    return static_cast<int>(integer(block + "." + name, otherwise, degree));
  };
  ParallelLayout layout;
  layout.tp = size("tensor_model_parallel_size");
  layout.pp = size("pipeline_model_parallel_size");
  layout.vpp = size("virtual_pipeline_model_parallel_size");
  layout.cp = size("context_parallel_size");
  layout.ep = size("expert_model_parallel_size");
  layout.etp = layout.ep > 1 ? size("expert_tensor_parallel_size") : 1;
  const bool parallel = flag(block + ".sequence_parallel", true);
  layout.sequence_parallel = parallel && layout.tp > 1;
  if (!inherits && flag(block + ".use_distributed_optimizer", true)) layout.zero = 1;
  const std::int64_t product = std::int64_t{layout.tp} * layout.pp * layout.cp;
  if (product > world_ || world_ % product != 0) {
    refuse(block + ".tensor_model_parallel_size", std::to_string(layout.tp),
           "tp x pp x cp = " + std::to_string(product) + " to divide the " +
               std::to_string(world_) + " GPUs");
    return layout;
  }
  layout.dp_replicate = static_cast<int>(world_ / product);
  if (std::int64_t{layout.pp} * layout.vpp > model.layers) {
    refuse(block + ".pipeline_model_parallel_size", std::to_string(layout.pp),
           "at most one stage per layer, " + std::to_string(model.layers));
    return layout;
  }
  layout.stages = stages(block, model, layout);
  return layout;
}

Recompute Importer::recompute_of(Role role) {
  if (!config_.megatron_engine) {
    const std::string key = role == Role::critic
                                ? "critic.model.enable_gradient_checkpointing"
                                : "actor_rollout_ref.model.enable_gradient_checkpointing";
    return flag(key, true) ? Recompute::full : Recompute::none;
  }
  const std::string block =
      role == Role::critic ? "critic.megatron" : "actor_rollout_ref.actor.megatron";
  const std::string mode =
      text(block + ".override_transformer_config.recompute_granularity", "none");
  if (mode == "full") return Recompute::full;
  return mode == "selective" ? Recompute::selective : Recompute::none;
}

std::int64_t Importer::tokens(bool dynamic, const std::string& limit, std::int64_t otherwise,
                              const std::string& sequences, int cp) {
  const Whole range{.least = 1, .most = std::int64_t{1} << 40};
  if (dynamic) return integer(limit, otherwise, range) * cp;
  return integer(sequences, 1, {.least = 1, .most = 1 << 24}) * longest();
}

RolePlan Importer::role(Role role) {
  RolePlan made;
  const Workload& work = out_.plan.workload;
  made.role = role;
  made.model = role == Role::critic && out_.plan.models.contains("critic") ? "critic" : "actor";
  made.ranks.resize(static_cast<std::size_t>(world_));
  std::iota(made.ranks.begin(), made.ranks.end(), 0);
  const ModelSpec& model = out_.plan.models.at(made.model).spec;
  const bool megatron = config_.megatron_engine;
  const std::string base = role == Role::critic      ? "critic"
                           : role == Role::reference ? "actor_rollout_ref.ref"
                                                     : "actor_rollout_ref.actor";
  const std::string block = base + (megatron               ? ".megatron"
                                    : role == Role::critic ? ".fsdp"
                                                           : ".fsdp_config");
  made.layout = megatron ? megatron_layout(block, model)
                         : fsdp_layout(block, base + ".ulysses_sequence_parallel_size", role);
  if (made.layout.stages.empty()) made.layout.stages = even_stages(model.layers, 1, 1);
  if (megatron) made.rank_order = RankOrder::megatron;
  made.dtypes.param = dtype_of(text(block + ".dtype", "bfloat16"), DType::bf16);
  made.dtypes.kv = made.dtypes.wire =
      dtype_of(text("actor_rollout_ref.rollout.dtype", "bfloat16"), DType::bf16);
  const bool trained = role != Role::reference;
  if (!megatron) {
    const std::string stored = text(block + ".model_dtype", "fp32");
    if (trained) made.dtypes.master = dtype_of(stored, DType::fp32);
  }
  const bool inherited =
      !trained && megatron && flag("actor_rollout_ref.actor.megatron.param_offload", false);
  made.offload.parameters = flag(block + ".param_offload", inherited);
  if (trained) {
    made.offload.gradients = made.offload.parameters;
    made.offload.optimizer = flag(block + ".optimizer_offload", false);
    made.recompute = recompute_of(role);
    made.batching.mini_batch = work.sequences() / work.mini_batches;
  } else if (!megatron) {
    made.offload.parameters = true;  // whatever the key says
  }
  return made;
}

void Importer::roles() {
  Plan& plan = out_.plan;
  Workload& work = plan.workload;
  const bool reward_model = plan.models.contains("reward");
  work.dataflow = preset_dataflow(work.algorithm, work.kl, reward_model);
  const std::string actor_base = "actor_rollout_ref.actor", rollout = "actor_rollout_ref.rollout";
  const bool dynamic = flag(actor_base + ".use_dynamic_bsz", false);
  const std::int64_t limit = integer(actor_base + ".ppo_max_token_len_per_gpu", 16384);

  RolePlan actor = role(Role::actor);
  const int cp = actor.layout.cp;
  actor.batching.update_tokens = tokens(dynamic, actor_base + ".ppo_max_token_len_per_gpu", 16384,
                                        actor_base + ".ppo_micro_batch_size_per_gpu", cp);
  actor.batching.log_prob_tokens =
      tokens(dynamic, rollout + ".log_prob_max_token_len_per_gpu", limit,
             rollout + ".log_prob_micro_batch_size_per_gpu", cp);
  plan.roles.push_back(std::move(actor));

  RolePlan generation;
  generation.role = Role::rollout;
  generation.model = "actor";
  generation.ranks = plan.roles[0].ranks;
  const std::int64_t pool = rollout_gpus_ > 0 ? rollout_gpus_ : world_;
  if (rollout_gpus_ > 0) {
    generation.ranks.resize(static_cast<std::size_t>(pool));
    std::iota(generation.ranks.begin(), generation.ranks.end(), static_cast<int>(world_));
  }
  ParallelLayout& layout = generation.layout;
  const Whole degree{.least = 1, .most = 1 << 20};
  layout.tp = static_cast<int>(integer(rollout + ".tensor_model_parallel_size", 2, degree));
  layout.pp = static_cast<int>(integer(rollout + ".pipeline_model_parallel_size", 1, degree));
  layout.ep = static_cast<int>(integer(rollout + ".expert_parallel_size", 1, degree));
  const std::int64_t inner = integer(rollout + ".data_parallel_size", 1, degree);
  if (layout.ep > 1 && layout.ep != layout.tp * inner) {
    refuse(rollout + ".expert_parallel_size", std::to_string(layout.ep),
           "tensor x data parallel = " + std::to_string(layout.tp * inner));
  }
  const std::int64_t replica = std::int64_t{layout.tp} * layout.pp * inner;
  if (replica > pool || pool % replica != 0) {
    refuse(
        rollout + ".tensor_model_parallel_size", std::to_string(layout.tp),
        "replicas of " + std::to_string(replica) + " GPUs to divide the " + std::to_string(pool));
  } else {
    layout.dp_replicate = static_cast<int>(pool / layout.tp / layout.pp);
  }
  const ModelSpec& model = plan.models.at("actor").spec;
  layout.stages =
      even_stages(model.layers, std::min<int>(layout.pp, static_cast<int>(model.layers)), 1);
  generation.dtypes.param = generation.dtypes.kv = generation.dtypes.wire =
      dtype_of(text(rollout + ".dtype", "bfloat16"), DType::bf16);
  generation.batching.max_sequences = integer(rollout + ".max_num_seqs", 256);
  generation.batching.prefill_tokens = integer(rollout + ".max_num_batched_tokens", 8192);
  plan.roles.push_back(std::move(generation));

  if (work.algorithm == "ppo") {
    RolePlan critic = role(Role::critic);
    const bool v1 = flag("trainer.use_v1", true);
    const std::int64_t infer =
        integer("critic.ppo_infer_max_token_len_per_gpu", 32768) * critic.layout.cp;
    critic.batching.values_tokens = infer;
    critic.batching.update_tokens =
        v1 ? infer : integer("critic.ppo_max_token_len_per_gpu", 32768) * critic.layout.cp;
    plan.roles.push_back(std::move(critic));
  }
  if (work.kl != KlPlace::none) {
    RolePlan reference = role(Role::reference);
    const std::string base = "actor_rollout_ref.ref";
    const bool own = flag(base + ".log_prob_use_dynamic_bsz", dynamic);
    reference.batching.log_prob_tokens =
        tokens(own, base + ".log_prob_max_token_len_per_gpu", limit,
               base + ".log_prob_micro_batch_size_per_gpu", reference.layout.cp);
    plan.roles.push_back(std::move(reference));
  }
  if (!reward_model) return;
  RolePlan reward;
  const std::string base = "reward.reward_model";
  reward.role = Role::reward;
  reward.model = "reward";
  reward.layout.tp =
      static_cast<int>(integer(base + ".rollout.tensor_model_parallel_size", 2, degree));
  std::int64_t gpus = world_, first = 0;
  if (flag(base + ".enable_resource_pool", false)) {
    gpus = integer(base + ".nnodes", 1, degree) * integer(base + ".n_gpus_per_node", 8, degree);
    first = world_ + rollout_gpus_;
    ClusterSpec& cluster = plan.cluster;
    cluster.nodes =
        std::max(cluster.nodes, (first + gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node);
  }
  if (gpus > 1 << 20 || gpus % reward.layout.tp != 0) {
    return refuse(base + ".rollout.tensor_model_parallel_size", std::to_string(reward.layout.tp),
                  "a divisor of the reward model's " + std::to_string(gpus) + " GPUs");
  }
  reward.layout.dp_replicate = static_cast<int>(gpus / reward.layout.tp);
  reward.layout.stages = even_stages(plan.models.at("reward").spec.layers, 1, 1);
  reward.ranks.resize(static_cast<std::size_t>(gpus));
  std::iota(reward.ranks.begin(), reward.ranks.end(), static_cast<int>(first));
  reward.dtypes.param = dtype_of(text(base + ".rollout.dtype", "bfloat16"), DType::bf16);
  reward.batching.reward_tokens = integer(base + ".rollout.max_num_batched_tokens", 8192);
  plan.roles.push_back(std::move(reward));
}

void Importer::reshard() {
  PlannedReshard pair;
  pair.mode = ReshardMode::full;  // verl gathers every tensor whole
  pair.keep = !flag("actor_rollout_ref.rollout.free_cache_engine", true) || rollout_gpus_ > 0;
  const std::int64_t mebibytes =
      integer("actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes", 2048,
              {.least = 1, .most = 1 << 20});
  pair.bucket_bytes = mebibytes << 20;
  out_.plan.reshard.push_back(pair);
}

}  // namespace

std::optional<Imported> import_verl(const ConfigValues& config, const ImportOptions& options,
                                    Problems& problems) {
  return Importer(config, options, problems).run();
}

}  // namespace tessera
