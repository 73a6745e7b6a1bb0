// Time that one rank computes: GEMMs, attention, elementwise kernels, launches, optimizer.
//
// Pure functions of a model, a tensor-parallel degree, a batch and a Calibration. Seconds of one
// rank that has its device (or core) to itself, communication not included (tp_seconds counts that
// of tensor parallelism). Per operator: roofline time max(flop / rate, bytes / bandwidth) + floor,
// times the measured ratio at this size (Williams et al. 2009; grid and ratios: aiconfigurator's
// tables, Apache-2.0). FLOPs: 2 m n k per GEMM; causal attention 4 n_q d s^2 / 2 forward; backward
// of a GEMM is two GEMMs, of attention 2.5 x its forward FLOPs (Dao 2023, FlashAttention-2).
#pragma once

#include <cstdint>

#include "cost_models/calibration.h"
#include "cost_models/collective.h"
#include "cost_models/memory.h"
#include "cost_models/spec/dtype.h"
#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/units.h"

namespace tessera {

struct RankModel;

/// Operators that the executor dispatches, each at Calibration::dispatch_s of host time: counted in
/// executor/model (decoder, layer_ops, scores, decode) and executor/train (trainer, optimizer).
/// Attention handles all sequences of a batch at once, so no count grows with the batch.
struct OperatorCounts {
  int layer_forward = 38, layer_backward = 58, layer_decode = 46;
  int embedding = 18;                         // lookup, RoPE table, packing
  int head_forward = 22, head_backward = 24;  // per kLogitRows rows
  int sample = 24;
  // Context parallelism beside the layer's own, per layer: what a ring does once and with every
  // block that arrives (executor/attention/context_attention.cc), and Ulysses' exchanges.
  int ring_forward = 4, ring_forward_step = 31, ring_backward = 6, ring_backward_step = 34;
  int ulysses = 28;
  int optimizer_per_step = 24, optimizer_per_tensor = 1;
};
inline constexpr OperatorCounts kOperators;

/// Sequences packed into one call. `squared` = sum of the squared lengths (attention's work).
struct TokenBatch {
  double tokens = 0, sequences = 0, squared = 0;
};

/// Time split into the device's and the host's part; total() follows Calibration::
/// overlapped_dispatch once per pass, so parts of a pass are added before.
struct Work {
  Seconds device, host;
  Work& operator+=(const Work& other);
  friend Work operator+(Work a, const Work& b) { return a += b; }
  friend Work operator*(double factor, Work work);
  Seconds total(const Calibration& calibration) const;
};

/// y[m,n] = x[m,k] w[n,k]^T.
Seconds matmul_seconds(double m, double n, double k, DType dtype, const Calibration& calibration);
/// Reads and writes of `bytes` by elementwise kernels.
Seconds stream_seconds(Traffic bytes, const Calibration& calibration);

/// Bytes that the elementwise operators of the rank's layer read and write per token, forward.
Traffic layer_elementwise_bytes(const RankModel& rank);
/// The attention of one layer, forward, without its projections.
Seconds layer_attention_seconds(const RankModel& rank, const TokenBatch& batch,
                                const Calibration& calibration);

/// One layer, forward.
Work layer_forward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration);
/// One layer, backward (gradients of inputs and of weights, or of adapters beside frozen ones);
/// full recompute adds a forward.
Work layer_backward(const RankModel& rank, const TokenBatch& batch, Recompute recompute,
                    const Calibration& calibration);
/// What one decode step of a sequence reads of its cache, on average: `context` tokens, of which
/// another sample of the same prompt reads `shared` in the same step.
struct CacheReads {
  double context = 0, shared = 0;
};

/// One layer of one decode step, and the lookup of its embeddings.
Work layer_decode(const RankModel& rank, double sequences, CacheReads reads,
                  const Calibration& calibration);
Work embedding_decode(const RankModel& rank, double sequences, const Calibration& calibration);

