// The roles of a plan from verl's keys.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "cost_models/spec/preset_algorithms.h"
#include "planner/interop/config/imported_recompute.h"
#include "planner/interop/verl/verl_engines.h"
#include "planner/interop/verl/verl_import.h"

namespace tessera {
namespace {

const std::string kActor = "actor_rollout_ref.actor", kRollout = "actor_rollout_ref.rollout",
                  kReference = "actor_rollout_ref.ref", kReward = "reward.reward_model";

std::vector<int> ranks_from(std::int64_t first, std::int64_t count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), static_cast<int>(first));
  return ranks;
}

Recompute recompute_of(VerlImport& in, Role role, const ModelSpec& model) {
  const bool critic = role == Role::critic;
  if (in.config.engine == VerlEngine::torchtitan) return torchtitan_recompute(in);
  if (in.config.engine != VerlEngine::megatron) {
    const std::string key = critic ? "critic.model.enable_gradient_checkpointing"
                                   : "actor_rollout_ref.model.enable_gradient_checkpointing";
    return in.flag(key, true) ? Recompute::full : Recompute::none;
  }
  const std::string block = critic ? "critic.megatron" : kActor + ".megatron";
  const std::string key = block + ".override_transformer_config.recompute_";
  const std::string mode = in.text(key + "granularity", "none");
  if (mode == "full") return Recompute::full;
  if (mode != "selective") return Recompute::none;
  return selective_of(words_of(in.config.find(key + "modules")), model, in.out.notes);
}

DType wire_dtype(const VerlImport& in) {
  return in.dtype(kRollout + ".dtype", "bfloat16", DType::bf16);
}

// verl 0.9.1's default is FSDP1; the reference has the actor's unless it states its own.
Fsdp fsdp_of(const VerlImport& in, Role role, const std::string& base) {
  if (in.config.engine != VerlEngine::fsdp) return Fsdp::fsdp2;
  const std::string own = base + ".strategy";
  const bool actors = role == Role::reference && !in.config.has(own);
  const Node* const stated = in.config.find(actors ? kActor + ".strategy" : own);
  return stated == nullptr || stated->text == "fsdp" ? Fsdp::fsdp1 : Fsdp::fsdp2;
}

// What actor, critic and reference have alike.
RolePlan training_role(VerlImport& in, Role role, const std::string& base) {
  RolePlan made;
  const bool trained = role != Role::reference;
  const VerlEngine engine = in.config.engine;
  const bool fsdp = engine == VerlEngine::fsdp, megatron = engine == VerlEngine::megatron;
  made.role = role;
  made.model = role == Role::critic && in.plan().models.contains("critic") ? "critic" : "actor";
  made.ranks = ranks_from(0, in.world);
  const ModelSpec& model = in.plan().models.at(made.model).spec;
  const VerlEngineKeys& keys = keys_of(engine);
  const std::string block =
      base + "." + std::string(role == Role::critic ? keys.critic_block : keys.block);
  made.layout = verl_layout(in, block, base + ".ulysses_sequence_parallel_size", model, role);
  if (made.layout.stages.empty()) made.layout.stages = even_stages(model.layers, 1, 1);
  if (megatron) made.rank_order = RankOrder::megatron;
  if (role == Role::actor) made.mtp = actors_prediction_layers(in);
  made.fused_loss =  // with these layers Megatron's engine takes no fused kernels
      role != Role::critic && made.mtp == MtpUse::left_out &&
      in.flag("actor_rollout_ref.model.use_fused_kernels", false);
  made.fsdp = fsdp_of(in, role, base);
  made.dtypes.param = in.dtype(block + ".dtype", "bfloat16", DType::bf16);
  made.dtypes.kv = made.dtypes.wire = wire_dtype(in);
  if (fsdp && trained) made.dtypes.master = in.dtype(block + ".model_dtype", "fp32", DType::fp32);
  const bool inherits = !trained && (megatron || engine == VerlEngine::veomni);
  const bool inherited =
      inherits && in.flag(kActor + "." + std::string(keys.block) + ".param_offload", false);
  made.offload.parameters = in.flag(block + ".param_offload", inherited);
  if (trained) {
    made.offload.gradients = made.offload.parameters;
    made.offload.optimizer = in.flag(block + ".optimizer_offload", false);
    made.recompute = recompute_of(in, role, model);
    for (const char* const key : {"overlap_grad_reduce", "overlap_param_gather"}) {
      const std::string name = block + ".override_ddp_config." + key;
      if (!megatron || !in.flag(name, false)) continue;
      in.note(name + ": the prediction counts these bytes as exposed, which is verl's default.");
    }
    made.no_sync = fsdp && in.flag(block + ".use_no_sync_for_gradient_accumulation", false);
    made.batching.mini_batch = in.work().sequences() / in.work().mini_batches;
  } else if (fsdp || engine == VerlEngine::torchtitan) {
    made.offload.parameters = true;  // whatever the key says
  }
  if (engine == VerlEngine::veomni) read_veomni_memory(in, block, made);
  return made;
}

