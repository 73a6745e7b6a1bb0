// What several engines have in common.
#include "planner/engines/rows.h"

#include <limits>
#include <utility>

namespace tessera {

Engine library_engine(std::string name, std::string version) {
  Engine engine;
  engine.name = std::move(name);
  engine.version = std::move(version);
  engine.has_choices = true;
  engine.traits.logit_rows = 0;
  engine.traits.overlapped_shards = true;
  engine.traits.overlapped_gradients = true;
  engine.traits.overlapped_replicas = true;
  engine.traits.overlapped_parameters = true;
  engine.traits.streamed_optimizer = true;  // Megatron-LM's optimizer_cpu_offload
  engine.traits.scattered_hops = true;
  engine.traits.graphed_decode = true;
  return engine;
}

Engine inference_server(std::string name, std::string version) {
  Engine engine = library_engine(std::move(name), std::move(version));
  Capabilities& can = engine.capabilities;
  can.roles = {Role::rollout};
  can.zero = {0};
  can.recompute = {Recompute::none};
  can.most_rollout_pp = std::numeric_limits<int>::max();
  can.served_experts = ServedExperts::whole_replica;
  can.unmap = true;
  can.lora = true;  // --enable-lora
  can.rollout_heads = HeadRule::query_heads;
  can.params = kTrainableTypes;
  return engine;
}

Engine megatron_core(std::string name, std::string version) {
  Engine engine = library_engine(std::move(name), std::move(version));
  Capabilities& can = engine.capabilities;
  can.zero = {0, 1};
  can.recompute = {Recompute::none, Recompute::selective, Recompute::full};
  can.context_parallel = can.expert_parallel = can.virtual_stages = true;
  can.sequence_parallel = can.equal_middle_stages = true;
  can.ulysses = false;  // cp_comm_type p2p
  can.unmap = true;     // the rollout is not Megatron's
  can.training_heads = HeadRule::all_heads;
  engine.traits.reduces_in_place = true;
  engine.trained_ranks = TrainedRanks::megatron;
  return engine;
}

void add_verl_loop(Engine& engine) {
  Capabilities& can = engine.capabilities;
  can.roles = {kEveryRole.begin(), kEveryRole.end()};
  can.offload = true;
  can.unmap = true;
  can.served_experts = ServedExperts::whole_replica;
  can.rollout_heads = HeadRule::query_heads;
  can.colocated = can.serves_reward = can.one_critic_limit = true;
  can.own_pool_lags = {1};  // trainer/ppo/v1/trainer_separate_async.py
  can.lora = true;
  engine.traits.streamed_optimizer = false;  // offloaded states move as a whole
  engine.traits.keeps_cache = true;
  // fsdp and megatron workers: full_tensor of each parameter; all-gather over tp and ep, broadcast
  // over pp.
  engine.weights.gather = WholeGather{};
}

}  // namespace tessera
