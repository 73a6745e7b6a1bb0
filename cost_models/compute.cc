#include "cost_models/compute.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cost_models/layer_operators.h"
#include "cost_models/linear_communication.h"
#include "cost_models/rank_model.h"
#include "cost_models/spec/device/device_kind.h"

namespace tessera {
namespace {

// Passes over the width of the FFN that an activation and its product with the gate take forward.
double activation_passes(const RankModel& rank, const LayerShape& shape) {
  if (!shape.gated) return 2;
  return rank.traits.kernels.fused_activation ? 3 : 5;
}

// Bytes that the elementwise operators of a layer read and write per token: two norms and two
// residual additions 10 h (cut under sequence parallelism), RoPE on q and k 2 (n_q + n_kv) d / t
// and their norms, where a model has such, as much, SiLU and product 5 f / t (2 f without gate);
// one kernel per operator moves 18 h for an RMS norm (cast, square, mean, product, cast, weight;
// fp32 between them) and 10 for each element that RoPE turns (rotate_half: negation and
// concatenation 3, two products 4, sum 3), 45 where the operands of transformers' modules lie in
// different orders (42 to 48 of four Qwen2.5, benchmarks/results/h200-transformers-kernels.json);
// dropout reads and writes the stream and a mask twice;
// several residual streams are read to be weighed, read and written to be mixed, before attention
// and before the MLP;
// routed tokens are copied out and back, 4 h each, and sorted by expert and back after an
// all-to-all, 4 h more, beside their experts' 5 f.
Traffic elementwise_bytes(const RankModel& rank, const LayerShape& shape) {
  const ElementwiseKernels kernels = rank.traits.kernels.elementwise;
  const bool modules = kernels == ElementwiseKernels::transformers,
             eager = modules || kernels == ElementwiseKernels::eager,
             rms = rank.model.norm == NormKind::rms;
  const double turn = modules ? 45.0 : eager && rms ? 10.0 : 2.0;
  const double turned = static_cast<double>((rank.query_heads() + rank.kv_heads()) * shape.key_dim);
  double mixed = shape.mixes ? shape.rotary * turn * turned : 0.0;
  if (rank.model.qk_norm) mixed += (eager && rms ? 18.0 : 2.0) * turned;
  if (shape.gated_output) mixed += 3.0 * static_cast<double>(rank.query_heads() * shape.value_dim);
  if (shape.linear()) {  // convolution and its activation; norm and gate of the output
    const double passes = shape.kernel > 0 ? 4.0 : 2.0;
    mixed = passes * as_double(rank.largest(2 * shape.linear_keys + shape.linear_values)) +
            5.0 * as_double(rank.largest(shape.linear_values));
  }
  if (shape.compressed()) {  // norms of the queries' heads, positions of the output, entries
    mixed += (eager ? 28.0 : 4.0) * turned + 5.0 * as_double(2 * shape.entry_keys * shape.key_dim);
  }
  if (shape.index_heads > 0) {  // positions on its queries and key, a norm of the key
    mixed += 2.0 * as_double((shape.index_heads + 2) * shape.index_dim);
  }
  if (shape.state_space()) {  // the same of its convolution, norm and gate
    mixed = 4.0 * as_double(rank.largest(shape.state_inner() + 2 * shape.state_vectors())) +
            5.0 * as_double(rank.largest(shape.state_inner()));
  }
  const double two_norms = eager && rms ? 42.0 : rank.traits.kernels.dropout ? 15.0 : 10.0;
  const double norms_and_sums =
      shape.one_block() ? two_norms / 2 : two_norms + (shape.norms - 2) * (eager ? 18.0 : 2.0);
  const double activation = activation_passes(rank, shape);
  const double hidden = as_double(shape.hidden);
  // Streams are read twice and written once at each of two places.
  const double streams = shape.streams > 0 ? 2 * 3.0 * as_double(shape.stream()) : 0.0;
  double elements = (norms_and_sums * hidden + streams) / rank.stream_parts() + mixed +
                    activation * as_double(rank.largest(shape.ffn));
  if (shape.sparse()) {
    const double copies = as_double(shape.experts_per_token) / rank.tp;
    // Tokens that an all-to-all brought lie by rank: they are sorted by expert, and back
    // (Megatron-LM's alltoall dispatcher), unless one expert is held.
    const bool sorted =
        rank.ep > 1 && shape.experts > rank.ep && !rank.traits.experts.merged_dispatch;
    // Bias: its product with a probability is written in fp32 (4 bytes), the sum reads 6 and writes
    // 4, parts are joined 8 and cast back 6; backward 40, for which twice 24 forward stand.
    const bool biased = rank.model.mlp_bias && rank.traits.experts.eager_bias;
    const double moved = (sorted ? 8.0 : 4.0) + (biased ? 12.0 : 0.0);
    elements += copies * (moved * as_double(shape.expert_width) +
                          activation * as_double(shape.expert_ffn)) +
                2.0 * as_double(shape.experts) / rank.stream_parts();
  }
  return Traffic{static_cast<double>(size_of(rank.dtype)) * elements};
}

// Bytes that selective recomputation with flash attention makes again per token: both norms, 4 h,
// and the gated product, 3 f (2 f without gate); of Megatron-Core's modules the experts' alone.
Traffic remade_bytes(const RankModel& rank, const LayerShape& shape) {
  const double activation = shape.gated ? 3.0 : 2.0;
  double elements = 0;
  if (rank.traits.kernels.selective == SelectiveRecompute::products) {
    elements = 4.0 * as_double(shape.hidden) / rank.stream_parts() +
               activation * as_double(rank.largest(shape.ffn));
  }
  if (shape.sparse()) {
    elements += activation * as_double(shape.experts_per_token * shape.expert_ffn) / rank.tp;
  }
  return Traffic{static_cast<double>(size_of(rank.dtype)) * elements};
}

// A pass's elementwise kernels: their bytes, and a floor for each operator that is no GEMM.
Seconds elementwise_seconds(Traffic bytes, double operators, const Calibration& calibration) {
  return stream_seconds(bytes, calibration) +
         std::max(0.0, operators) * Seconds{calibration.kernel_floor_s.value};
}

// What adapters take beside their products.
Work adapter_work(const RankModel& rank, const LayerShape& shape, double tokens, bool backward,
                  Seconds launch, const Calibration& calibration) {
  if (rank.adapter_rank == 0) return {};
  const AdapterSums sums = adapter_sums(rank, layer_matmuls(rank, shape), backward);
  return {elementwise_seconds(tokens * sums.bytes, sums.kernels, calibration),
          sums.operators * launch};
}

// How much longer products take in a long run than alone, by the device's clocks. Between products
// of transformers' modules the tensor cores rest for a third of the time, and 0.2 to 0.8 of it is
// left (benchmarks/results/h200-transformers-kernels.json: layers of 1.5B, 3B and 7B).
double sustained(const RankModel& rank, const Calibration& calibration) {
  constexpr double kLeft = 0.4;
  const bool rests = rank.traits.kernels.elementwise == ElementwiseKernels::transformers;
  return 1 + (rests ? kLeft : 1.0) * (calibration.sustained.value - 1);
}

// Router, sorting, copies out and back, and their sums come on top in a sparse layer.
constexpr int kRouterOperators = 18;
double layer_operators(int dense, const LayerShape& shape) {
  return (shape.one_block() ? dense / 2.0 : dense) + (shape.sparse() ? kRouterOperators : 0);
}

// Kernels of the norms of queries and of keys, forward; backward each has a second one, which adds
// up the gradient of its weight.
int head_norms(const RankModel& rank, const LayerShape& shape) {
  return rank.model.qk_norm && shape.mixes && !shape.linear() ? 2 : 0;
}

// The host waits for the counts of routed tokens before it launches what depends on them, so the
// launches around the wait are not hidden behind kernels.
Seconds routing_wait(bool waits, const LayerShape& shape, const Calibration& calibration) {
  if (!shape.sparse() || !waits) return {};
  return kRouterOperators * Seconds{calibration.dispatch_s.value};
}

// Operators that context parallelism dispatches in a layer beside the attention of one rank.
double context_operators(const RankModel& rank, bool backward) {
  if (rank.cp <= 1) return 0;
  if (rank.ulysses) return kOperators.ulysses;
  const double blocks = rank.cp - 1;
  return backward ? kOperators.ring_backward + (blocks + 1) * kOperators.ring_backward_step
                  : kOperators.ring_forward + blocks * kOperators.ring_forward_step;
}

// True where the host reads the sizes of messages to experts in every layer of a decode step.
bool waits_for_sizes(const RankModel& rank) {
  return rank.ep > 1 && !rank.traits.decode.graphed_dispatch;
}

bool replays_steps(const RankModel& rank, const Calibration& calibration) {
  return rank.traits.decode.graphed && calibration.overlapped_dispatch && !waits_for_sizes(rank);
}

// Rows of the table are read and written.
Traffic embedding_bytes(const RankModel& rank, double tokens) {
  return Traffic{2.0 * tokens * static_cast<double>(size_of(rank.dtype) * rank.model.hidden)};
}

double head_operators(const RankModel& rank, double tokens, int operators) {
  if (rank.traits.loss.rows == 0) return operators;
  return std::max(1.0, tokens / static_cast<double>(rank.traits.loss.rows)) * operators;
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  device += other.device;
  host += other.host;
  return *this;
}

Work operator*(double factor, Work work) { return {factor * work.device, factor * work.host}; }

Seconds Work::total(const Calibration& calibration) const {
  return calibration.overlapped_dispatch ? std::max(device, host) : device + host;
}

Seconds stream_seconds(Traffic bytes, const Calibration& calibration) {
  return bytes / BytesPerSecond{calibration.stream_bandwidth.value};
}

Traffic layer_elementwise_bytes(const RankModel& rank) {
  return elementwise_bytes(rank, rank.layer());
}

Seconds layer_attention_seconds(const RankModel& rank, const TokenBatch& batch,
                                const Calibration& calibration) {
  return attention_seconds(rank, rank.layer(), batch, calibration);
}

Work layer_forward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration) {
  const LayerShape shape = rank.layer();
  const double operators =
      layer_operators(kOperators.layer_forward, shape) + head_norms(rank, shape);
  const double tokens = batch.tokens / rank.cp;
  const Seconds device =
      sustained(rank, calibration) * (layer_matmul_seconds(rank, shape, tokens, calibration) +
                                      attention_seconds(rank, shape, batch, calibration)) +
      elementwise_seconds(
          tokens * (elementwise_bytes(rank, shape) + cast_bytes(rank, shape, false)), operators - 5,
          calibration) +
      routing_wait(rank.traits.experts.synchronized_routing, shape, calibration);
  const Seconds launch{calibration.dispatch_s.value};
  Work work{device, (operators + context_operators(rank, false)) * launch};
  work += adapter_work(rank, shape, tokens, false, launch, calibration);
  return work;
}

Work layer_backward(const RankModel& rank, const TokenBatch& batch, Recompute recompute,
                    const Calibration& calibration) {
  const LayerShape shape = rank.layer();
  const LayerMatmuls layer = layer_matmuls(rank, shape);
  const double tokens = batch.tokens / rank.cp;
  Seconds matmuls;
  for (const MatmulShape& matmul : layer) {
    if (!matmul.backward) continue;
    matmuls += matmul_backward_seconds(rank, matmul, tokens, calibration);
  }
  const Seconds forward = attention_seconds(rank, shape, batch, calibration);
  Seconds attention = calibration.attention_backward.value * forward;
  // Without flash attention the backward pass is two GEMMs and as many passes for each of forward.
  if (!rank.traits.kernels.flash_attention) {
    attention = (recompute == Recompute::selective ? 3.0 : 2.0) * forward;
  } else if (recompute == Recompute::selective &&
             rank.traits.kernels.selective == SelectiveRecompute::modules && !rank.model.moe &&
             !rank.model.mla) {
    attention += forward;  // its core, as Megatron-Core's default has it
  }
  const Traffic accumulation =
      rank.adapter_rank > 0 ? Traffic{} : layer_weights(layer) * accumulated_bytes(rank);
  if (recompute == Recompute::selective) {
    matmuls += projected_again_seconds(rank, shape, tokens, calibration);
  }
  const double operators =
      layer_operators(kOperators.layer_backward, shape) + 2 * head_norms(rank, shape);
  const bool remade = recompute == Recompute::selective && rank.traits.kernels.flash_attention;
  const Traffic elementwise = 2 * elementwise_bytes(rank, shape) +
                              (remade ? remade_bytes(rank, shape) : Traffic{}) +
                              cast_bytes(rank, shape, true);
  const Seconds launch{calibration.backward_dispatch_s.value};
  Work work{
      sustained(rank, calibration) * (matmuls + attention) +
          elementwise_seconds(tokens * elementwise + accumulation, operators - 9, calibration),
      (operators + context_operators(rank, true)) * launch};
  work += adapter_work(rank, shape, tokens, true, launch, calibration);
  if (recompute == Recompute::full) work += layer_forward(rank, batch, calibration);
  return work;
}

Work layer_decode(const RankModel& rank, double sequences, CacheReads reads,
                  const Calibration& calibration) {
  const LayerShape shape = rank.layer();
  const bool replayed = replays_steps(rank, calibration);
  const ReplayedKernels& counts = rank.traits.decode.replayed;
  const int norms = head_norms(rank, shape);
  const double operators = layer_operators(kOperators.layer_decode, shape) + norms;
  const int replays =
      counts.layer + (norms > 0 ? counts.head_norms : 0) + (shape.sparse() ? counts.router : 0);
  const double kernels = replayed ? replays : operators - 5;
  const Seconds device =
      layer_matmul_seconds(rank, shape, sequences, calibration) +
      decode_attention_seconds(rank, shape, sequences, reads, calibration) +
      elementwise_seconds(sequences * elementwise_bytes(rank, shape), kernels, calibration) +
      routing_wait(waits_for_sizes(rank), shape, calibration);
  const Seconds launch = replayed ? Seconds{} : Seconds{calibration.dispatch_s.value};
  Work work{device, operators * launch};
  work += adapter_work(rank, shape, sequences, false, launch, calibration);
  return work;
}

Work embedding_decode(const RankModel& rank, double sequences, const Calibration& calibration) {
  const TokenBatch batch{sequences, sequences, sequences};
  if (!replays_steps(rank, calibration)) return embedding_forward(rank, batch, calibration);
  return {elementwise_seconds(embedding_bytes(rank, sequences),
                              rank.traits.decode.replayed.embedding, calibration)};
}

Work embedding_forward(const RankModel& rank, const TokenBatch& batch,
                       const Calibration& calibration) {
  return {elementwise_seconds(embedding_bytes(rank, batch.tokens / rank.cp), kOperators.embedding,
                              calibration),
          kOperators.embedding * Seconds{calibration.dispatch_s.value}};
}

Work head_forward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration) {
  const double tokens = batch.tokens / rank.cp;
  const auto hidden = static_cast<double>(rank.model.hidden);
  const bool value = rank.model.head == ModelHead::value;
  const double columns = value ? 1.0 : static_cast<double>(rank.vocab());
  const double operators = head_operators(rank, tokens, kOperators.head_forward);
  const double passes = value ? 0 : rank.traits.loss.passes.forward;
  const Traffic bytes{passes * size_of(DType::fp32) * tokens * columns};
  return {calibration.sustained.value *
                  matmul_seconds(tokens, columns, hidden, rank.dtype, calibration) +
              elementwise_seconds(bytes, operators - 1, calibration),
          operators * Seconds{calibration.dispatch_s.value}};
}

