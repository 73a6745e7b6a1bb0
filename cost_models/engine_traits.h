// What an engine's kernels keep in memory and what it overlaps: switches of the formulas that are
// no choice of a plan.
//
// A plain value. The defaults are Tessera's own executor: flash attention, no dropout, logits a
// slice at a time, every collective exposed.
#pragma once

#include <cstdint>

namespace tessera {

/// Rows of logits that exist at a time (executor/model/scores.h).
inline constexpr std::int64_t kLogitRows = 4096;

/// How all rows of logits become a loss and its gradient where they are not sliced; what each holds
/// of one logit is bytes_per_logit (memory.h).
enum class LossKernel {
  /// torch's cross_entropy on logits.float(): the copy, its log-probabilities, their gradient.
  eager,
  /// An fp32 copy that becomes softmax and gradient in place, and the logits or that gradient in
  /// the model's type (Megatron-LM core/tensor_parallel/cross_entropy.py, fused or not).
  vocab_parallel,
  /// One kernel over logits in the model's type, their gradient beside them (flash-attn's
  /// CrossEntropyLoss, which llm-foundry's models default to; torch.compile).
  fused,
  /// The gradient overwrites the logits (Transformer Engine's cross entropy, set by all of
  /// Megatron-Bridge's performance recipes; verl's logprobs_from_logits, inplace_backward).
  in_place,
  /// The same with an entropy term: the logits, their gradient by the loss and that by the entropy
  /// (verl 0.9.1's workers/engine/fsdp/transformer_impl.py, prepare_model_outputs).
  with_entropy,
};

/// How tokens reach their experts. `direct`: one copy per expert, by NCCL's all-to-all.
/// `hierarchical`: across nodes one copy per node that holds a chosen expert, passed on inside it
/// once per rank (DeepEP, HybridEP; DeepSeek-AI 2024, arXiv:2412.19437, sec. 3.2.2).
enum class ExpertDispatch { direct, hierarchical };

/// Where tokens travel to and from experts beside the layers of another micro-batch: nowhere; only
/// across nodes and under a pipeline; always. DeepSeek-V3's DualPipe, Megatron-LM's
/// --overlap-moe-expert-parallel-comm; neither together with full recomputation.
enum class ExpertOverlap { none, across_nodes, always };

/// Multiprocessors that all-to-all kernels occupy, as time of what runs beside them: 20 of 132
/// (arXiv:2412.19437, sec. 3.2.2).
inline constexpr double kDispatchSlowdown = 132.0 / (132 - 20);

/// Where `overlapped_shards`, FSDP gathers a layer beside the one before it, and ZeRO-2 and FSDP
/// reduce a layer's gradients beside the next layer's backward pass; what stands before the first
/// layer and after the last backward is exposed. Kernels of collectives slow what they run beside
/// (Calibration::overlap_slowdown), copy engines do not.
struct EngineTraits {
  bool flash_attention = true;           // false: scores of s x s elements are written and kept
  bool dropout = false;                  // masks of one byte per element
  std::int64_t logit_rows = kLogitRows;  // 0 = all rows of a micro-batch at once
  bool overlapped_gradients = false;     // with ZeRO reduced during the last backward
  bool overlapped_replicas = false;      // the same without ZeRO
  bool overlapped_parameters = false;    // ZeRO-1's and -2's new ones are gathered beside a pass
  bool overlapped_shards = false;        // see above
  bool streamed_optimizer = false;       // offloaded states pass through a bucket, else as a whole
  bool host_optimizer = false;           // offloaded states stay there, and the host computes
  bool keeps_gathered = false;           // FSDP's layers stay whole from forward to backward
  bool scattered_hops = false;           // pipeline messages are cut by tp (Megatron-LM)
  bool context_shards = false;           // FSDP's shards lie over context parallel ranks too
  bool master_parameters = false;        // FSDP shards fp32 parameters, with no 16-bit copy beside
  /// FSDP's layers move tensor by tensor, through lists of one tensor per rank that are copied one
  /// by one (DeepSpeed's partition_parameters over torch's ProcessGroupNCCL, both of 2021).
  bool listed_shards = false;
  bool reduces_every_batch = false;  // ZeRO-2 under a pipeline; else it sums micro-batches first
  bool copied_shards = false;        // within a host copy engines gather and fetch what is reduced
  double expert_imbalance = 1.0;     // tokens of the busiest expert rank / mean
  ExpertDispatch expert_dispatch = ExpertDispatch::direct;  // across nodes; inside always direct
  ExpertOverlap expert_overlap = ExpertOverlap::none;
  bool synchronized_routing = false;  // the host reads the counts of routed tokens in every layer
  bool overlapped_hops = false;       // interleaved stages send while they compute
  bool narrow_gradients = false;      // summed and reduced in the parameters' type, else in fp32
  bool overlapped_tensor = false;     // collectives of tp in pieces beside their GEMMs
  LossKernel loss = LossKernel::vocab_parallel;  // where logit_rows = 0
  bool eager_elementwise = false;  // one kernel per operator, as torch runs them; norms in fp32
  /// Outputs of norms and the gated product are not kept but made again for the backward pass (what
  /// torch.compile's min-cut partitioner does; Horace He, "Min-cut optimal(*) recomputation").
  bool remade_elementwise = false;
  /// Tokens go to a rank once, whatever number of its experts they have chosen, inside a node too,
  /// and lie by expert when they arrive (DeepEP's and HybridEP's kernels, with fused permutation).
  bool merged_dispatch = false;
  /// Biases of experts' outputs are added expert by expert in fp32, weighted by the router's
  /// probabilities (Megatron-LM core/transformer/moe/experts.py, TEGroupedMLP._apply_bias).
  bool eager_expert_bias = false;
  bool refills_alone =
      false;  // a freed slot's prompt has a pass of its own, no part of a decode step
  /// Rate of the layers' products over that in 16 bit; above 1 their operands are cast to 8 bit
  /// before (the head's and attention's stay in 16).
  double product_speed = 1;
  /// Decode steps are replayed CUDA graphs of fused kernels: no launch waits for the host (vLLM's
  /// and SGLang's default).
  bool graphed_decode = false;
  /// A rollout whose weights stay mapped keeps its cache and workspace, too: an inference server
  /// that never sleeps (verl's rollout.free_cache_engine=false).
  bool keeps_cache = false;
  /// logit_rows rows of logits exist inside one kernel with the head (verl's use_fused_kernels),
  /// whose weight stays gathered as it does where all rows exist at once.
  bool fused_loss = false;
  /// ZeRO-1's reduced part of the gradients lies in the buffer that was reduced, in fp32 as the
  /// optimizer reads it (Megatron-LM core/distributed/param_and_grad_buffer.py, local_data_view;
  /// core/optimizer/distrib_optimizer.py, _copy_model_grads_to_main_grads); else it is a copy.
  bool reduces_in_place = false;
  /// Shards of gradients appear with each backward pass of FSDP and are gone after the step
  /// (torch.optim's zero_grad sets them to None), so none exist in the forward pass of a first
  /// micro-batch; else they lie in a buffer of their own.
  bool fresh_gradients = false;
  bool fused_optimizer = false;  // of those: no copies of states while they step

  bool operator==(const EngineTraits&) const = default;
};

}  // namespace tessera
