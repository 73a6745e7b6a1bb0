#include "cost_models/compute.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// One of a layer's GEMMs on this rank: y[., n] = x[., k] w[n, k]^T, `groups` of them that share the
// rows of a call (the experts that the rank holds), rows per token.
struct MatmulShape {
  double n = 0, k = 0;
  double rows = 1;    // per token of the rank
  double groups = 1;  // experts, each with an equal part of the rows
};

struct LayerMatmuls {
  std::array<MatmulShape, 10> shapes{};
  std::size_t count = 0;

  void add(double n, double k, double rows = 1, double groups = 1) {
    shapes[count++] = {n, k, rows, groups};
  }
  const MatmulShape* begin() const { return shapes.data(); }
  const MatmulShape* end() const { return shapes.data() + count; }
};

void add_attention(const RankModel& rank, const LayerShape& shape, LayerMatmuls& matmuls) {
  const double hidden = as_double(shape.hidden);
  const double q = as_double(rank.query_heads());
  const double key = as_double(shape.key_dim), value = as_double(shape.value_dim);
  if (shape.latent()) {  // DeepSeek-AI 2024, arXiv:2405.04434, eq. 37-47
    const double nope = key - as_double(shape.rope_dim);
    const double compressed = as_double(shape.query_rank);
    if (compressed > 0) matmuls.add(compressed, hidden);
    matmuls.add(q * key, compressed > 0 ? compressed : hidden);
    matmuls.add(as_double(shape.kv_rank + shape.rope_dim), hidden);
    matmuls.add(q * (nope + value), as_double(shape.kv_rank));
    matmuls.add(hidden, q * value);
    return;
  }
  const double key_value = as_double(rank.kv_heads()) * (key + value);
  matmuls.add(q * key + key_value, hidden);
  matmuls.add(hidden, q * value);
}

LayerMatmuls layer_matmuls(const RankModel& rank, const LayerShape& shape) {
  LayerMatmuls matmuls;
  add_attention(rank, shape, matmuls);
  const double hidden = as_double(shape.hidden), parts = as_double(shape.up_parts());
  if (shape.ffn > 0) {
    const double columns = as_double(rank.largest(shape.ffn));
    matmuls.add(parts * columns, hidden);
    matmuls.add(hidden, columns);
  }
  if (shape.sparse()) {
    const double columns = as_double((shape.expert_ffn + rank.etp - 1) / rank.etp);
    const double held = as_double((shape.experts + rank.ep - 1) / rank.ep);
    const double rows =
        as_double(shape.experts_per_token) * rank.etp / rank.tp * rank.traits.expert_imbalance;
    matmuls.add(as_double(shape.experts), hidden, 1.0 / rank.stream_parts());
    matmuls.add(parts * columns, hidden, rows, held);
    matmuls.add(hidden, columns, rows, held);
  }
  return matmuls;
}

double layer_weights(const LayerMatmuls& matmuls) {
  double elements = 0;
  for (const MatmulShape& shape : matmuls) elements += shape.groups * shape.n * shape.k;
  return elements;
}

// Bytes that the elementwise operators of a layer read and write per token: two norms and two
// residual additions 10 h (cut under sequence parallelism), RoPE on q and k 2 (n_q + n_kv) d / t,
// SiLU and product 5 f / t (2 f without gate); one kernel per operator moves 18 h for an RMS norm
// (cast, square, mean, product, cast, weight; fp32 between them) and 10 for each element that RoPE
// turns (rotate_half: negation and concatenation 3, two products 4, sum 3); dropout reads and
// writes the stream and a mask twice; routed tokens are copied out and back, 4 h each, and sorted
// by expert and back after an all-to-all, 4 h more, beside their experts' 5 f.
double elementwise_bytes(const RankModel& rank, const LayerShape& shape) {
  const bool eager = rank.traits.eager_elementwise, rms = rank.model.norm == NormKind::rms;
  const double turned = static_cast<double>((rank.query_heads() + rank.kv_heads()) * shape.key_dim);
  const double rope = (eager && rms ? 10.0 : 2.0) * turned;
  const double norms_and_sums = eager && rms ? 42.0 : rank.traits.dropout ? 15.0 : 10.0;
  const double activation = shape.gated ? 5.0 : 2.0;
  const double hidden = as_double(shape.hidden);
  double elements = norms_and_sums * hidden / rank.stream_parts() + rope +
                    activation * as_double(rank.largest(shape.ffn));
  if (shape.sparse()) {
    const double copies = as_double(shape.experts_per_token) / rank.tp;
    // What an all-to-all brought lies by rank: sorted by expert, and back (Megatron-LM's alltoall
    // dispatcher), unless one expert is held.
    const bool sorted = rank.ep > 1 && shape.experts > rank.ep && !rank.traits.merged_dispatch;
    // Bias: its product with a probability is written in fp32 (4 bytes), the sum reads 6 and writes
    // 4, parts are joined 8 and cast back 6; backward 40, for which twice 24 forward stand.
    const bool biased = rank.model.mlp_bias && rank.traits.eager_expert_bias;
    const double moved = (sorted ? 8.0 : 4.0) + (biased ? 12.0 : 0.0);
    elements += copies * (moved * hidden + activation * as_double(shape.expert_ffn)) +
                2.0 * as_double(shape.experts) / rank.stream_parts();
  }
  return static_cast<double>(size_of(rank.dtype)) * elements;
}