// Megatron-Bridge's own targets by the adapters' type (peft/lora.py, peft/canonical_lora.py).
std::vector<std::string> default_targets(VerlImport& in, const std::string& block) {
  const std::string type = in.text(block + ".lora.type", "lora");
  if (type == "canonical_lora") {
    return {"linear_q",      "linear_k",        "linear_v",  "linear_proj",
            "linear_fc1_up", "linear_fc1_gate", "linear_fc2"};
  }
  if (type == "dora") {
    in.note(block + ".lora.type = dora: its vectors of magnitudes are not counted.");
  }
  return {"linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"};
}

// Adapters of `block` (".model"): FSDP's by peft, Megatron's by Megatron-Bridge.
Lora read_lora(VerlImport& in, const std::string& block) {
  constexpr Whole kRank{.least = 0, .most = 1 << 16};
  Lora lora;
  const bool bridge = in.config.engine == VerlEngine::megatron;
  lora.rank = in.integer(block + (bridge ? ".lora.rank" : ".lora_rank"), 0, kRank);
  if (const std::string path = block + ".lora_adapter_path";
      lora.rank == 0 && !bridge && !in.text(path, "").empty()) {
    in.refuse(block + ".lora_rank", "0 with " + path, "the rank of that adapter",
              "the plan counts its elements");
  }
  if (!lora.used()) return lora;
  lora.alpha = static_cast<double>(in.integer(block + (bridge ? ".lora.alpha" : ".lora_alpha"),
                                              bridge ? 32 : 16, {.least = 1, .most = 1 << 20}));
  lora.merged = in.flag(block + ".lora.merge", false);
  const std::string key = block + (bridge ? ".lora.target_modules" : ".target_modules");
  if (const Node* const node = in.config.find(key); node != nullptr) {
    if (node->is(Node::Kind::list)) {
      for (const Node& item : node->items) lora.targets.push_back(item.text);
    } else if (node->text != "all-linear") {
      lora.targets.push_back(node->text);
    }
  } else if (bridge) {
    lora.targets = default_targets(in, block);
  }
  return lora;
}

// The adapters of a role, checked against its model.
Lora lora_of(VerlImport& in, const RolePlan& role, const std::string& block) {
  Lora lora = read_lora(in, block);
  if (!lora.used()) return lora;
  const ModelSpec& model = in.plan().models.at(role.model).spec;
  const ParameterTable table = parameter_table(model);
  const bool bridge = in.config.engine == VerlEngine::megatron;
  for (const std::string& target : unknown_targets(table, lora)) {
    in.refuse(block + (bridge ? ".lora.target_modules" : ".target_modules"), "'" + target + "'",
              "all-linear or last parts of module names, q_proj say");
  }
  const Node* const excluded = in.config.find(block + ".exclude_modules");
  const bool tower = excluded != nullptr && model.vision &&
                     (excluded->text == kTowerModules || excluded->text == ".*visual.*");
  if (excluded != nullptr && !tower) {
    in.note(block + ".exclude_modules is not read: the adapters that it leaves out are counted.");
  }
  if (model.moe) {
    in.note(bridge ? "routed experts: those of a rank share one adapter (Megatron-Bridge's "
                     "share_expert_adapters); expert-tensor parallelism is not counted in it."
                   : "routed experts are counted without adapters: they are no modules of their "
                     "own in transformers 5.");
  }
  char millions[32];
  std::snprintf(millions, sizeof millions, "%.1f",
                static_cast<double>(adapter_count(table, lora)) / 1e6);
  in.note("LoRA of rank " + std::to_string(lora.rank) + ": the " + std::string(name_of(role.role)) +
          " trains " + millions +
          " million parameters; its weights are frozen, without gradients or optimizer states.");
  return lora;
}

