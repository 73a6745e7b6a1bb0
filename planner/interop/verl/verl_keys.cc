#include "planner/interop/verl/verl_keys.h"

#include <algorithm>
#include <array>

#include "cost_models/documents/problem.h"
#include "planner/interop/verl/verl_engines.h"

namespace tessera {
namespace {

struct Key {
  std::string_view name;
  int engines;  // sum of VerlEngineKeys::bit
  bool free;    // a map of any keys
};

// From verl/trainer/config/_generated_*.yaml of the 0.9.1 wheel by scripts/make_verl_keys.py.
constexpr Key kKeys[] = {
#include "planner/interop/verl/verl_keys.inc"
};

struct Renamed {
  std::string_view before, now;
};

// Names of other versions and of articles in circulation.
constexpr std::array<Renamed, 7> kRenamed{{
    {"actor_rollout_ref.rollout.engine", "actor_rollout_ref.rollout.name"},
    {"actor_rollout_ref.actor.fsdp_config.sharding_strategy",
     "fsdp_config.reshard_after_forward and fsdp_config.fsdp_size"},
    {"actor_rollout_ref.actor.fsdp_config.grad_offload",
     "fsdp_config.param_offload, which takes gradients along"},
    {"actor_rollout_ref.rollout.max_turns",
     "actor_rollout_ref.rollout.multi_turn.max_assistant_turns"},
    {"actor_rollout_ref.rollout.micro_batch_size", "actor_rollout_ref.rollout.max_num_seqs"},
    {"ppo_trainer", "trainer"},
    {"rollout_worker", "actor_rollout_ref.rollout"},
}};

bool is_below(std::string_view key, std::string_view map) {
  return key.size() > map.size() && key.substr(0, map.size()) == map && key[map.size()] == '.';
}

// Fields of verl's dataclasses and maps that its YAML files do not list.
constexpr std::array<std::string_view, 6> kUnlisted{
    "ray_kwargs.ray_init.runtime_env.env_vars",
    "critic.ppo_infer_max_token_len_per_gpu",
    "critic.ppo_infer_micro_batch_size_per_gpu",
    "actor_rollout_ref.actor.megatron.override_transformer_config",
    "actor_rollout_ref.ref.megatron.override_transformer_config",
    "critic.megatron.override_transformer_config"};

// Of experimental/one_step_off_policy/config and experimental/fully_async_policy/config.
constexpr std::array<std::string_view, 6> kRecipeKeys{
    "rollout.nnodes", "rollout.n_gpus_per_node",
    "rollout.n",      "rollout.total_rollout_steps",
    "async_training", "actor_rollout_ref.rollout.standalone_gpu_memory_utilization"};

template <std::size_t n>
bool is_one_of(std::string_view key, const std::array<std::string_view, n>& names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return name == key || is_below(key, name); });
}

// A key itself, a group that holds known keys, or something inside a free map.
bool is_known(std::string_view key, int engine, const ConfigValues& config) {
  for (const Key& known : kKeys) {
    if ((known.engines & engine) == 0) continue;
    if (known.name == key || is_below(known.name, key)) return true;
    if (known.free && is_below(key, known.name)) return true;
    // A value that was a scalar in the defaults (null, say) may be a map in a file.
    if (config.complete && is_below(key, known.name)) return true;
  }
  if (config.trainer != VerlTrainer::main_ppo && is_one_of(key, kRecipeKeys)) return true;
  return config.from_yaml && is_one_of(key, kUnlisted);
}

// "a key of model_engine=megatron", where another engine has the key.
std::string of_another_engine(std::string_view key, const ConfigValues& config) {
  for (const auto& [engine, name] : kVerlEngines.pairs) {
    if (engine == config.engine || !is_known(key, keys_of(engine).bit, config)) continue;
    if (engine == VerlEngine::fsdp) {
      return "a key of FSDP, not of " + std::string(kVerlEngines[config.engine]);
    }
    return "a key of model_engine=" + std::string(name);
  }
  return {};
}

class Rules {
 public:
  explicit Rules(const ConfigValues& config) : config_(config) {}

  std::vector<IgnoredKey> run() {
    const bool dynamic = flag("actor_rollout_ref.actor.use_dynamic_bsz", false);
    batch("actor_rollout_ref.actor.ppo_", dynamic);
    batch("actor_rollout_ref.rollout.log_prob_",
          flag("actor_rollout_ref.rollout.log_prob_use_dynamic_bsz", dynamic));
    batch("actor_rollout_ref.ref.log_prob_",
          flag("actor_rollout_ref.ref.log_prob_use_dynamic_bsz", dynamic));
    critic();
    if (config_.engine == VerlEngine::megatron) megatron();
    if (config_.engine == VerlEngine::fsdp) fsdp();
    ignore("algorithm.filter_groups.max_num_gen_batches",
           "the V1 replay buffer bounds generation by max_inflight_gen_batches");
    ignore("data.val_batch_size", "validation goes to the inference engine as one batch");
    return std::move(found_);
  }