// What selective recomputation with flash attention makes again per token: both norms, 4 h, and the
// gated product, 3 f (2 f without gate).
double remade_bytes(const RankModel& rank, const LayerShape& shape) {
  const double activation = shape.gated ? 3.0 : 2.0;
  double elements = 4.0 * as_double(shape.hidden) / rank.stream_parts() +
                    activation * as_double(rank.largest(shape.ffn));
  if (shape.sparse()) {
    elements += activation * as_double(shape.experts_per_token * shape.expert_ffn) / rank.tp;
  }
  return static_cast<double>(size_of(rank.dtype)) * elements;
}

double compute_factor(DType dtype, const Calibration& calibration) {
  return dtype == DType::fp32 ? calibration.fp32_factor.value : 1.0;
}

// Pairs of a query and a key that causal attention looks at, per query: s / 2, or the window's.
double seen_keys(const LayerShape& shape, double length) {
  const double window = as_double(shape.window);
  if (window <= 0 || length <= window) return length / 2;
  return shape.full_share * length / 2 +
         (1 - shape.full_share) * window * (1 - window / (2 * length));
}

// Causal attention, forward: sequences of the batch's effective length (attention's work is linear
// in tokens x squared / tokens), the keys that windows leave, 1/cp of it all. FLOPs 2 (d_qk + d_v)
// per pair. Without flash attention the scores are computed whole, written, masked, normalised and
// read again: 5 passes over s x s elements (7 with dropout).
double attention_seconds(const RankModel& rank, const LayerShape& shape, const TokenBatch& batch,
                         const Calibration& calibration) {
  if (batch.tokens <= 0) return 0;
  const double length = batch.squared / batch.tokens;
  const double pairs = batch.tokens / length * static_cast<double>(rank.query_heads()) / rank.cp;
  const double width = as_double(shape.key_dim + shape.value_dim);
  const double element = size_of(rank.dtype);
  const double seen = rank.traits.flash_attention ? seen_keys(shape, length) : length;
  const double flops = 2.0 * width * pairs * length * seen;
  const double bytes = 2.0 * element * width * pairs * length;
  const double factor = compute_factor(rank.dtype, calibration);
  if (!rank.traits.flash_attention) {
    const double scores = pairs * length * length * element;
    const double passes = rank.traits.dropout ? 7.0 : 5.0;
    return flops * factor / calibration.matmul_flops.value +
           (bytes + passes * scores) / calibration.memory_bandwidth.value;
  }
  const double roofline = std::max(flops * factor / calibration.matmul_flops.value,
                                   bytes / calibration.memory_bandwidth.value);
  const std::array<double, 2> point = {pairs, length};
  return (calibration.attention_floor_s.value + roofline) * calibration.prefill.at(point);
}

