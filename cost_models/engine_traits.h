// What an engine's kernels keep in memory and what it overlaps: facts that the formulas depend on
// and that are no choice of a plan.
//
// A plain value, one group of fields for each part of a step. The defaults are the plainest engine:
// flash attention, no dropout, logits a slice at a time, every collective exposed.
#pragma once

#include <cstdint>

#include "cost_models/packing.h"
#include "cost_models/spec/units.h"

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

/// The kernels of what is neither a matrix product nor attention: norms, activations, sums.
enum class ElementwiseKernels {
  fused,  // several operators in a kernel, what they read and write is kept
  eager,  // a kernel per operator, as torch runs them; norms in fp32
  /// Eager ones of transformers' modules, whose RoPE adds operands that lie in different orders (a
  /// view of transposed heads, the concatenation of halves).
  transformers,
  /// Outputs of norms and the gated product are not kept but made again for the backward pass (what
  /// torch.compile's min-cut partitioner does; Horace He, "Min-cut optimal(*) recomputation").
  remade,
};

/// The kernels of flash attention.
enum class AttentionKernels {
  best,     // the device's own (FlashAttention 2 on Ampere, 3 or cuDNN's on Hopper and later)
  flash_2,  // flash-attn 2 and torch's own (scaled_dot_product_attention of torch 2.2 to 2.11)
  flash_1,
};

/// What Recompute::selective makes again where attention is flash attention; else it is the scores.
enum class SelectiveRecompute {
  products,  // norms, every gated product, and latent attention's projections
  modules,   // those of Megatron-Core that recompute_modules (recompute_modules.h) names
};

/// Where the optimizer's states are while it steps, if a plan offloads them between steps.
enum class OffloadedStates {
  whole,     // all of them are fetched
  streamed,  // they pass through a bucket (Megatron-LM's optimizer_cpu_offload)
  on_host,   // they stay, and the host computes the step
};

