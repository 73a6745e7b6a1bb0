#include "cost_models/layer_operators.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cost_models/memory.h"
#include "cost_models/rank_model.h"

namespace tessera {
namespace {

// DeepSeek-V4's: queries from compressed ones, one head of keys, groups of heads each by a matrix
// of its own and their outputs together; the keys of entries and as many weights.
void add_compressed(const RankModel& rank, const LayerShape& shape, LayerMatmuls& matmuls) {
  const double hidden = as_double(shape.hidden), key = as_double(shape.key_dim);
  const double queries = as_double(rank.query_heads()) * key;
  const double groups = as_double(rank.largest(shape.output_groups));
  matmuls.add(as_double(shape.query_rank), hidden);
  matmuls.add(queries, as_double(shape.query_rank));
  matmuls.add(key, hidden);
  matmuls.add(as_double(shape.output_rank), queries / groups, groups, groups);
  matmuls.add(hidden, groups * as_double(shape.output_rank));
  if (shape.entry_rate > 0) matmuls.add_joined(2 * as_double(shape.entry_keys) * key, hidden, 2);
}

void add_attention(const RankModel& rank, const LayerShape& shape, LayerMatmuls& matmuls) {
  if (!shape.mixes) return;
  const double hidden = as_double(shape.hidden);
  if (shape.state_space()) {  // gate and input, two vectors of every group, step of every head
    const double inner = as_double(rank.largest(shape.state_inner()));
    const double vectors = as_double(rank.largest(shape.state_vectors()));
    matmuls.add(2 * inner + 2 * vectors + as_double(rank.largest(shape.state_heads)), hidden);
    matmuls.add(hidden, inner);
    return;
  }
  const double q = as_double(rank.query_heads());
  const double key = as_double(shape.key_dim), value = as_double(shape.value_dim);
  if (shape.compressed()) return add_compressed(rank, shape, matmuls);
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
  if (shape.linear()) {  // queries, keys, values, output gate; a net's decay and step of every head
    const double keys = as_double(rank.largest(shape.linear_keys));
    const double values = as_double(rank.largest(shape.linear_values));
    const double heads = shape.lightning() ? 0.0 : as_double(rank.largest(shape.linear_heads));
    matmuls.add(2 * keys + 2 * values + 2 * heads, hidden);
    matmuls.add(hidden, values);
    return;
  }
  const double key_value = as_double(rank.kv_heads()) * (key + value);
  matmuls.add_joined((shape.gated_output ? 2 : 1) * q * key + key_value, hidden, 3);
  matmuls.add(hidden, q * value);
}

// Queries of its heads from the compressed ones; its key (of DeepSeek-V4's the keys and weights of
// which its entries are made) and its heads' weights. Whole on every rank; nothing flows back
// (transformers 5.17, DeepseekV32Indexer).
void add_indexer(const LayerShape& shape, LayerMatmuls& matmuls) {
  if (shape.index_heads == 0) return;
  const std::size_t first = matmuls.count;
  matmuls.add(as_double(shape.index_heads * shape.index_dim), as_double(shape.query_rank));
  const std::int64_t keys = shape.compressed() ? 2 * shape.entry_keys : 1;
  matmuls.add(as_double(keys * shape.index_dim + shape.index_heads), as_double(shape.hidden));
  for (std::size_t i = first; i < matmuls.count; ++i) matmuls.shapes[i].backward = false;
}

// A grouped GEMM: one launch that reads every group's matrix as one product of all their columns
// would; groups without a row are not read. Kernels for groups work in tiles of 128 rows, at a rate
// of their own (aiconfigurator-core 1.3's MoE tables, 16 bit, 32 to 512 tokens on H100, H200, B200:
// this is 0.9 to 1.1 of them where a rank holds whole experts; group by group it was 1.2 to 6).
Seconds grouped_seconds(const RankModel& rank, const MatmulShape& shape, double tokens, double n,
                        double k, bool gradient, const Calibration& calibration) {
  constexpr double kTile = 128;
  const DType dtype = rank.dtype;
  const double rows = tokens * shape.rows;
  if (shape.groups <= 1) {
    return gradient ? matmul_seconds(n, k, rows, dtype, calibration)
                    : matmul_seconds(rows, n, k, dtype, calibration);
  }
  const double touched = shape.groups * (1 - std::pow(1 - 1 / shape.groups, rows));
  const double each = rows / touched;
  const Seconds together = gradient ? matmul_seconds(touched * n, k, each, dtype, calibration)
                                    : matmul_seconds(each, touched * n, k, dtype, calibration);
  const Flops flops{2 * std::ceil(each / kTile) * kTile * n * k *
                    compute_factor(dtype, calibration)};
  const Seconds tiles =
      flops / FlopsPerSecond{calibration.grouped_rate.value * calibration.matmul_flops.value};
  const GroupedReads& reads = rank.traits.experts.grouped;
  const Traffic weights{static_cast<double>(size_of(dtype)) * touched * n * k};
  return std::max(
      {together, Seconds{calibration.matmul_floor_s.value} + touched * tiles,
       reads.start + weights / BytesPerSecond{reads.rate * calibration.memory_bandwidth.value}});
}

// Adapters beside a matrix.
int adapters_of(const RankModel& rank, const MatmulShape& matmul) {
  if (rank.adapter_rank == 0 || matmul.groups > 1) return 0;
  return rank.traits.adapters.fused ? 1 : matmul.modules;
}

// x A^T and the product with B^T of each of them, forward; `gradient`: those of A and B.
Seconds adapter_seconds(const RankModel& rank, const MatmulShape& matmul, double tokens,
                        bool gradient, const Calibration& calibration) {
  const double adapters = adapters_of(rank, matmul);
  if (adapters == 0) return {};
  const double r = as_double(rank.adapter_rank);
  const double inputs = rank.traits.adapters.joined ? 1 : adapters;  // products with A
  return inputs * grouped_seconds(rank, matmul, tokens, adapters / inputs * r, matmul.k, gradient,
                                  calibration) +
         adapters *
             grouped_seconds(rank, matmul, tokens, matmul.n / adapters, r, gradient, calibration);
}

}  // namespace

LayerMatmuls layer_matmuls(const RankModel& rank, const LayerShape& shape) {
  LayerMatmuls matmuls;
  add_attention(rank, shape, matmuls);
  add_indexer(shape, matmuls);
  const double hidden = as_double(shape.hidden), parts = as_double(shape.up_parts());
  if (shape.ffn > 0) {
    const double columns = as_double(rank.largest(shape.ffn));
    matmuls.add_joined(parts * columns, hidden, static_cast<int>(shape.up_parts()));
    matmuls.add(hidden, columns);
  }
  if (shape.sparse()) {
    const double columns = as_double((shape.expert_ffn + rank.etp - 1) / rank.etp);
    const double held = as_double((shape.experts + rank.ep - 1) / rank.ep);
    const double rows =
        as_double(shape.experts_per_token) * rank.etp / rank.tp * rank.traits.experts.imbalance;
    const double width = as_double(shape.expert_width), own = 1.0 / rank.stream_parts();
    matmuls.add(as_double(shape.experts), hidden, own);
    if (shape.latent_experts()) {  // there and back, whole on every rank
      matmuls.add(width, hidden, own);
      matmuls.add(hidden, width, own);
    }
    matmuls.add(parts * columns, width, rows, held);
    matmuls.add(width, columns, rows, held);
  }
  if (shape.streams > 0) {  // what weighs, deals out and mixes them, twice
    matmuls.add(as_double(shape.stream_weights), as_double(shape.stream()),
                2.0 / rank.stream_parts());
  }
  return matmuls;
}

double layer_weights(const LayerMatmuls& matmuls) {
  double elements = 0;
  for (const MatmulShape& shape : matmuls) elements += shape.groups * shape.n * shape.k;
  return elements;
}

double compute_factor(DType dtype, const Calibration& calibration) {
  return dtype == DType::fp32 ? calibration.fp32_factor.value : 1.0;
}

Seconds matmul_seconds(double m, double n, double k, DType dtype, const Calibration& calibration) {
  const Flops flops{2.0 * m * n * k * compute_factor(dtype, calibration)};
  const Traffic bytes{static_cast<double>(size_of(dtype)) * (m * k + n * k + m * n)};
  const Seconds roofline = std::max(flops / FlopsPerSecond{calibration.matmul_flops.value},
                                    bytes / BytesPerSecond{calibration.memory_bandwidth.value});
  const std::array<double, 3> point = {m, n, k};
  return (Seconds{calibration.matmul_floor_s.value} + roofline) * calibration.matmul.at(point);
}

Seconds layer_matmul_seconds(const RankModel& rank, const LayerShape& shape, double tokens,
                             const Calibration& calibration) {
  Seconds seconds;
  for (const MatmulShape& matmul : layer_matmuls(rank, shape)) {
    seconds += grouped_seconds(rank, matmul, tokens, matmul.n, matmul.k, false, calibration) +
               adapter_seconds(rank, matmul, tokens, false, calibration);
  }
  return seconds / rank.traits.kernels.product_speed;
}

Seconds matmul_backward_seconds(const RankModel& rank, const MatmulShape& matmul, double tokens,
                                const Calibration& calibration) {
  const double speed = rank.traits.kernels.product_speed;
  const Seconds input =
      grouped_seconds(rank, matmul, tokens, matmul.k, matmul.n, false, calibration) / speed;
  if (rank.adapter_rank > 0) {
    return input + adapter_seconds(rank, matmul, tokens, false, calibration) +
           adapter_seconds(rank, matmul, tokens, true, calibration);
  }
  return input +
         grouped_seconds(rank, matmul, tokens, matmul.n, matmul.k, true, calibration) / speed;
}

AdapterSums adapter_sums(const RankModel& rank, const LayerMatmuls& matmuls, bool backward) {
  const Traffic element{static_cast<double>(size_of(rank.dtype))};
  AdapterSums sums;
  for (const MatmulShape& matmul : matmuls) {
    const double adapters = adapters_of(rank, matmul);
    if (adapters == 0) continue;
    if (rank.traits.adapters.joined) {  // outputs are read once more by the product with B
      sums.bytes += element * matmul.rows * (backward ? 3 * matmul.k : matmul.n);
      sums.kernels += backward ? adapters + 1 : 0;
      sums.operators += backward ? 3 * adapters + 3 : adapters + 1;
      continue;
    }
    sums.bytes +=
        element * matmul.rows * (backward ? 2 * matmul.n + 3 * adapters * matmul.k : 3 * matmul.n);
    sums.kernels += (backward ? 2 : 1) * adapters;
    sums.operators += (backward ? 6 : 3) * adapters;
  }
  return sums;
}

Seconds projected_again_seconds(const RankModel& rank, const LayerShape& shape, double tokens,
                                const Calibration& calibration) {
  if (!shape.latent()) return {};
  const double q = as_double(rank.query_heads());
  Seconds seconds =
      matmul_seconds(tokens, q * as_double(shape.key_dim - shape.rope_dim + shape.value_dim),
                     as_double(shape.kv_rank), rank.dtype, calibration);
  if (shape.query_rank > 0) {
    seconds += matmul_seconds(tokens, q * as_double(shape.key_dim), as_double(shape.query_rank),
                              rank.dtype, calibration);
  }
  return seconds / rank.traits.kernels.product_speed;
}

Traffic cast_bytes(const RankModel& rank, const LayerShape& shape, bool backward) {
  if (rank.traits.kernels.product_speed <= 1) return {};
  constexpr double kRead = 2, kWritten = 2;  // 16 bit; 8 bit and transposed
  double elements = 0;
  for (const MatmulShape& matmul : layer_matmuls(rank, shape)) {
    elements += matmul.rows * (backward ? matmul.n : matmul.k);
  }
  return Traffic{(kRead + kWritten) * elements};
}

namespace {

double layer_flops_per_token(const ModelSpec& model, LayerKind kind, double sequence_tokens) {
  RankModel whole{{}, model, model.dtype};
  whole.kind = kind;
  const LayerShape shape = whole.layer();
  double flops = stream_flops_per_token(shape);
  for (const MatmulShape& matmul : layer_matmuls(whole, shape)) {
    flops += 2.0 * matmul.rows * matmul.n * matmul.k;
  }
  if (shape.linear()) return flops + linear_flops_per_token(shape);
  if (shape.state_space()) return flops + state_space_flops_per_token(shape);
  if (!shape.mixes) return flops;
  return flops + index_flops_per_pair(shape) * index_keys(shape, sequence_tokens) / 2 +
         2.0 * as_double(shape.query_heads * (shape.key_dim + shape.value_dim)) *
             seen_keys(shape, sequence_tokens);
}

}  // namespace

double forward_flops_per_token(const ModelSpec& model, double sequence_tokens) {
  const double head = model.head == ModelHead::value ? 1.0 : static_cast<double>(model.vocab);
  const double hidden = as_double(model.hidden), further = as_double(run_mtp_layers(model));
  double flops = 2.0 * hidden * (head + further * (head + 2.0 * hidden));
  const LayerCounts counts = run_layers(model, {0, model.layers}, true);
  for (std::size_t kind = 0; kind < counts.size(); ++kind) {
    if (counts[kind] == 0) continue;
    flops += as_double(counts[kind]) *
             layer_flops_per_token(model, static_cast<LayerKind>(kind), sequence_tokens);
  }
  if (model.hyper) {  // the last one of the streams
    flops += 2.0 * static_cast<double>(model.hyper->streams * stream_width(model));
  }
  return flops;
}

}  // namespace tessera