// Latent attention decodes in the compressed space: every head reads the one latent of a token,
// 2 n (2 r_kv + d_rope) FLOPs per cached token (absorbed form, arXiv:2405.04434, sec. 2.1.3).
double decode_attention_seconds(const RankModel& rank, const LayerShape& shape, double sequences,
                                double context, const Calibration& calibration) {
  if (shape.window > 0) {
    context = shape.full_share * context +
              (1 - shape.full_share) * std::min(context, as_double(shape.window));
  }
  if (shape.latent()) {
    const double latent = as_double(shape.kv_rank + shape.rope_dim);
    const double bytes = size_of(rank.dtype) * latent * sequences * context;
    const double flops = 2.0 * as_double(rank.query_heads()) *
                         as_double(2 * shape.kv_rank + shape.rope_dim) * sequences * context;
    return calibration.attention_floor_s.value +
           std::max(
               bytes / calibration.memory_bandwidth.value,
               flops * compute_factor(rank.dtype, calibration) / calibration.matmul_flops.value);
  }
  const auto kv_heads = static_cast<double>(rank.kv_heads());
  const double pairs = sequences * kv_heads;
  const double bytes = static_cast<double>(size_of(rank.dtype)) *
                       as_double(shape.key_dim + shape.value_dim) * pairs * context;
  const double group = static_cast<double>(rank.query_heads()) / std::max(1.0, kv_heads);
  const std::array<double, 3> point = {group, pairs, context};
  return (calibration.attention_floor_s.value + bytes / calibration.memory_bandwidth.value) *
         calibration.decode.at(point);
}

// A grouped GEMM: one launch, every group with an equal part of the rows; groups without a row are
// not read. Kernels for groups work in tiles of 128 rows and reach 0.61 of an H100's peak (A100
// 0.61, B200 0.54) where plain GEMMs of the same source reach 0.79 (0.87, 0.75): aiconfigurator
// 0.4.0's MoE tables, Apache-2.0, fitted by tiles.
double grouped_seconds(const MatmulShape& shape, double tokens, double n, double k, bool gradient,
                       DType dtype, const Calibration& calibration) {
  constexpr double kGroupedRate = 0.61, kTile = 128;  // of the rate that the ratios refer to
  const double rows = tokens * shape.rows;
  if (shape.groups <= 1) {
    return gradient ? matmul_seconds(n, k, rows, dtype, calibration)
                    : matmul_seconds(rows, n, k, dtype, calibration);
  }
  const double touched = shape.groups * (1 - std::pow(1 - 1 / shape.groups, rows));
  const double each = rows / touched;
  const double one = gradient ? matmul_seconds(n, k, each, dtype, calibration)
                              : matmul_seconds(each, n, k, dtype, calibration);
  const double floor = calibration.matmul_floor_s.value;
  const double tiles = 2 * std::ceil(each / kTile) * kTile * n * k *
                       compute_factor(dtype, calibration) /
                       (kGroupedRate * calibration.matmul_flops.value);
  return floor + touched * std::max({0.0, one - floor, tiles});
}

// x A^T and the product with B^T beside a matrix, forward; `gradient`: those of A and B.
double adapter_seconds(const RankModel& rank, const MatmulShape& matmul, double tokens,
                       bool gradient, const Calibration& calibration) {
  if (rank.adapter_rank == 0 || matmul.groups > 1) return 0;
  const double r = as_double(rank.adapter_rank);
  return grouped_seconds(matmul, tokens, r, matmul.k, gradient, rank.dtype, calibration) +
         grouped_seconds(matmul, tokens, matmul.n, r, gradient, rank.dtype, calibration);
}

double layer_matmul_seconds(const RankModel& rank, const LayerShape& shape, double tokens,
                            const Calibration& calibration) {
  double seconds = 0;
  for (const MatmulShape& matmul : layer_matmuls(rank, shape)) {
    seconds += grouped_seconds(matmul, tokens, matmul.n, matmul.k, false, rank.dtype, calibration) +
               adapter_seconds(rank, matmul, tokens, false, calibration);
  }
  return seconds;
}

// Of one matrix, backward: the input's gradient, and the weight's or, where it is frozen, those of
// its adapter and the input's gradient through it.
double matmul_backward_seconds(const RankModel& rank, const MatmulShape& matmul, double tokens,
                               const Calibration& calibration) {
  const double input =
      grouped_seconds(matmul, tokens, matmul.k, matmul.n, false, rank.dtype, calibration);
  if (rank.adapter_rank > 0) {
    return input + adapter_seconds(rank, matmul, tokens, false, calibration) +
           adapter_seconds(rank, matmul, tokens, true, calibration);
  }
  return input + grouped_seconds(matmul, tokens, matmul.n, matmul.k, true, rank.dtype, calibration);
}