/// What carries FSDP's shards.
enum class ShardTransport {
  collectives,  // an all-gather and a reduce-scatter of a layer
  /// Lists of one tensor per rank that are copied one by one, tensor by tensor (DeepSpeed's
  /// partition_parameters over torch's ProcessGroupNCCL, both of 2021).
  tensor_lists,
  copy_engines,  // within a host, which gather and fetch what is reduced; else collectives
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

/// Whose modules run a layer, which decides what they keep for the backward pass and what they need
/// meanwhile.
enum class ActivationAccount {
  megatron,      // fused ones (Korthikanti et al. 2022; layer_activation_bytes)
  executor,      // those of Tessera's own executor (cost_models/executor)
  transformers,  // eager ones under FSDP2 (cost_models/transformers)
};

/// In which order the ranks of a trained role form its groups.
enum class TrainedRanks {
  /// Pipeline before data parallelism; the other way round with expert parallelism, so that expert
  /// groups are neighbours (training_order, planner/request/candidate.h).
  by_experts,
  /// Pipeline before data parallelism, always: a replica's ranks are neighbours.
  contiguous,
  /// Data before pipeline parallelism, always (Megatron-LM core/parallel_state.py, RankGenerator).
  megatron,
};

/// A kernel that adds up what tensor parallel ranks of one node have by reading their memory
/// (executor/storage/peer_sums.h), in place of an all-reduce. No start: there is none.
struct PeerSums {
  Seconds start;  // in which the ranks wait for one another
  Traffic most;   // larger sums are all-reduces
  int most_ranks = 0;
  bool operator==(const PeerSums&) const = default;
};

/// Of a layer's forward and backward passes.
struct LayerKernels {
  ActivationAccount account = ActivationAccount::megatron;
  bool flash_attention = true;  // false: scores of s x s elements are written and kept
  AttentionKernels attention = AttentionKernels::best;
  bool dropout = false;  // masks of one byte per element
  ElementwiseKernels elementwise = ElementwiseKernels::fused;
  /// One kernel reads gate and up and writes their product: 3 passes over the FFN's width. Else
  /// SiLU's outcome lies between two kernels: 5. Backward is taken as twice either (5 and 10).
  bool fused_activation = false;
  SelectiveRecompute selective = SelectiveRecompute::products;
  /// Rate of the layers' products over that in 16 bit; above 1 their operands are cast to 8 bit
  /// before (the head's and attention's stay in 16).
  double product_speed = 1;
  /// Host time of an operator over Calibration::dispatch_s, which is that of Tessera's executor:
  /// modules of Python, autocast and the hooks of FSDP around each layer take longer.
  double launch = 1;
  bool overlapped_tensor_parallel = false;  // its collectives run in pieces beside their GEMMs
  PeerSums peer_sums;                       // a rollout's are DecodeTraits'
  bool operator==(const LayerKernels&) const = default;
};

/// Passes over fp32 logits, 4 bytes each, by kernels beside the product that writes them.
struct LogitPasses {
  double forward = 6;   // maximum, exponential, sum and entropy one after the other
  double backward = 6;  // the gradient, and its copy in the model's type
  bool operator==(const LogitPasses&) const = default;
};

/// Of logits and the loss.
struct LossTraits {
  std::int64_t rows = kLogitRows;  // of logits at once; 0 = all rows of a micro-batch
  LossKernel kernel = LossKernel::vocab_parallel;  // where rows = 0
  /// `rows` of logits exist inside one kernel with the head (verl's use_fused_kernels), whose
  /// weight stays gathered as it does where all rows exist at once.
  bool fused_with_head = false;
  LogitPasses passes;
  bool operator==(const LossTraits&) const = default;
};

/// Of summed gradients and their reduction.
struct GradientTraits {
  bool overlapped = false;           // with ZeRO, reduced during the last backward pass
  bool overlapped_replicas = false;  // the same without ZeRO
  bool narrow = false;               // summed and reduced in the parameters' type, else in fp32
  /// ZeRO-1's reduced part lies in the buffer that was reduced, in fp32 as the optimizer reads it
  /// (Megatron-LM core/distributed/param_and_grad_buffer.py, local_data_view;
  /// core/optimizer/distrib_optimizer.py, _copy_model_grads_to_main_grads); else it is a copy.
  bool reduced_in_place = false;
  /// Shards appear with each backward pass of FSDP and are gone after the step (torch.optim's
  /// zero_grad sets them to None), so none exist in the forward pass of a first micro-batch; else
  /// they lie in a buffer of their own.
  bool fresh = false;
  bool operator==(const GradientTraits&) const = default;
};

struct OptimizerTraits {
  OffloadedStates offloaded = OffloadedStates::whole;
  bool overlapped_parameters = false;  // ZeRO-1's and -2's new ones are gathered beside a pass
  bool fused = false;                  // no copies of states while they step
  bool operator==(const OptimizerTraits&) const = default;
};

/// Of parameters that FSDP or ZeRO-2 cut.
struct ShardTraits {
  /// FSDP gathers a layer beside the one before it, and ZeRO-2 and FSDP reduce a layer's gradients
  /// beside the next layer's backward pass; what stands before the first layer and after the last
  /// backward is exposed. Kernels of collectives slow what they run beside
  /// (Calibration::overlap_slowdown), copy engines do not.
  bool overlapped = false;
  bool kept_gathered = false;      // layers stay whole from forward to backward
  bool over_context = false;       // they lie over context parallel ranks, too
  bool master_parameters = false;  // of fp32 parameters, with no 16-bit copy beside
  /// The reference's shards wait in host memory in fp32 and come layer by layer in every pass
  /// (FSDP's CPUOffload), beside the layer before; else its weights come once a call.
  bool frozen_fetched = false;
  bool reduced_every_batch = false;  // ZeRO-2 under a pipeline; else it sums micro-batches first
  ShardTransport transport = ShardTransport::collectives;
  bool operator==(const ShardTraits&) const = default;
};

/// Of messages between pipeline stages ("hops").
struct PipelineTraits {
  bool cut_by_tp = false;   // each tensor-parallel rank sends its part (Megatron-LM)
  bool overlapped = false;  // interleaved stages send while they compute
  InterleavedCount interleaved = InterleavedCount::any;
  BatchOrder order = BatchOrder::fullest_first;
  bool operator==(const PipelineTraits&) const = default;
};

/// What a launch of the products of several experts takes where each has few rows: its start, and
/// their weights at this part of the rate at which a dense product reads its own.
struct GroupedReads {
  Seconds start;
  double rate = 1;
  bool operator==(const GroupedReads&) const = default;
};

/// Of routed experts.
struct ExpertTraits {
  double imbalance = 1.0;                            // tokens of the busiest expert rank / mean
  ExpertDispatch dispatch = ExpertDispatch::direct;  // across nodes; inside always direct
  ExpertOverlap overlap = ExpertOverlap::none;
  /// Tokens go to a rank once, whatever number of its experts they have chosen, inside a node too,
  /// and lie by expert when they arrive (DeepEP's and HybridEP's kernels, with fused permutation).
  bool merged_dispatch = false;
  /// Ranks that cut the same experts have all of one another's tokens before these are dealt out,
  /// and add up what they make of them afterwards: a token passes among them once each way, but
  /// each of them deals it out. Else its copies by expert pass (Megatron-LM's dispatchers).
  bool gathered_first = false;
  bool synchronized_routing = false;  // the host reads the counts of routed tokens in every layer
  /// Biases of experts' outputs are added expert by expert in fp32, weighted by the router's
  /// probabilities (Megatron-LM core/transformer/moe/experts.py, TEGroupedMLP._apply_bias).
  bool eager_bias = false;
  GroupedReads grouped;
  bool operator==(const ExpertTraits&) const = default;
};

/// Kernels beside a decode step's last product, which draw its tokens: their starts, as so many of
/// Calibration::kernel_floor_s, and passes over the step's fp32 logits, 4 bytes each.
struct DrawKernels {
  int starts = 24;  // vLLM's sampler; the last norm among them
  double passes = 6;
  bool operator==(const DrawKernels&) const = default;
};

/// Kernels of a replayed decode step.
struct ReplayedKernels {
  /// Of a layer beside GEMMs and attention: two norms with the residual, RoPE, cache write,
  /// activation (vLLM's models/qwen2.py).
  int layer = 5;
  /// Norms of queries and keys besides, where a model has such (vLLM's models/qwen3.py).
  int head_norms = 2;
  /// Routing, alignment, and sums of a sparse layer besides (vLLM's layers/fused_moe).
  int router = 4;
  int embedding = 18;
  DrawKernels draw;
  /// On GPUs before compute capability 90, and of ranks that cut the vocabulary where cut_draws.
  DrawKernels draw_without_clusters;
  bool operator==(const ReplayedKernels&) const = default;
};

/// Of a rollout's decoding.
struct DecodeTraits {
  /// Steps are replayed CUDA graphs of fused kernels: no launch waits for the host (vLLM's and
  /// SGLang's default).
  bool graphed = false;
  /// Graphs hold the messages of expert parallelism, too. Else the host reads their sizes in every
  /// layer, and such steps are launched one operator at a time.
  bool graphed_dispatch = true;
  /// The host launches a step before it has read what the one before drew: the device does not wait
  /// between them.
  bool launched_ahead = false;
  /// The device's pause between two replayed steps of such an engine (copies of a few tokens).
  Seconds step_gap;
  bool refills_alone = false;  // a freed slot's prompt has a pass of its own, no part of a step
  /// Where weights stay mapped, cache and workspace stay, too: an inference server that never
  /// sleeps (verl's rollout.free_cache_engine=false), of a reward model as of a rollout.
  bool keeps_cache = false;
  /// Tokens of a block where the KV cache is paged (cost_models/paging); 0 = each slot has room for
  /// a longest sequence.
  std::int64_t block_tokens = 0;
  ReplayedKernels replayed;
  /// What is left of attention's floor where a graph starts it (of Calibration::attention_floor_s).
  double attention_start = 1;
  /// What attention spares where its keys and values were read a moment before for another sample
  /// of the prompt (the device's L2), as a part of the time that their bytes take.
  double shared_reads = 0;
  /// Processor time of a server's front end for each token: its text, its log-prob, the answer so
  /// far, its reader woken; and what every doubling of its requests beyond 128 adds, also of those
  /// that wait for a slot (objects that the garbage collector walks). The front end works beside
  /// the engine, so that a step takes no less. Calibration::serving scales both.
  Seconds token_served, token_crowded;
  /// Sums of tensor parallel ranks, of decode steps and of prompts alike.
  PeerSums peer_sums;
  /// Tensor parallel ranks draw each from its own columns of the logits, and exchange a few numbers
  /// of each piece of a row; else they gather the logits.
  bool cut_draws = false;
  /// The rollout is an inference server, whose kernels are fused and the device's best whatever
  /// those of training are.
  bool server_kernels = false;
  bool operator==(const DecodeTraits&) const = default;
};

/// What software takes when new weights go to the rollout, beside their bytes on links: trainers
/// and servers of Python hand weights over tensor by tensor, each named as a checkpoint names it.
struct HandoverTraits {
  Seconds call;    // once, on the actor's GPUs: processes are called, weights mapped again
  Seconds tensor;  // each tensor, on the actor's GPUs
  Seconds broadcast_tensor;  // each tensor, in buckets to a rollout on GPUs of its own
  /// On the actor's GPUs every rank first gathers the model whole, beside the bytes that a minimal
  /// switch moves. False where the engine states such a gather (WholeGather), which is the switch.
  bool gathered_first = false;
  /// At which optimizer states then leave the GPU, for host memory that is not pinned; 0 = they
  /// stay where the plan has them.
  BytesPerSecond eviction;
  bool operator==(const HandoverTraits&) const = default;
};

/// What an engine's software takes around its passes while the device waits; Calibration::software
/// scales all but `looking`.
struct SoftwareTraits {
  Seconds call;      // once a call of a role: workers are called
  Seconds dealt;     // each sequence of a call that computes: cut out for its worker, joined again
  Seconds scored;    // each micro-batch without training: packed, and its results taken apart
  Seconds trained;   // each micro-batch of an update
  Seconds sequence;  // each sequence of a step, where its advantages are worked out
  Seconds looking;   // until who waits for a whole generation sees that it has ended
  bool operator==(const SoftwareTraits&) const = default;
};

/// Of low-rank adapters beside frozen weights.
struct AdapterTraits {
  /// Every data-parallel rank has all adapters of its layers, with their gradients and states,
  /// whatever it shares of the weights; else ZeRO and FSDP cut them as they would cut weights.
  bool replicated = false;
  /// A rank of the rollout receives the adapters that it lacks, and once all that they stand
  /// beside; else every GPU gathers all adapters, and the rollout reads the weights from files.
  bool minimal = false;
  /// Projections that read one input have one adapter (Megatron-Bridge's linear_qkv, linear_fc1);
  /// else each has its own, as peft's modules do.
  bool fused = false;
  /// The matrices A of projections that read one input are one product, and a product with B adds
  /// itself to what it belongs to; else both are products of their own, whose outcomes are added.
  bool joined = false;
  bool operator==(const AdapterTraits&) const = default;
};

struct EngineTraits {
  TrainedRanks ranks = TrainedRanks::by_experts;
  LayerKernels kernels;
  LossTraits loss;
  GradientTraits gradients;
  OptimizerTraits optimizer;
  ShardTraits shards;
  PipelineTraits pipeline;
  ExpertTraits experts;
  DecodeTraits decode;
  HandoverTraits handover;
  SoftwareTraits software;
  AdapterTraits adapters;

  bool operator==(const EngineTraits&) const = default;
};

}  // namespace tessera
