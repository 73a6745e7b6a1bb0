// verl's keys of low-rank adapters: FSDP's are peft's, Megatron's Megatron-Bridge's; both have
// lora.merge.
#include <cmath>

#include "planner/interop/verl/verl_writer.h"

namespace tessera {

void write_verl_lora(VerlWriter& w, const std::string& prefix, const Lora& lora) {
  if (!lora.used()) return;
  const std::string block = w.megatron ? prefix + ".lora." : prefix + ".";
  w.set(block + (w.megatron ? "rank" : "lora_rank"), lora.rank, "adapters beside frozen weights");
  w.set(block + (w.megatron ? "alpha" : "lora_alpha"),
        static_cast<std::int64_t>(std::llround(lora.alpha)));
  const std::string targets = block + "target_modules";
  if (!lora.targets.empty()) {
    Node names = list_node();
    for (const std::string& name : lora.targets) {
      w.check_name(targets, name);
      names.items.push_back(node_of(std::string_view(name)));
    }
    w.out.settings.push_back({targets, std::move(names), "", false});
  } else if (!w.megatron) {
    w.text(targets, "all-linear");
  }
  const RolePlan& role = prefix.starts_with("critic") ? *w.critic : w.actor;
  if (!w.megatron && w.plan.models.at(role.model).spec.vision) {
    w.text(block + "exclude_modules", kTowerModules,
           "the vision tower is frozen, as the plan has it");
  }
  w.set(prefix + ".lora.merge", lora.merged,
        lora.merged ? "whole weights move to the rollout" : "the adapters alone move");
  if (w.megatron || prefix.starts_with("critic")) return;
  // Base weights come from the files; dummy ones would have to be sent once.
  w.text("actor_rollout_ref.rollout.load_format", "safetensors");
  w.set("actor_rollout_ref.rollout.layered_summon", true, "adapters are gathered layer by layer");
}

}  // namespace tessera