// Latent attention's projections to every head, forward, which selective recomputation repeats.
double projected_again_seconds(const RankModel& rank, const LayerShape& shape, double tokens,
                               const Calibration& calibration) {
  if (!shape.latent()) return 0;
  const double q = as_double(rank.query_heads());
  double seconds =
      matmul_seconds(tokens, q * as_double(shape.key_dim - shape.rope_dim + shape.value_dim),
                     as_double(shape.kv_rank), rank.dtype, calibration);
  if (shape.query_rank > 0) {
    seconds += matmul_seconds(tokens, q * as_double(shape.key_dim), as_double(shape.query_rank),
                              rank.dtype, calibration);
  }
  return seconds;
}

// A pass's elementwise kernels: their bytes, and a floor for each operator that is no GEMM.
double elementwise_seconds(double bytes, double operators, const Calibration& calibration) {
  return stream_seconds(bytes, calibration) +
         std::max(0.0, operators) * calibration.kernel_floor_s.value;
}

// Router, sorting, copies out and back, and their sums come on top in a sparse layer.
constexpr int kRouterOperators = 18;
double layer_operators(int dense, const LayerShape& shape) {
  return dense + (shape.sparse() ? kRouterOperators : 0);
}

// The host waits for the counts of routed tokens before it launches what depends on them, so the
// launches around the wait are not hidden behind kernels.
double routing_wait(const RankModel& rank, const LayerShape& shape,
                    const Calibration& calibration) {
  if (!shape.sparse() || !rank.traits.synchronized_routing) return 0;
  return kRouterOperators * calibration.dispatch_s.value;
}

double head_operators(const RankModel& rank, double tokens, int operators) {
  if (rank.traits.logit_rows == 0) return operators;
  return std::max(1.0, tokens / static_cast<double>(rank.traits.logit_rows)) * operators;
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  device_s += other.device_s;
  host_s += other.host_s;
  return *this;
}

Work operator*(double factor, Work work) { return {factor * work.device_s, factor * work.host_s}; }

double Work::total(const Calibration& calibration) const {
  return calibration.overlapped_dispatch ? std::max(device_s, host_s) : device_s + host_s;
}

double matmul_seconds(double m, double n, double k, DType dtype, const Calibration& calibration) {
  const double flops = 2.0 * m * n * k * compute_factor(dtype, calibration);
  const double bytes = static_cast<double>(size_of(dtype)) * (m * k + n * k + m * n);
  const double roofline =
      std::max(flops / calibration.matmul_flops.value, bytes / calibration.memory_bandwidth.value);
  const std::array<double, 3> point = {m, n, k};
  return (calibration.matmul_floor_s.value + roofline) * calibration.matmul.at(point);
}

double stream_seconds(double bytes, const Calibration& calibration) {
  return bytes / calibration.stream_bandwidth.value;
}

double layer_elementwise_bytes(const RankModel& rank) {
  return elementwise_bytes(rank, rank.layer());
}

double layer_attention_seconds(const RankModel& rank, const TokenBatch& batch,
                               const Calibration& calibration) {
  return attention_seconds(rank, rank.layer(), batch, calibration);
}

Work layer_forward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration) {
  const LayerShape shape = rank.layer();
  const double operators = layer_operators(kOperators.layer_forward, shape);
  const double tokens = batch.tokens / rank.cp;
  const double device =
      calibration.sustained.value * (layer_matmul_seconds(rank, shape, tokens, calibration) +
                                     attention_seconds(rank, shape, batch, calibration)) +
      elementwise_seconds(tokens * elementwise_bytes(rank, shape), operators - 5, calibration) +
      routing_wait(rank, shape, calibration);
  return {device, operators * calibration.dispatch_s.value};
}

Work layer_backward(const RankModel& rank, const TokenBatch& batch, Recompute recompute,
                    const Calibration& calibration) {
  const LayerShape shape = rank.layer();
  const LayerMatmuls layer = layer_matmuls(rank, shape);
  const double tokens = batch.tokens / rank.cp;
  double matmuls = 0;
  for (const MatmulShape& matmul : layer) {
    matmuls += matmul_backward_seconds(rank, matmul, tokens, calibration);
  }
  const double forward = attention_seconds(rank, shape, batch, calibration);
  double attention = calibration.attention_backward.value * forward;
  // Without flash attention the backward pass is two GEMMs and as many passes for each of forward.
  if (!rank.traits.flash_attention) {
    attention = (recompute == Recompute::selective ? 3.0 : 2.0) * forward;
  }
  // Each weight's gradient is added to its fp32 sum: read it, read and write the sum.
  const double accumulation = (rank.adapter_rank > 0 ? 0 : layer_weights(layer)) *
                              static_cast<double>(size_of(rank.dtype) + 2 * size_of(DType::fp32));
  if (recompute == Recompute::selective) {
    matmuls += projected_again_seconds(rank, shape, tokens, calibration);
  }
  const double operators = layer_operators(kOperators.layer_backward, shape);
  const bool remade = recompute == Recompute::selective && rank.traits.flash_attention;
  const double elementwise =
      2 * elementwise_bytes(rank, shape) + (remade ? remade_bytes(rank, shape) : 0);
  Work work{
      calibration.sustained.value * (matmuls + attention) +
          elementwise_seconds(tokens * elementwise + accumulation, operators - 9, calibration),
      operators * calibration.backward_dispatch_s.value};
  if (recompute == Recompute::full) work += layer_forward(rank, batch, calibration);
  return work;
}