// The rollout serves the actor's adapters; the reference is the actor without them.
void share_lora(VerlImport& in) {
  std::vector<RolePlan>& roles = in.plan().roles;
  const RolePlan& actor = roles.front();
  if (!actor.lora.used()) return;
  const auto share = [&](RolePlan& role) {
    if (role.role != Role::rollout && role.role != Role::reference) return;
    role.lora = actor.lora;
    if (role.role == Role::rollout) return;
    role.layout = actor.layout;
    if (role.layout.zero < 3) role.layout.zero = 0;  // of what is not trained
    role.rank_order = actor.rank_order;
    role.dtypes = actor.dtypes;
    role.offload = {.parameters = actor.offload.parameters};
    role.batching.log_prob_tokens = actor.batching.log_prob_tokens;
    role.batching.log_prob_sequences = actor.batching.log_prob_sequences;
    in.note(
        "the reference is the actor without its adapters (verl's ref_in_actor): it has no "
        "weights of its own.");
  };
  for (RolePlan& role : roles) share(role);
  in.note(actor.lora.merged
              ? "the rollout receives whole weights with the adapters merged (model.lora.merge)."
              : "the rollout receives the adapters alone; its own weights come from the files "
                "(rollout.load_format=safetensors) and wait in host memory while training.");
}

struct ActorLimits {
  bool dynamic = false;
  std::int64_t tokens = 16384;  // per GPU
};

// Megatron-LM's hybrid optimizer: a share of the states stays in host memory, where the step is
// computed (core/optimizer/optimizer_config.py; the share is zero unless it is given).
void read_host_optimizer(VerlImport& in, RolePlan& actor) {
  const std::string block = kActor + ".optim.override_optimizer_config.optimizer_";
  if (in.config.engine != VerlEngine::megatron || !in.flag(block + "cpu_offload", false)) return;
  const double share = in.number(block + "offload_fraction", 0);
  if (share < 1) {
    in.note(block + "offload_fraction is below one: all states are counted where " + kActor +
            ".megatron.optimizer_offload puts them.");
    return;
  }
  actor.host_optimizer = actor.offload.optimizer = true;
}

// Of old and reference log-probabilities: what `block` leaves open is the actor's.
void read_log_prob(VerlImport& in, const std::string& block, const ActorLimits& limits,
                   RolePlan& role) {
  const VerlMicroBatch batch =
      micro_batch_of(in,
                     {.dynamic = in.flag(block + ".log_prob_use_dynamic_bsz", limits.dynamic),
                      .limit = block + ".log_prob_max_token_len_per_gpu",
                      .otherwise = limits.tokens,
                      .inherits = true,
                      .sequences = block + ".log_prob_",
                      .present = in.work().sequences()},
                     role.layout);
  role.batching.log_prob_tokens = batch.tokens;
  role.batching.log_prob_sequences = batch.sequences;
}

RolePlan actor_role(VerlImport& in, const ActorLimits& limits) {
  RolePlan actor = training_role(in, Role::actor, kActor);
  read_host_optimizer(in, actor);
  actor.lora = lora_of(in, actor, "actor_rollout_ref.model");
  const VerlMicroBatch batch = micro_batch_of(in,
                                              {.dynamic = limits.dynamic,
                                               .limit = kActor + ".ppo_max_token_len_per_gpu",
                                               .otherwise = 16384,
                                               .sequences = kActor + ".ppo_",
                                               .present = actor.batching.mini_batch},
                                              actor.layout);
  actor.batching.update_tokens = batch.tokens;
  actor.batching.update_sequences = batch.sequences;
  read_log_prob(in, kRollout, limits, actor);
  return actor;
}

