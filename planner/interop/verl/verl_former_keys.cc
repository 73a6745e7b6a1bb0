// Keys of verl before 0.9.1: what became of them.
#include <algorithm>
#include <array>

#include "planner/interop/verl/verl_keys.h"

namespace tessera {
namespace {

struct Former {
  std::string_view name, last;  // the last version that has it
};

// From the _generated_*.yaml of verl 0.6.1 to 0.9.0 by scripts/make_verl_keys.py.
constexpr Former kFormer[] = {
#include "planner/interop/verl/verl_former_keys.inc"
};

struct Moved {
  std::string_view before, now;  // a key, or the beginning of keys
};

// Of the reward model as experimental/reward_loop/reward_loop.py moves them
// (migrate_legacy_reward_impl).
constexpr std::array<Moved, 8> kMoved{{
    {"critic.model.fsdp_config", "critic.fsdp"},
    {"reward_model.enable", "reward.reward_model.enable"},
    {"reward_model.enable_resource_pool", "reward.reward_model.enable_resource_pool"},
    {"reward_model.n_gpus_per_node", "reward.reward_model.n_gpus_per_node"},
    {"reward_model.nnodes", "reward.reward_model.nnodes"},
    {"reward_model.model.path", "reward.reward_model.model_path"},
    {"reward_model.rollout", "reward.reward_model.rollout"},
    {"actor_rollout_ref.rollout.update_weights_bucket_megabytes",
     "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes"},
}};

const Former* former(std::string_view key) {
  const auto found =
      std::lower_bound(std::begin(kFormer), std::end(kFormer), key,
                       [](const Former& one, std::string_view name) { return one.name < name; });
  return found != std::end(kFormer) && found->name == key ? &*found : nullptr;
}

std::string became_of(std::string_view key) {
  if (key.find("megatron.grad_offload") == key.npos) return {};
  return "; megatron.param_offload releases gradient buffers now";
}

}  // namespace

std::string current_name(std::string_view key) {
  for (const Moved& one : kMoved) {
    const bool below = key.size() > one.before.size() && key[one.before.size()] == '.';
    if (key.substr(0, one.before.size()) != one.before) continue;
    if (below || key == one.before) {
      return std::string(one.now) + std::string(key.substr(one.before.size()));
    }
  }
  return {};
}

ConfigValues with_current_names(const ConfigValues& config, std::vector<IgnoredKey>& gone,
                                std::vector<std::string>& notes) {
  ConfigValues current = config;
  for (const auto& [key, value] : config.values) {
    if (value.value.is(Node::Kind::null) && value.unknown.empty()) continue;
    if (const std::string now = current_name(key); !now.empty()) {
      // Of verl's own, fully_async_main.py alone moves them (migrate_legacy_reward_impl).
      const bool unread =
          key.starts_with("reward_model.") && config.trainer != VerlTrainer::fully_async;
      notes.push_back(key + " is read as " + now + ", its name in verl 0.9.1" +
                      (unread ? ", which does not read the former one." : "."));
      current.values.emplace(now, value);
      current.values.erase(key);
    } else if (const Former* const before = former(key)) {
      gone.push_back({key, value.place,
                      "verl " + std::string(before->last) + " had it, 0.9.1 would refuse it" +
                          became_of(key)});
      current.values.erase(key);
    }
  }
  return current;
}

}  // namespace tessera