Work head_backward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration) {
  const double tokens = batch.tokens / rank.cp;
  const auto hidden = static_cast<double>(rank.model.hidden);
  const bool value = rank.model.head == ModelHead::value;
  const double columns = value ? 1.0 : static_cast<double>(rank.vocab());
  const double operators = head_operators(rank, tokens, kOperators.head_backward);
  const double passes = value ? 0 : rank.traits.loss.passes.backward;
  const Traffic bytes{passes * size_of(DType::fp32) * tokens * columns};
  const Seconds again = value || rank.traits.loss.rows == 0
                            ? Seconds{}
                            : matmul_seconds(tokens, columns, hidden, rank.dtype, calibration);
  const Seconds weight = rank.adapter_rank > 0  // frozen
                             ? Seconds{}
                             : matmul_seconds(columns, hidden, tokens, rank.dtype, calibration);
  const Seconds matmuls =
      again + matmul_seconds(tokens, hidden, columns, rank.dtype, calibration) + weight;
  return {calibration.sustained.value * matmuls +
              elementwise_seconds(bytes, operators - 3, calibration),
          operators * Seconds{calibration.backward_dispatch_s.value}};
}

Work sample(const RankModel& rank, double sequences, const Calibration& calibration) {
  const Seconds logits =
      matmul_seconds(sequences, static_cast<double>(rank.vocab()),
                     static_cast<double>(rank.model.hidden), rank.dtype, calibration);
  const ReplayedKernels& counts = rank.traits.decode.replayed;
  const bool clusters = compute_capability(calibration.device) >= 90;
  const bool cut = rank.traits.decode.cut_draws && rank.tp > 1;
  const DrawKernels& draw = clusters && !cut ? counts.draw : counts.draw_without_clusters;
  const Traffic bytes{draw.passes * size_of(DType::fp32) * sequences *
                      static_cast<double>(cut ? rank.vocab() : rank.model.vocab)};
  const int kernels = replays_steps(rank, calibration) ? draw.starts : kOperators.sample;
  return {logits + elementwise_seconds(bytes, kernels, calibration),
          kOperators.sample * Seconds{calibration.dispatch_s.value} +
              Seconds{calibration.decode_step_s.value}};
}