Work layer_decode(const RankModel& rank, double sequences, double context,
                  const Calibration& calibration) {
  const LayerShape shape = rank.layer();
  const double operators = layer_operators(kOperators.layer_decode, shape);
  const double device =
      layer_matmul_seconds(rank, shape, sequences, calibration) +
      decode_attention_seconds(rank, shape, sequences, context, calibration) +
      elementwise_seconds(sequences * elementwise_bytes(rank, shape), operators - 5, calibration);
  return {device, operators * calibration.dispatch_s.value};
}

Work embedding_forward(const RankModel& rank, const TokenBatch& batch,
                       const Calibration& calibration) {
  const double bytes =
      2.0 * batch.tokens / rank.cp * static_cast<double>(size_of(rank.dtype) * rank.model.hidden);
  return {elementwise_seconds(bytes, kOperators.embedding, calibration),
          kOperators.embedding * calibration.dispatch_s.value};
}

Work head_forward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration) {
  const double tokens = batch.tokens / rank.cp;
  const auto hidden = static_cast<double>(rank.model.hidden);
  const bool value = rank.model.head == ModelHead::value;
  const double columns = value ? 1.0 : static_cast<double>(rank.vocab());
  const double operators = head_operators(rank, tokens, kOperators.head_forward);
  // Logits written, then read for maximum, exponential, sum and entropy in fp32.
  const double bytes = value ? 0 : 6.0 * size_of(DType::fp32) * tokens * columns;
  return {calibration.sustained.value *
                  matmul_seconds(tokens, columns, hidden, rank.dtype, calibration) +
              elementwise_seconds(bytes, operators - 1, calibration),
          operators * calibration.dispatch_s.value};
}

Work head_backward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration) {
  const double tokens = batch.tokens / rank.cp;
  const auto hidden = static_cast<double>(rank.model.hidden);
  const bool value = rank.model.head == ModelHead::value;
  const double columns = value ? 1.0 : static_cast<double>(rank.vocab());
  const double operators = head_operators(rank, tokens, kOperators.head_backward);
  const double bytes = value ? 0 : 6.0 * size_of(DType::fp32) * tokens * columns;
  const double again = value || rank.traits.logit_rows == 0
                           ? 0
                           : matmul_seconds(tokens, columns, hidden, rank.dtype, calibration);
  const double weight = rank.adapter_rank > 0  // frozen
                            ? 0
                            : matmul_seconds(columns, hidden, tokens, rank.dtype, calibration);
  const double matmuls =
      again + matmul_seconds(tokens, hidden, columns, rank.dtype, calibration) + weight;
  return {calibration.sustained.value * matmuls +
              elementwise_seconds(bytes, operators - 3, calibration),
          operators * calibration.backward_dispatch_s.value};
}

Work sample(const RankModel& rank, double sequences, const Calibration& calibration) {
  const double logits =
      matmul_seconds(sequences, static_cast<double>(rank.vocab()),
                     static_cast<double>(rank.model.hidden), rank.dtype, calibration);
  const double bytes =
      6.0 * size_of(DType::fp32) * sequences * static_cast<double>(rank.model.vocab);
  return {logits + elementwise_seconds(bytes, kOperators.sample, calibration),
          kOperators.sample * calibration.dispatch_s.value + calibration.decode_step_s.value};
}