/// The embedding's lookup, and the head: log-probabilities over the vocabulary slice, or values.
Work embedding_forward(const RankModel& rank, const TokenBatch& batch, const Calibration&);
Work head_forward(const RankModel& rank, const TokenBatch& batch, const Calibration&);
/// The logits are computed again from the kept hidden states, kLogitRows at a time.
Work head_backward(const RankModel& rank, const TokenBatch& batch, const Calibration&);
/// Logits of the last token of each sequence and the draw from them.
Work sample(const RankModel& rank, double sequences, const Calibration& calibration);

/// One step of AdamW on `elements` parameters of which this rank updates 1/shards: gradient read,
/// master weight and both moments read and written, parameter written; norm and clipping pass once
/// over the gradients. `tensors` = tensors that the rank holds.
Work optimizer_step(double elements, int shards, double tensors, const RoleDTypes& dtypes,
                    const Calibration& calibration);

/// An optimizer step by the host, whose memory holds `elements` / shards of a rank's
/// states: gradients come and parameters go back piece by piece beside the computation, one stream
/// for both; the slower decides, and one piece sticks out at either end. `ranks` of a node share
/// its cores and memory (executor/train/optimizer.h). Norm and clipping stay on the device.
Seconds host_step_seconds(double elements, int shards, int ranks, const RoleDTypes& dtypes,
                          const ClusterSpec& cluster, const Calibration& calibration);

/// Tensor-parallel communication: of one layer (2 all-reduces of tokens x hidden forward and as
/// much backward; Narayanan et al. 2021, sec. 2.3; under sequence parallelism an all-gather and a
/// reduce-scatter for each, Korthikanti et al. 2022, sec. 4.2.2), of the embedding (1, forward
/// only), of the head forward (maximum; then sum, target and entropy together, in fp32) and
/// backward (1 of rows x hidden).
Seconds layer_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                         const ClusterSpec& cluster, const Calibration& calibration);
/// Context parallelism of one layer. Ring: c - 1 steps that pass 2 n_kv d of the rank's tokens on
/// (twice that backward, with their gradients), exposed where attention is shorter (Liu et al.
/// 2023, arXiv:2310.01889). Ulysses: all-to-alls of q, k, v and output (Jacobs et al. 2023,
/// arXiv:2309.14509).
Seconds layer_cp_seconds(const RankModel& rank, const TokenBatch& batch, bool backward,
                         GroupShape group, const ClusterSpec& cluster,
                         const Calibration& calibration);
/// Copies of a token that a hierarchical dispatch sends, on average over evenly used experts: to
/// `nodes` of the group's (its own counts as one), and to `ranks`. A choice limited to some groups
/// of experts (DeepSeek-V3: 4 of 8) reaches at most the nodes that hold those.
struct ExpertCopies {
  double nodes = 1, ranks = 1;
};
ExpertCopies expert_copies(const MoeSpec& moe, GroupShape group);
/// Expert parallelism of one sparse layer, forward or backward: tokens to their experts and back,
/// k h of the rank's tokens each way (Lepikhin et al. 2021), or, hierarchical, the tokens that
/// expert_copies counts: network and node links work at once, the slower decides. With etp > 1 the
/// copies are gathered and reduced in its group besides.
Seconds layer_ep_seconds(const RankModel& rank, double tokens, GroupShape group,
                         const ClusterSpec& cluster, const Calibration& calibration);
Seconds embedding_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                             const ClusterSpec& cluster, const Calibration& calibration);
Seconds head_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                        const ClusterSpec& cluster, const Calibration& calibration);
Seconds head_backward_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                                 const ClusterSpec& cluster, const Calibration& calibration);
/// One step's draws over the group: its logits are gathered, or what DecodeTraits::cut_draws needs.
Seconds sample_tp_seconds(const RankModel& rank, double sequences, GroupShape group,
                          const ClusterSpec& cluster, const Calibration& calibration);

/// Model FLOPs of a token, forward: 2 x (parameters without the input embedding) + causal attention
/// 2 n_q d s per layer; layers of multi-token prediction that run, with a head each, as Megatron-LM
/// counts them. Training is three times that; the denominator of MFU.
double forward_flops_per_token(const ModelSpec& model, double sequence_tokens);

}  // namespace tessera
