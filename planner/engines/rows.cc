// What several engines have in common.
#include "planner/engines/rows.h"

#include <initializer_list>
#include <limits>
#include <utility>

namespace tessera {

Engine library_engine(std::string name, std::string version) {
  Engine engine;
  engine.name = std::move(name);
  engine.version = std::move(version);
  engine.has_choices = true;
  engine.traits.loss.rows = 0;
  engine.traits.shards.overlapped = true;
  engine.traits.gradients.overlapped = true;
  engine.traits.gradients.overlapped_replicas = true;
  engine.traits.optimizer.overlapped_parameters = true;
  engine.traits.optimizer.offloaded =
      OffloadedStates::streamed;  // Megatron-LM's optimizer_cpu_offload
  engine.traits.pipeline.cut_by_tp = true;
  engine.traits.decode.graphed = true;
  engine.traits.decode.block_tokens = 16;  // vLLM's default
  return engine;
}

Engine inference_server(std::string name, std::string version) {
  Engine engine = library_engine(std::move(name), std::move(version));
  Capabilities& can = engine.capabilities;
  can.roles = {Role::rollout};
  can.training.zero = {0};
  can.training.recompute = {Recompute::none};
  can.serving.most_pp = std::numeric_limits<int>::max();
  can.serving.experts = ServedExperts::whole_replica;
  can.offload.rollout = true;
  can.lora = true;  // --enable-lora
  can.serving.heads = HeadRule::query_heads;
  can.params = kTrainableTypes;
  engine.traits.kernels.fused_activation = true;  // SiluAndMul of both
  return engine;
}

Engine megatron_core(std::string name, std::string version) {
  Engine engine = library_engine(std::move(name), std::move(version));
  Capabilities& can = engine.capabilities;
  can.training.zero = {0, 1};
  can.training.recompute = {Recompute::none, Recompute::selective, Recompute::full};
  can.training.context_parallel = can.training.expert_parallel = can.training.virtual_stages = true;
  can.training.sequence_parallel = can.training.equal_middle_stages = true;
  can.prediction_layers = true;  // --mtp-num-layers
  can.training.ulysses = false;  // cp_comm_type p2p
  can.offload.rollout = true;    // the rollout is not Megatron's
  can.training.heads = HeadRule::all_heads;
  engine.traits.gradients.reduced_in_place = true;
  engine.traits.kernels.selective = SelectiveRecompute::modules;
  engine.traits.ranks = TrainedRanks::megatron;
  engine.traits.pipeline.interleaved = InterleavedCount::equal;
  return engine;
}

namespace {

// Families that both drive.
std::vector<ModelFamily> of_megatron(std::initializer_list<ModelFamily> besides) {
  using enum ModelFamily;
  std::vector<ModelFamily> families{llama,     mistral,   qwen2,       qwen3,       mixtral,
                                    qwen2_moe, qwen3_moe, deepseek_v2, deepseek_v3, gpt2,
                                    gpt_oss,   nemotron,  glm4_moe};
  families.insert(families.end(), besides);
  return families;
}

}  // namespace

std::vector<ModelFamily> megatron_families() {
  return of_megatron({ModelFamily::phi3, ModelFamily::seed_oss});
}

std::vector<ModelFamily> verl_megatron_families() {
  return of_megatron({ModelFamily::mimo, ModelFamily::hy_v3, ModelFamily::qwen3_5,
                      ModelFamily::qwen3_5_moe, ModelFamily::nemotron_h, ModelFamily::qwen3_vl,
                      ModelFamily::qwen3_vl_moe, ModelFamily::qwen2_5_vl,
                      ModelFamily::deepseek_v4});
}

void add_verl_fsdp(Engine& engine) {
  Capabilities& can = engine.capabilities;
  can.training.zero = {0, 2, 3};
  can.training.most_pp = 1;
  can.training.context_parallel = can.training.fully_sharded = true;
  engine.traits.loss.kernel = LossKernel::in_place;
  engine.traits.shards.over_context = true;
  engine.traits.shards.master_parameters = true;  // mixed precision
  engine.traits.gradients.fresh = true;
  engine.weights.gather->master_weights = true;  // the shards are these
  // 71 us to pack and load a tensor of Qwen3-30B-A3B in vLLM 0.24
  // (benchmarks/results/h200-vllm-weights.json), the rest to cut it out of the packed experts that
  // are gathered together (unfuse_moe_params) and to name it.
  engine.traits.handover.tensor = Seconds{0.1e-3};
}

void add_transformers_layers(Engine& engine) {
  engine.traits.kernels.account = ActivationAccount::transformers;
  engine.traits.kernels.elementwise = ElementwiseKernels::transformers;
  engine.traits.kernels.attention = AttentionKernels::flash_2;
}

int sharding_replicas(const ParallelLayout& layout) {
  return layout.zero == 2 ? layout.dp : layout.zero == 3 ? layout.dp_shard : 1;
}

void add_verl_loop(Engine& engine) {
  Capabilities& can = engine.capabilities;
  can.roles = {kEveryRole.begin(), kEveryRole.end()};
  can.offload.trained = true;
  can.offload.rollout = true;
  can.serving.experts = ServedExperts::whole_replica;
  can.serving.heads = HeadRule::query_heads;
  can.pools.colocated = can.serving.reward = can.training.one_critic_limit = true;
  can.training.whole_sequences = true;  // utils/seqlen_balancing.py, rearrange_micro_batches
  can.pools.rollout_lags = {1};         // trainer/ppo/v1/trainer_separate_async.py
  can.lora = true;
  engine.traits.optimizer.offloaded = OffloadedStates::whole;  // offloaded states move as a whole
  engine.traits.decode.keeps_cache = true;
  // verl asks vLLM for every token's log-prob (rollout.calculate_log_probs) and reads each answer
  // as it grows. Thirteen runs on hosts of H200 take 49 to 61 us for each token where a server has
  // 128 requests, 62 to 81 with 256 and 75 to 82 with 512, whether 129 or all of them run at once
  // (benchmarks/results/h200x2-verl-plans.json, -pairs.json, h200-verl-host.json). vLLM's own
  // output processor takes 39, 46 and 59 us of that, 10 without log-probs
  // (peers/vllm_front_end.py). Untold (calculate_log_probs=false) they leave 23 of 67 us with 512
  // requests on one host, and less than the GPU's 11 us with 256 (h200-verl-log-probs.json).
  engine.traits.decode.token_served = Seconds{56e-6};
  engine.log_prob_served = Seconds{50e-6};
  engine.traits.decode.token_crowded = Seconds{11.5e-6};
  engine.traits.decode.server_kernels = true;
  engine.logs_wait_for_rollout = true;  // experimental/one_step_off_policy/ray_trainer.py
  engine.traits.pipeline.interleaved = InterleavedCount::rounded;
  engine.traits.pipeline.order = BatchOrder::fullest_within;
  // fsdp and megatron workers: full_tensor of each parameter; all-gather over tp and ep, broadcast
  // over pp.
  engine.weights.gather = WholeGather{};
  // update_weights on the actor's GPUs: calls of Ray, messages between processes, buckets opened by
  // CUDA IPC, weights and cache mapped again. The tensors and the wire leave 0.27 to 0.59 s of six
  // runs on one GPU (benchmarks/results/h200-verl-host.json), 0.4 s of a 7B on two and 1.0 s on
  // four (h200-vllm-weights.json).
  engine.traits.handover.call = Seconds{0.4};
  // What calls leave beside the device's passes: 0.3 s with 128 sequences, 0.4 to 0.5 with 256, 0.8
  // to 1.3 with 512 (h200x2-verl-plans.json); and advantages, of the six runs. The trainer looks
  // every two seconds whether a generation has ended (trainer/ppo/v1/replay_buffer.py,
  // poll_interval), so that half of that is waited on average.
  engine.traits.software.call = Seconds{0.1};
  engine.traits.software.dealt = Seconds{1.9e-3};
  engine.traits.software.sequence = Seconds{0.85e-3};
  engine.traits.software.looking = Seconds{1.1};
  // Checkpoint engine nccl: 4.4 s for Qwen3-30B-A3B's 18,867 tensors (docs/advance/fully_async.md).
  engine.traits.handover.broadcast_tensor = Seconds{0.23e-3};
}

}  // namespace tessera
