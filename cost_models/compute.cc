#include "cost_models/compute.h"

#include <algorithm>
#include <array>

namespace tessera {
namespace {

// Widths of one layer's GEMMs on this rank: y[., n] = x[., k] w[n, k]^T.
struct MatmulShape {
  double n = 0, k = 0;
};

std::array<MatmulShape, 4> layer_matmuls(const RankModel& rank) {
  const auto hidden = static_cast<double>(rank.model.hidden);
  const auto head = static_cast<double>(rank.model.head_dim);
  const double query = static_cast<double>(rank.query_heads()) * head;
  const double key_value = static_cast<double>(rank.kv_heads()) * head;
  const auto ffn = static_cast<double>(rank.ffn());
  return {{{query + 2 * key_value, hidden}, {hidden, query}, {2 * ffn, hidden}, {hidden, ffn}}};
}

double layer_weights(const RankModel& rank) {
  double elements = 0;
  for (const MatmulShape& shape : layer_matmuls(rank)) elements += shape.n * shape.k;
  return elements;
}

// Bytes that the elementwise operators of a layer read and write per token: two norms and two
// residual additions 10 h, RoPE on q and k 2 (n_q + n_kv) d / t, SiLU and product 5 f / t.
double elementwise_bytes(const RankModel& rank) {
  const double rope =
      2.0 * static_cast<double>((rank.query_heads() + rank.kv_heads()) * rank.model.head_dim);
  return static_cast<double>(size_of(rank.dtype)) * (10.0 * static_cast<double>(rank.model.hidden) +
                                                     rope + 5.0 * static_cast<double>(rank.ffn()));
}

double compute_factor(DType dtype, const Calibration& calibration) {
  return dtype == DType::fp32 ? calibration.fp32_factor.value : 1.0;
}

// Causal attention, forward: sequences of the batch's effective length (attention's work is linear
// in tokens x squared / tokens).
double attention_seconds(const RankModel& rank, const TokenBatch& batch,
                         const Calibration& calibration) {
  if (batch.tokens <= 0) return 0;
  const double length = batch.squared / batch.tokens;
  const double pairs = batch.tokens / length * static_cast<double>(rank.query_heads());
  const auto head = static_cast<double>(rank.model.head_dim);
  const double flops = 2.0 * head * pairs * length * length;
  const double bytes = 4.0 * static_cast<double>(size_of(rank.dtype)) * head * pairs * length;
  const double roofline =
      std::max(flops * compute_factor(rank.dtype, calibration) / calibration.matmul_flops.value,
               bytes / calibration.memory_bandwidth.value);
  const std::array<double, 2> point = {pairs, length};
  return (calibration.attention_floor_s.value + roofline) * calibration.prefill.at(point);
}

double decode_attention_seconds(const RankModel& rank, double sequences, double context,
                                const Calibration& calibration) {
  const auto kv_heads = static_cast<double>(rank.kv_heads());
  const double pairs = sequences * kv_heads;
  const double bytes =
      2.0 * static_cast<double>(size_of(rank.dtype) * rank.model.head_dim) * pairs * context;
  const double group = static_cast<double>(rank.query_heads()) / std::max(1.0, kv_heads);
  const std::array<double, 3> point = {group, pairs, context};
  return (calibration.attention_floor_s.value + bytes / calibration.memory_bandwidth.value) *
         calibration.decode.at(point);
}

double layer_matmul_seconds(const RankModel& rank, double rows, const Calibration& calibration) {
  double seconds = 0;
  for (const MatmulShape& shape : layer_matmuls(rank)) {
    seconds += matmul_seconds(rows, shape.n, shape.k, rank.dtype, calibration);
  }
  return seconds;
}

// A pass's elementwise kernels: their bytes, and a floor for each operator that is no GEMM.
double elementwise_seconds(double bytes, double operators, const Calibration& calibration) {
  return stream_seconds(bytes, calibration) +
         std::max(0.0, operators) * calibration.kernel_floor_s.value;
}

double head_operators(const TokenBatch& batch, int operators) {
  const double chunks = std::max(1.0, batch.tokens / static_cast<double>(kLogitRows));
  return chunks * operators;
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

Work layer_forward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration) {
  const double operators = kOperators.layer_forward;
  const double device =
      calibration.sustained.value * (layer_matmul_seconds(rank, batch.tokens, calibration) +
                                     attention_seconds(rank, batch, calibration)) +
      elementwise_seconds(batch.tokens * elementwise_bytes(rank), operators - 5, calibration);
  return {device, operators * calibration.dispatch_s.value};
}

Work layer_backward(const RankModel& rank, const TokenBatch& batch, Recompute recompute,
                    const Calibration& calibration) {
  double matmuls = 0;
  for (const MatmulShape& shape : layer_matmuls(rank)) {
    matmuls += matmul_seconds(batch.tokens, shape.k, shape.n, rank.dtype, calibration) +
               matmul_seconds(shape.n, shape.k, batch.tokens, rank.dtype, calibration);
  }
  const double attention =
      calibration.attention_backward.value * attention_seconds(rank, batch, calibration);
  // Each weight's gradient is added to its fp32 sum: read it, read and write the sum.
  const double accumulation =
      layer_weights(rank) * static_cast<double>(size_of(rank.dtype) + 2 * size_of(DType::fp32));
  const double operators = kOperators.layer_backward;
  Work work{calibration.sustained.value * (matmuls + attention) +
                elementwise_seconds(2 * batch.tokens * elementwise_bytes(rank) + accumulation,
                                    operators - 9, calibration),
            operators * calibration.backward_dispatch_s.value};
  if (recompute == Recompute::full) work += layer_forward(rank, batch, calibration);
  return work;
}

Work layer_decode(const RankModel& rank, double sequences, double context,
                  const Calibration& calibration) {
  const double operators = kOperators.layer_decode;
  const double device =
      layer_matmul_seconds(rank, sequences, calibration) +
      decode_attention_seconds(rank, sequences, context, calibration) +
      elementwise_seconds(sequences * elementwise_bytes(rank), operators - 5, calibration);
  return {device, operators * calibration.dispatch_s.value};
}

Work embedding_forward(const RankModel& rank, const TokenBatch& batch,
                       const Calibration& calibration) {
  const double bytes =
      2.0 * batch.tokens * static_cast<double>(size_of(rank.dtype) * rank.model.hidden);
  return {elementwise_seconds(bytes, kOperators.embedding, calibration),
          kOperators.embedding * calibration.dispatch_s.value};
}

Work head_forward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration) {
  const auto hidden = static_cast<double>(rank.model.hidden);
  const bool value = rank.model.head == ModelHead::value;
  const double columns = value ? 1.0 : static_cast<double>(rank.vocab());
  const double operators = head_operators(batch, kOperators.head_forward);
  // Logits written, then read for maximum, exponential, sum and entropy in fp32.
  const double bytes = value ? 0 : 6.0 * size_of(DType::fp32) * batch.tokens * columns;
  return {calibration.sustained.value *
                  matmul_seconds(batch.tokens, columns, hidden, rank.dtype, calibration) +
              elementwise_seconds(bytes, operators - 1, calibration),
          operators * calibration.dispatch_s.value};
}

Work head_backward(const RankModel& rank, const TokenBatch& batch, const Calibration& calibration) {
  const auto hidden = static_cast<double>(rank.model.hidden);
  const bool value = rank.model.head == ModelHead::value;
  const double columns = value ? 1.0 : static_cast<double>(rank.vocab());
  const double operators = head_operators(batch, kOperators.head_backward);
  const double bytes = value ? 0 : 6.0 * size_of(DType::fp32) * batch.tokens * columns;
  const double again =
      value ? 0 : matmul_seconds(batch.tokens, columns, hidden, rank.dtype, calibration);
  const double matmuls = again +
                         matmul_seconds(batch.tokens, hidden, columns, rank.dtype, calibration) +
                         matmul_seconds(columns, hidden, batch.tokens, rank.dtype, calibration);
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

double layer_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                        const ClusterSpec& cluster, const Calibration& calibration) {
  const double bytes = tokens * static_cast<double>(size_of(rank.dtype) * rank.model.hidden);
  return 2 * collective_seconds(Collective::all_reduce, bytes, group, cluster, calibration);
}

double embedding_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                            const ClusterSpec& cluster, const Calibration& calibration) {
  return layer_tp_seconds(rank, tokens, group, cluster, calibration) / 2;
}

