// The values of the engines, each in a file of its own, and what several of them have in common.
// engines.cc and the files of this folder alone include this.
#pragma once

#include <string>

#include "planner/engines/engine.h"

namespace tessera {

Engine any_engine();
Engine megatron_engine();
Engine sglang_engine();
Engine tessera_engine();
Engine tessera_invariant_engine();
Engine tessera_vllm_engine();
Engine verl_engine();
Engine verl_megatron_engine();
Engine verl_torchtitan_engine();
Engine verl_veomni_engine();
Engine vllm_engine();

/// Parameters in any type that trains.
inline const std::vector<DType> kTrainableTypes{DType::fp32, DType::bf16, DType::fp16};

/// Families that Megatron-LM's arguments describe; those that verl brings to Megatron
/// (SupportedModel and SupportedVLM of verl 0.9.1's models/mcore/registry.py, and by
/// Megatron-Bridge Hy3 and Nemotron-H: examples/grpo_trainer).
std::vector<ModelFamily> megatron_families();
std::vector<ModelFamily> verl_megatron_families();

/// What engines of others share: gradients and gathers of FSDP beside the computation, all rows of
/// logits at once, decoding by replayed CUDA graphs, pipeline messages cut by tp, the choices of a
/// plan. Its rollout is a server, or none.
Engine library_engine(std::string name, std::string version);

/// A server that runs rollouts alone: vLLM 0.24's and SGLang 0.5.12's model loaders, which divide
/// heads and columns and replicate key-value heads.
Engine inference_server(std::string name, std::string version);

/// Megatron-LM core 0.18 (TransformerConfig), whoever drives it.
Engine megatron_core(std::string name, std::string version);

/// What verl 0.9.1 does with whichever trainer: workers/config, workers/engine, workers/rollout and
/// trainer/ppo/v1.
void add_verl_loop(Engine& engine);

/// What verl's trainers over PyTorch's FSDP2 have in common: stages 0, 2 and 3, one mesh of all
/// GPUs whose context-parallel ranks shard, too, fp32 shards, whole tensors for the rollout.
void add_verl_fsdp(Engine& engine);

/// Layers are transformers' own modules, with flash-attn 2: what they keep and what they take.
void add_transformers_layers(Engine& engine);

/// Replicas of a tensor-parallel part over which such a trainer cuts the weights.
int sharding_replicas(const ParallelLayout& layout);

}  // namespace tessera