// Servers cut every expert over all their GPUs, or spread whole experts over them
// (RolloutConfig.__post_init__); TensorRT-LLM does both at once.
void read_rollout_experts(VerlImport& in, ParallelLayout& layout, std::int64_t inner) {
  layout.ep = in.degree(kRollout + ".expert_parallel_size", 1);
  const std::int64_t gpus = layout.tp * inner;
  const bool experts = in.plan().models.at("actor").spec.moe.has_value();
  if (layout.ep == 1) {
    if (experts) layout.etp = static_cast<int>(gpus);
    return;
  }
  if (!experts) {
    return in.refuse(kRollout + ".expert_parallel_size", std::to_string(layout.ep),
                     "1, for the model has no experts", "inference engines refuse it");
  }
  if (in.text(kRollout + ".name", "vllm") == "trtllm" && gpus % layout.ep == 0) {
    layout.etp = static_cast<int>(gpus / layout.ep);
    return;
  }
  if (layout.ep == gpus) return;
  in.refuse(kRollout + ".expert_parallel_size", std::to_string(layout.ep),
            "tensor x data parallel = " + std::to_string(gpus), "verl 0.9.1 asserts it");
}

RolePlan rollout_role(VerlImport& in) {
  RolePlan rollout;
  rollout.role = Role::rollout;
  rollout.model = "actor";
  rollout.mtp = rollouts_prediction_layers(in);
  rollout.log_probs = told_log_probs(in);
  const bool apart = in.rollout_gpus > 0;
  const std::int64_t pool = apart ? in.rollout_gpus : in.world;
  rollout.ranks = ranks_from(apart ? in.world : 0, pool);
  ParallelLayout& layout = rollout.layout;
  layout.tp = in.degree(kRollout + ".tensor_model_parallel_size", 2);
  layout.pp = in.degree(kRollout + ".pipeline_model_parallel_size", 1);
  const std::int64_t inner = in.degree(kRollout + ".data_parallel_size", 1);
  read_rollout_experts(in, layout, inner);
  const std::int64_t replica = std::int64_t{layout.tp} * layout.pp * inner;
  if (replica > pool || pool % replica != 0) {
    in.refuse(
        kRollout + ".tensor_model_parallel_size", std::to_string(layout.tp),
        "replicas of " + std::to_string(replica) + " GPUs to divide the " + std::to_string(pool));
  } else {
    layout.dp = static_cast<int>(pool / layout.tp / layout.pp);
  }
  const auto layers = static_cast<int>(in.plan().models.at("actor").spec.layers);
  layout.stages = even_stages(layers, std::min(layout.pp, layers), 1);
  rollout.dtypes.param = rollout.dtypes.kv = rollout.dtypes.wire = wire_dtype(in);
  rollout.batching.max_sequences = in.integer(kRollout + ".max_num_seqs", 256, kVerlTokens);
  rollout.batching.prefill_tokens =
      in.integer(kRollout + ".max_num_batched_tokens", 8192, kVerlTokens);
  return rollout;
}

RolePlan critic_role(VerlImport& in) {
  RolePlan critic = training_role(in, Role::critic, "critic");
  critic.lora = lora_of(in, critic, "critic.model");
  const bool v1 = in.flag("trainer.use_v1", true);
  VerlCall call{.dynamic = true,
                .limit = "critic.ppo_infer_max_token_len_per_gpu",
                .otherwise = 32768,
                .present = in.work().sequences()};
  critic.batching.values_tokens = micro_batch_of(in, call, critic.layout).tokens;
  if (!v1) call.limit = "critic.ppo_max_token_len_per_gpu";
  call.present = critic.batching.mini_batch;
  critic.batching.update_tokens = micro_batch_of(in, call, critic.layout).tokens;
  return critic;
}

