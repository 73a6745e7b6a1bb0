// The tables of all engines. Sources: executor/ for tessera; verl 0.9.1's workers/config,
// workers/engine and trainer/ppo/v1; Megatron-LM core's TransformerConfig; vLLM 0.24's and SGLang
// 0.5.12's model loaders, which divide heads and columns and replicate key-value heads.
#include "planner/engines/capabilities.h"

#include <algorithm>

namespace tessera {
namespace {

const std::vector<DType> kTrainable{DType::fp32, DType::bf16, DType::fp16};
const std::vector<DType> kHalf{DType::bf16, DType::fp16};

Capabilities tessera_table() {
  Capabilities table;
  table.engine = "tessera";
  table.roles = {kEveryRole.begin(), kEveryRole.end()};
  table.zero = {0, 1, 2, 3};
  table.recompute = {Recompute::none, Recompute::selective, Recompute::full};
  table.virtual_stages = table.fully_sharded = table.sequence_parallel = true;
  table.context_parallel = true;  // as a ring and as Ulysses
  table.offload = table.unmap = true;
  table.own_pool_lags = {0};
  table.params = kTrainable;
  table.families = {ModelFamily::llama, ModelFamily::mistral, ModelFamily::qwen2,
                    ModelFamily::qwen3};
  return table;
}

// FSDP has no tensor or pipeline parallelism; `context` is Ulysses. Stage 2 is
// reshard_after_forward = false, stage 0 is fsdp_size = 1.
Capabilities verl_table() {
  Capabilities table;
  table.engine = "verl";
  table.version = "0.9.1";
  table.roles = {kEveryRole.begin(), kEveryRole.end()};
  table.zero = {0, 2, 3};
  table.recompute = {Recompute::none, Recompute::full};
  table.most_tp = table.most_pp = 1;
  table.context_parallel = table.fully_sharded = table.offload = table.unmap = true;
  table.ulysses = true;
  table.rollout_expert_parallel = true;
  table.rollout_heads = HeadRule::query_heads;
  table.tp_must_divide_heads = true;
  table.colocated = table.full_gather = table.serves_reward = table.one_critic_limit = true;
  table.own_pool_lags = {1};  // trainer/ppo/v1/trainer_separate_async.py
  table.lora = true;          // model.lora_rank, by peft
  table.params = kTrainable;
  return table;
}

Capabilities megatron_table() {
  Capabilities table;
  table.engine = "megatron";
  table.version = "core 0.18";
  table.roles = {Role::actor, Role::critic};
  table.zero = {0, 1};
  table.recompute = {Recompute::none, Recompute::selective, Recompute::full};
  table.context_parallel = table.expert_parallel = table.virtual_stages = true;
  table.sequence_parallel = table.equal_middle_stages = true;
  table.ulysses = false;  // cp_comm_type p2p
  table.unmap = true;     // the rollout is not Megatron's
  table.training_heads = HeadRule::all_heads;
  table.tp_must_divide_heads = true;
  table.params = kTrainable;
  return table;
}

Capabilities verl_megatron_table() {
  Capabilities table = megatron_table();
  table.engine = "verl-megatron";
  table.version = "0.9.1";
  table.roles = {kEveryRole.begin(), kEveryRole.end()};
  table.offload = table.rollout_expert_parallel = true;
  table.rollout_heads = HeadRule::query_heads;
  table.colocated = table.full_gather = table.serves_reward = table.one_critic_limit = true;
  table.own_pool_lags = {1};  // trainer/ppo/v1/trainer_separate_async.py
  table.lora = true;          // model.lora.rank, by Megatron-Bridge
  table.params = kHalf;
  return table;
}

Capabilities server_table(std::string engine, std::string version) {
  Capabilities table;
  table.engine = std::move(engine);
  table.version = std::move(version);
  table.roles = {Role::rollout};
  table.zero = {0};
  table.recompute = {Recompute::none};
  table.most_rollout_pp = std::numeric_limits<int>::max();
  table.rollout_expert_parallel = table.unmap = true;
  table.lora = true;  // --enable-lora
  table.rollout_heads = HeadRule::query_heads;
  table.tp_must_divide_heads = true;
  table.params = kTrainable;
  return table;
}

}  // namespace

std::vector<std::string> engine_names() {
  return {"megatron", "sglang", "tessera", "verl", "verl-megatron", "vllm"};
}

std::optional<Capabilities> capabilities_of(std::string_view engine, Problems& problems) {
  if (engine == "tessera") return tessera_table();
  if (engine == "verl") return verl_table();
  if (engine == "verl-megatron") return verl_megatron_table();
  if (engine == "megatron") return megatron_table();
  if (engine == "vllm") return server_table("vllm", "0.24");
  if (engine == "sglang") return server_table("sglang", "0.5.12");
  const auto known = engine_names();
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
  problems.push_back(
      {"", "engine", "'" + std::string(engine) + "'", all, did_you_mean(engine, known)});
  return std::nullopt;
}

void refuse_model(const Capabilities& table, const ModelSpec& model, const std::string& file,
                  const std::string& place, Problems& problems) {
  const auto& known = table.families;
  if (known.empty() || std::find(known.begin(), known.end(), model.family) != known.end()) return;
  std::string names;
  for (const ModelFamily family : known) {
    if (!names.empty()) names += family == known.back() ? " or " : ", ";
    names += name_of(family);
  }
  problems.push_back({file, place, "'" + std::string(name_of(model.family)) + "'", names,
                      "engine '" + table.engine + "' cannot run this architecture"});
}

}  // namespace tessera