double head_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                       const ClusterSpec& cluster, const Calibration& calibration) {
  if (rank.model.head == ModelHead::value) return 0;
  const double row = tokens * size_of(DType::fp32);
  return collective_seconds(Collective::all_reduce, row, group, cluster, calibration) +
         collective_seconds(Collective::all_reduce, 3 * row, group, cluster, calibration);
}

double head_backward_tp_seconds(const RankModel& rank, double tokens, GroupShape group,
                                const ClusterSpec& cluster, const Calibration& calibration) {
  if (rank.model.head == ModelHead::value) return 0;
  const double bytes = tokens * static_cast<double>(size_of(rank.dtype) * rank.model.hidden);
  return collective_seconds(Collective::all_reduce, bytes, group, cluster, calibration);
}

double sample_tp_seconds(const RankModel& rank, double sequences, GroupShape group,
                         const ClusterSpec& cluster, const Calibration& calibration) {
  const double bytes = sequences * static_cast<double>(rank.model.vocab * size_of(DType::fp32));
  return collective_seconds(Collective::all_gather, bytes, group, cluster, calibration);
}

double forward_flops_per_token(const ModelSpec& model, double sequence_tokens) {
  const RankModel whole{model, 1, model.dtype};
  const double head = model.head == ModelHead::value ? 1.0 : static_cast<double>(model.vocab);
  const double parameters = static_cast<double>(model.layers) * layer_weights(whole) +
                            head * static_cast<double>(model.hidden);
  return 2.0 * parameters +
         2.0 * static_cast<double>(model.layers * model.query_heads * model.head_dim) *
             sequence_tokens;
}

}  // namespace tessera