Work optimizer_step(double elements, int shards, double tensors, const RoleDTypes& dtypes,
                    const Calibration& calibration) {
  const auto grad = static_cast<double>(size_of(dtypes.grad));
  const double update_bytes = grad + 2.0 * size_of(dtypes.master) + 4.0 * size_of(DType::fp32) +
                              static_cast<double>(size_of(dtypes.param));
  const double clip_bytes = 3.0 * grad;  // norm, clipping
  const double operators =
      kOperators.optimizer_per_step + tensors * kOperators.optimizer_per_tensor;
  return {elementwise_seconds(
              Traffic{elements / shards * (update_bytes + clip_bytes) + elements * grad}, operators,
              calibration),
          operators * Seconds{calibration.dispatch_s.value}};
}

Seconds host_step_seconds(double elements, int shards, int ranks, const RoleDTypes& dtypes,
                          const ClusterSpec& cluster, const Calibration& calibration) {
  // torch 2.11's _fused_adamw_ on the hosts of 4 H200: one core updates 1.0e9 elements a second, 16
  // cores a rank 1.2 to 1.4e9, which is 45 GB/s of memory for each of four ranks. Where the file is
  // silent these hold, with 12 cores a GPU; stated channels are reached to 0.7 (assumed).
  constexpr double kCoreElements = 1.0e9, kCoresPerGpu = 12, kRankMemory = 45e9, kReached = 0.7;
  constexpr double kPiece = 1 << 24;  // executor/train/optimizer.h
  const double own = elements / shards;
  const double sharing = std::max(1, ranks);
  const double cores =
      cluster.host.cores > 0 ? as_double(cluster.host.cores) / sharing : kCoresPerGpu;
  const double memory =
      cluster.host.memory.value > 0 ? kReached * cluster.host.memory.value / sharing : kRankMemory;
  // AdamW reads the gradient, reads and writes master weight and moments; the weights are cast.
  const double fp32 = size_of(DType::fp32), param = size_of(dtypes.param);
  const double touched = 8 * fp32 + param;
  const double rate = std::min(std::max(1.0, cores) * kCoreElements, memory / touched);
  const double moved = size_of(dtypes.grad) + param;
  const double piece = std::min(own, kPiece) * moved;
  return std::max(Seconds{own / rate}, host_copy_seconds(Traffic{own * moved}, calibration)) +
         host_copy_seconds(Traffic{piece}, calibration);
}

}  // namespace tessera