Work optimizer_step(double elements, int shards, double tensors, const RoleDTypes& dtypes,
                    const Calibration& calibration) {
  const auto grad = static_cast<double>(size_of(dtypes.grad));
  const double update_bytes = grad + 2.0 * size_of(dtypes.master) + 4.0 * size_of(DType::fp32) +
                              static_cast<double>(size_of(dtypes.param));
  const double clip_bytes = 3.0 * grad;  // norm, clipping
  const double operators =
      kOperators.optimizer_per_step + tensors * kOperators.optimizer_per_tensor;
  return {elementwise_seconds(elements / shards * (update_bytes + clip_bytes) + elements * grad,
                              operators, calibration),
          operators * calibration.dispatch_s.value};
}

double host_step_seconds(double elements, int shards, int ranks, const RoleDTypes& dtypes,
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
  return std::max(own / rate, host_copy_seconds(own * moved, calibration)) +
         host_copy_seconds(piece, calibration);
}

double layer_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                        const ClusterSpec& cluster, const Calibration& calibration) {
  const LayerShape shape = rank.layer();
  const double bytes =
      tokens / rank.cp * static_cast<double>(size_of(rank.dtype) * rank.model.hidden);
  const auto collective = [&](Collective what) {
    return collective_seconds(what, bytes, group, cluster, calibration);
  };
  const double both = rank.sequence_parallel ? collective(Collective::all_gather) +
                                                   collective(Collective::reduce_scatter)
                                             : collective(Collective::all_reduce);
  // Behind a router only the shared experts are cut by tp; without sequence parallelism the dealt
  // tokens of the routed ones are gathered.
  double mlp = 1;
  if (shape.sparse()) mlp = shape.ffn > 0 ? 1 : 0;
  double seconds = (1 + mlp) * both;
  if (rank.traits.overlapped_tensor && calibration.overlapped_dispatch && rank.sequence_parallel &&
      rank.tp > 1) {
    // In tp pieces beside the GEMM that needs or makes them: one piece sticks out (Wang et al.
    // 2023, ASPLOS; Transformer Engine's --tp-comm-overlap).
    seconds = std::max(seconds / rank.tp,
                       seconds - layer_matmul_seconds(rank, shape, tokens / rank.cp, calibration));
  }
  if (shape.sparse() && !rank.sequence_parallel) seconds += collective(Collective::all_gather);
  return seconds;
}

double layer_cp_seconds(const RankModel& rank, const TokenBatch& batch, bool backward,
                        GroupShape group, const ClusterSpec& cluster,
                        const Calibration& calibration) {
  if (rank.cp <= 1) return 0;
  const LayerShape shape = rank.layer();
  const double element = size_of(rank.dtype), own = batch.tokens / rank.cp;
  const double heads = as_double(shape.key_dim + shape.value_dim);
  const double keys = own * element * as_double(rank.kv_heads()) * heads;
  if (rank.ulysses) {
    const double queries = own * element * as_double(rank.query_heads()) * heads;
    const auto exchange = [&](double bytes) {
      return collective_seconds(Collective::all_to_all, bytes, group, cluster, calibration);
    };
    return exchange(queries / 2) + 2 * exchange(keys / 2) + exchange(queries / 2);
  }
  const auto pass = [&](double bytes) {
    return collective_seconds(Collective::send_receive, bytes, {2, group.nodes > 1 ? 2 : 1},
                              cluster, calibration);
  };
  const double attention = attention_seconds(rank, shape, batch, calibration);
  double ring = (rank.cp - 1) * pass(keys);
  if (!backward) return std::max(0.0, ring - attention);
  // Gradients of keys and values follow their blocks in fp32; the last step brings them home.
  const double gradients = pass(keys / element * size_of(DType::fp32));
  ring += (rank.cp - 1) * gradients;
  return std::max(0.0, ring - calibration.attention_backward.value * attention) + gradients;
}

ExpertCopies expert_copies(const MoeSpec& moe, GroupShape group) {
  const double k = as_double(moe.experts_per_token);
  // Nodes that one token may reach: groups lie on consecutive ranks, `group.nodes / groups` nodes
  // each or several to a node.
  double reachable = group.nodes;
  if (moe.groups > 1 && moe.groups_per_token < moe.groups) {
    const double nodes_per_group = std::max(1.0, group.nodes / as_double(moe.groups));
    reachable = std::min(reachable, as_double(moe.groups_per_token) * nodes_per_group);
  }
  const auto touched = [k](double places) { return places * (1 - std::pow(1 - 1 / places, k)); };
  return {touched(reachable), touched(reachable * group.ranks / group.nodes)};
}