RolePlan reference_role(VerlImport& in, const ActorLimits& limits) {
  RolePlan reference = training_role(in, Role::reference, kReference);
  read_log_prob(in, kReference, limits, reference);
  return reference;
}

RolePlan reward_role(VerlImport& in) {
  RolePlan reward;
  reward.role = Role::reward;
  reward.model = "reward";
  const std::string tp_key = kReward + ".rollout.tensor_model_parallel_size";
  reward.layout.tp = in.degree(tp_key, 2);
  std::int64_t gpus = in.world, first = 0;
  if (in.flag(kReward + ".enable_resource_pool", false)) {
    gpus = std::int64_t{in.degree(kReward + ".nnodes", 1)} *
           std::int64_t{in.degree(kReward + ".n_gpus_per_node", 8)};
    first = in.world + in.rollout_gpus;
    ClusterSpec& cluster = in.plan().cluster;
    cluster.nodes =
        std::max(cluster.nodes, (first + gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node);
  }
  if (gpus > 1 << 20 || gpus % reward.layout.tp != 0) {
    in.refuse(tp_key, std::to_string(reward.layout.tp),
              "a divisor of the reward model's " + std::to_string(gpus) + " GPUs");
    return reward;
  }
  reward.layout.dp = static_cast<int>(gpus / reward.layout.tp);
  if (in.plan().models.at("reward").spec.moe) reward.layout.etp = reward.layout.tp;
  reward.layout.stages = even_stages(in.plan().models.at("reward").spec.layers, 1, 1);
  reward.ranks = ranks_from(first, gpus);
  // Beside the actor it sleeps between its calls, its weights in host memory (reward_loop's
  // RewardModelManager; vllm_async_server.py: level 1 where it is colocated).
  reward.offload.parameters = first == 0 && in.flag(kReward + ".rollout.free_cache_engine", true);
  reward.dtypes.param = in.dtype(kReward + ".rollout.dtype", "bfloat16", DType::bf16);
  reward.batching.reward_tokens =
      in.integer(kReward + ".rollout.max_num_batched_tokens", 8192, kVerlTokens);
  return reward;
}

// engine_workers.py asserts it.
void check_mini_batch(const VerlImport& in, const RolePlan& role) {
  const std::int64_t sequences = role.batching.mini_batch;
  if (sequences == 0 || sequences % role.layout.dp == 0) return;
  const bool critic = role.role == Role::critic && in.config.has("critic.ppo_mini_batch_size");
  in.refuse(critic ? "critic.ppo_mini_batch_size" : kActor + ".ppo_mini_batch_size",
            std::to_string(sequences) + " sequences with rollout.n",
            "a multiple of the " + std::string(name_of(role.role)) + "'s " +
                std::to_string(role.layout.dp) + " data-parallel ranks",
            "verl asserts it");
}

}  // namespace

void read_verl_roles(VerlImport& in) {
  Workload& work = in.work();
  std::vector<RolePlan>& roles = in.plan().roles;
  const bool reward_model = in.plan().models.contains("reward");
  work.dataflow = preset_dataflow(work.algorithm, work.kl, reward_model);
  const ActorLimits limits{
      .dynamic = in.flag(kActor + ".use_dynamic_bsz", false),
      .tokens = in.integer(kActor + ".ppo_max_token_len_per_gpu", 16384, kVerlTokens)};
  roles.push_back(actor_role(in, limits));
  roles.push_back(rollout_role(in));
  if (work.algorithm == "ppo") roles.push_back(critic_role(in));
  if (work.kl != KlPlace::none) roles.push_back(reference_role(in, limits));
  if (reward_model) roles.push_back(reward_role(in));
  share_lora(in);
  for (const RolePlan& role : roles) check_mini_batch(in, role);
  if (in.flag("algorithm.rollout_correction.bypass_mode", false)) {
    work.dataflow = bypassing(std::move(work.dataflow));
    work.algorithm = "custom";
  }
}

}  // namespace tessera