 private:
  bool flag(const std::string& key, bool otherwise) const {
    const Node* const node = config_.find(key);
    return node != nullptr && node->is(Node::Kind::boolean) ? node->boolean : otherwise;
  }
  std::string word(const std::string& key) const {
    const Node* const node = config_.find(key);
    return node != nullptr ? node->text : std::string{};
  }
  // Only what somebody set: a flattened file states every default.
  void ignore(const std::string& key, std::string why) {
    if (config_.complete) return;
    const auto value = config_.values.find(key);
    if (value == config_.values.end() || value->second.value.is(Node::Kind::null)) return;
    found_.push_back({key, value->second.place, std::move(why)});
  }

  void batch(const std::string& prefix, bool dynamic) {
    if (dynamic) {
      ignore(prefix + "micro_batch_size", "micro-batches are cut by tokens (use_dynamic_bsz)");
      ignore(prefix + "micro_batch_size_per_gpu",
             "micro-batches are cut by tokens (use_dynamic_bsz)");
    } else {
      ignore(prefix + "max_token_len_per_gpu",
             "micro-batches are cut by sequences: use_dynamic_bsz is false");
    }
  }

  void critic() {
    const std::string why =
        "the V1 trainer reads critic.ppo_infer_max_token_len_per_gpu, for values and update alike "
        "(trainer/ppo/v1/trainer_base.py)";
    if (flag("trainer.use_v1", true)) {
      const bool given = config_.has("critic.ppo_infer_max_token_len_per_gpu");
      for (const char* key :
           {"critic.use_dynamic_bsz", "critic.ppo_micro_batch_size",
            "critic.ppo_micro_batch_size_per_gpu", "critic.forward_micro_batch_size",
            "critic.forward_micro_batch_size_per_gpu", "critic.forward_max_token_len_per_gpu",
            "critic.ppo_max_token_len_per_gpu"}) {
        const bool beside = given && (std::string_view(key) == "critic.use_dynamic_bsz" ||
                                      std::string_view(key) == "critic.ppo_max_token_len_per_gpu");
        if (!beside) ignore(key, why);
      }
    }
  }

  void megatron() {
    ignore("actor_rollout_ref.model.enable_gradient_checkpointing",
           "Megatron recomputes by megatron.override_transformer_config.recompute_*");
    for (const std::string prefix : {"actor_rollout_ref.actor.megatron",
                                     "actor_rollout_ref.ref.megatron", "critic.megatron"}) {
      const Node* const tp = config_.find(prefix + ".tensor_model_parallel_size");
      const bool alone = tp == nullptr || (tp->is(Node::Kind::integer) && tp->integer == 1);
      if (alone && flag(prefix + ".sequence_parallel", false)) {
        ignore(prefix + ".sequence_parallel", "off without tensor parallelism");
      }
    }
  }

  void fsdp() {
    const bool two = word("actor_rollout_ref.actor.strategy") == "fsdp2";
    const std::string ref = "actor_rollout_ref.ref.fsdp_config";
    const char* const always = "the reference's parameters always wait in host memory";
    ignore(ref + ".param_offload", always);
    ignore(ref + ".optimizer_offload", always);
    ignore(ref + ".offload_policy", always);
    if (two) {
      ignore("actor_rollout_ref.actor.fsdp_config.use_orig_params", "only FSDP1 reads it");
    } else {
      ignore("actor_rollout_ref.actor.fsdp_config.offload_policy", "only FSDP2 reads it");
    }
    // The outer key is copied into the actor's engine, not into the critic's.
    if (!config_.has("critic.fsdp.ulysses_sequence_parallel_size")) {
      ignore("critic.ulysses_sequence_parallel_size",
             "the critic's engine reads critic.fsdp.ulysses_sequence_parallel_size");
    }
  }

  const ConfigValues& config_;
  std::vector<IgnoredKey> found_;
};

}  // namespace

std::vector<IgnoredKey> ignored_keys(const ConfigValues& config) { return Rules(config).run(); }

Problems unknown_keys(const ConfigValues& config) {
  Problems problems;
  const int engine = keys_of(config.engine).bit;
  std::vector<std::string> names;
  for (const auto& [key, value] : config.values) {
    if (value.added || is_known(key, engine, config)) continue;
    std::string hint;
    for (const Renamed& renamed : kRenamed) {
      if (key == renamed.before || is_below(key, renamed.before)) {
        hint = "in verl 0.9.1: " + std::string(renamed.now);
      }
    }
    if (hint.empty()) hint = of_another_engine(key, config);
    if (hint.empty() && problems.size() < 20) {
      if (names.empty()) {
        for (const Key& known : kKeys) {
          if ((known.engines & engine) != 0) names.emplace_back(known.name);
        }
      }
      hint = did_you_mean(key, names);
    }
    problems.push_back({config.file, value.place, "'" + key.substr(0, 120) + "'",
                        "a key of verl 0.9.1", std::move(hint)});
  }
  return problems;
}

}  // namespace tessera