namespace {

// One way of a hierarchical dispatch: `bytes` = one copy of all the rank's tokens.
double hierarchical_seconds(const MoeSpec& moe, double bytes, GroupShape group,
                            const ClusterSpec& cluster, const Calibration& calibration) {
  const ExpertCopies copies = expert_copies(moe, group);
  const double nodes = group.nodes;
  const double network = bytes * copies.nodes * (nodes - 1) / nodes;
  const GroupShape inside{(group.ranks + group.nodes - 1) / group.nodes, 1};
  return std::max(network / inter_node_bandwidth(cluster, calibration),
                  collective_seconds(Collective::all_to_all, bytes * copies.ranks, inside, cluster,
                                     calibration)) +
         calibration.inter_latency_s.value * (nodes - 1);
}

}  // namespace

double layer_ep_seconds(const RankModel& rank, double tokens, GroupShape group,
                        const ClusterSpec& cluster, const Calibration& calibration) {
  const LayerShape shape = rank.layer();
  if (!shape.sparse()) return 0;
  const double copies = tokens / rank.cp / rank.tp * as_double(shape.experts_per_token) *
                        rank.traits.expert_imbalance;
  const double bytes = copies * static_cast<double>(size_of(rank.dtype) * shape.hidden);
  double seconds = 0;
  if (rank.ep > 1) {
    const double once = bytes / as_double(shape.experts_per_token);  // one copy of every token
    const bool hierarchical =
        rank.traits.expert_dispatch == ExpertDispatch::hierarchical && group.nodes > 1;
    const double sent =
        rank.traits.merged_dispatch ? once * expert_copies(*rank.model.moe, group).ranks : bytes;
    seconds +=
        2 * (hierarchical
                 ? hierarchical_seconds(*rank.model.moe, once, group, cluster, calibration)
                 : collective_seconds(Collective::all_to_all, sent, group, cluster, calibration));
  }
  if (rank.etp > 1) {
    const GroupShape inner{rank.etp, 1};
    const double gathered = bytes * rank.etp;
    seconds +=
        collective_seconds(Collective::all_gather, gathered, inner, cluster, calibration) +
        collective_seconds(Collective::reduce_scatter, gathered, inner, cluster, calibration);
  }
  return seconds;
}

double embedding_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                            const ClusterSpec& cluster, const Calibration& calibration) {
  const double bytes =
      tokens / rank.cp * static_cast<double>(size_of(rank.dtype) * rank.model.hidden);
  return collective_seconds(
      rank.sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce, bytes, group,
      cluster, calibration);
}

double head_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                       const ClusterSpec& cluster, const Calibration& calibration) {
  if (rank.model.head == ModelHead::value) return 0;
  const double row = tokens / rank.cp * size_of(DType::fp32);
  return collective_seconds(Collective::all_reduce, row, group, cluster, calibration) +
         collective_seconds(Collective::all_reduce, 3 * row, group, cluster, calibration);
}

double head_backward_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                                const ClusterSpec& cluster, const Calibration& calibration) {
  if (rank.model.head == ModelHead::value) return 0;
  const double bytes =
      tokens / rank.cp * static_cast<double>(size_of(rank.dtype) * rank.model.hidden);
  return collective_seconds(Collective::all_reduce, bytes, group, cluster, calibration);
}

double sample_tp_seconds(const RankModel& rank, double sequences, GroupShape group,
                         const ClusterSpec& cluster, const Calibration& calibration) {
  const double bytes = sequences * static_cast<double>(rank.model.vocab * size_of(DType::fp32));
  return collective_seconds(Collective::all_gather, bytes, group, cluster, calibration);
}

double forward_flops_per_token(const ModelSpec& model, double sequence_tokens) {
  const double head = model.head == ModelHead::value ? 1.0 : static_cast<double>(model.vocab);
  double flops = 2.0 * head * static_cast<double>(model.hidden);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const RankModel whole{
        .model = model, .dtype = model.dtype, .kind = kind_of_layer(model, layer)};
    const LayerShape shape = whole.layer();
    for (const MatmulShape& matmul : layer_matmuls(whole, shape)) {
      flops += 2.0 * matmul.rows * matmul.n * matmul.k;
    }
    flops += 2.0 * as_double(shape.query_heads * (shape.key_dim + shape.value_dim)) *
             seen_keys(shape, sequence_tokens);
  }
  return flops;
}

}  // namespace tessera
