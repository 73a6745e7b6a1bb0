#include "cost_models/layer_operators.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cost_models/rank_model.h"

namespace tessera {

namespace {

// Of a query, in a sequence of `length` tokens cut into chunks.
double seen_in_chunk(double chunk, double length) {
  const double whole = std::floor(length / chunk), rest = length - whole * chunk;
  return (whole * chunk * chunk + rest * rest) / (2 * length);
}

}  // namespace

namespace {

// The `most` last or highest of all keys before it, per query.
double at_most(double most, double length) {
  return length <= most ? length / 2 : most * (1 - most / (2 * length));
}

// Entries that a query of DeepSeek-V4 sees on average, in a sequence of `length` tokens.
double seen_entries(const LayerShape& shape, double length) {
  if (shape.entry_rate == 0) return 0;
  const double entries = length / as_double(shape.entry_rate);
  return shape.chosen > 0 ? at_most(as_double(shape.chosen), entries) : entries / 2;
}

}  // namespace

double seen_keys(const LayerShape& shape, double length) {
  if (shape.compressed()) {
    return at_most(as_double(shape.key_window), length) + seen_entries(shape, length);
  }
  const double window = as_double(shape.chosen > 0 ? shape.chosen : shape.window);
  if (window <= 0 || length <= window) return length / 2;
  const double seen =
      shape.chunked ? seen_in_chunk(window, length) : window * (1 - window / (2 * length));
  return shape.full_share * length / 2 + (1 - shape.full_share) * seen;
}

double index_flops_per_pair(const LayerShape& shape) {
  return 2 * as_double(shape.index_heads * (shape.index_dim + 1));
}

double index_keys(const LayerShape& shape, double context) {
  if (!shape.compressed()) return context;
  return shape.entry_rate > 0 ? context / as_double(shape.entry_rate) : 0;
}

double stream_flops_per_token(const LayerShape& shape) {
  return 2 * 2 * as_double(shape.streams * shape.stream());
}

namespace {

// The device's time per FLOP at this head dimension over that at 128; in between by its logarithm.
double narrow_factor(const LayerShape& shape, const Calibration& calibration) {
  const double width = as_double(shape.key_dim + shape.value_dim) / 2;
  if (width >= 128) return 1;
  const double halvings = std::min(std::log2(128 / width), 1.0);
  return std::pow(calibration.narrow_heads.value, halvings);
}

// Time of these kernels over that of the tables', which hold the device's best: 2 over cuDNN's on
// H200 311 / 614 forward, 282 / 533 forward and backward (torch 2.11, 8k); 1 over 2 on A100 1.7 to
// 3.0 (Dao 2023, arXiv:2307.08691, sec. 4.1).
double older_factor(AttentionKernels kernels, const Calibration& calibration) {
  constexpr double kSecondOverBest = 1.9, kFirstOverSecond = 1.8, kHopperFlops = 700e12;
  if (kernels == AttentionKernels::best) return 1;
  const double second = calibration.matmul_flops.value > kHopperFlops ? kSecondOverBest : 1.0;
  return kernels == AttentionKernels::flash_1 ? second * kFirstOverSecond : second;
}

// Flash attention over the batch's tokens in sequences of this length.
Seconds flash_seconds(const RankModel& rank, const LayerShape& shape, double tokens, double length,
                      const Calibration& calibration) {
  const double pairs = tokens / length * static_cast<double>(rank.query_heads()) / rank.cp;
  const double width = as_double(shape.key_dim + shape.value_dim);
  const Flops flops{width * pairs * length * length * compute_factor(rank.dtype, calibration)};
  const Traffic bytes{2.0 * size_of(rank.dtype) * width * pairs * length};
  const Seconds roofline = std::max(flops / FlopsPerSecond{calibration.matmul_flops.value},
                                    bytes / BytesPerSecond{calibration.memory_bandwidth.value});
  const std::array<double, 2> point = {pairs, length};
  const AttentionKernels kernels = rank.traits.kernels.attention;
  // Older kernels are as quick with narrow heads, as on L40S, whose best are of that kind.
  const double narrow = kernels == AttentionKernels::best ? narrow_factor(shape, calibration) : 1.0;
  return (Seconds{calibration.attention_floor_s.value} + roofline) * calibration.prefill.at(point) *
         narrow * older_factor(kernels, calibration);
}

// Scores of a window are computed in tiles of 128 keys, of which the first and the last are partly
// masked: a layer of window w takes as long as a causal one over sequences of 2 (w + 128) tokens
// (0.85 to 1.13 of it for w = 128 on H100, B200 and L40S, head dimension 64 and 128, 1k to 8k
// tokens, kernels of TensorRT-LLM and vLLM: aiconfigurator-core 1.3's tables, Apache-2.0).
double windowed_length(double window, double length) {
  constexpr double kTile = 128;
  return std::min(length, 2 * (window + kTile));
}

// Scores of the indexer for every pair before the query, one of each written in fp32 and read once.
Seconds index_seconds(const RankModel& rank, const LayerShape& shape, double tokens, double length,
                      const Calibration& calibration) {
  if (shape.index_heads == 0) return {};
  const double pairs = tokens / rank.cp * index_keys(shape, length) / 2;
  const Flops flops{pairs * index_flops_per_pair(shape) * compute_factor(rank.dtype, calibration)};
  return Seconds{calibration.attention_floor_s.value} +
         flops / FlopsPerSecond{calibration.matmul_flops.value} +
         stream_seconds(Traffic{2.0 * size_of(DType::fp32) * pairs}, calibration);
}

Seconds unfused_seconds(const RankModel& rank, const LayerShape& shape, double tokens,
                        double length, const Calibration& calibration) {
  const double pairs = tokens / length * static_cast<double>(rank.query_heads()) / rank.cp;
  const double width = as_double(shape.key_dim + shape.value_dim);
  const double element = size_of(rank.dtype);
  const Flops flops{2.0 * width * pairs * length * length *
                    compute_factor(rank.dtype, calibration)};
  const double scores = pairs * length * length * element;
  const double passes = rank.traits.kernels.dropout ? 7.0 : 5.0;
  const Traffic bytes{2.0 * element * width * pairs * length + passes * scores};
  return flops / FlopsPerSecond{calibration.matmul_flops.value} +
         bytes / BytesPerSecond{calibration.memory_bandwidth.value};
}

// A gated delta net, or lightning attention, reads queries, keys and values and writes its output;
// products at the rate of matrix products.
Seconds linear_seconds(const RankModel& rank, const LayerShape& shape, double tokens,
                       const Calibration& calibration) {
  const double heads = as_double(rank.largest(shape.linear_heads));
  const Flops flops{tokens / rank.cp * heads / as_double(shape.linear_heads) *
                    linear_flops_per_token(shape) * compute_factor(rank.dtype, calibration)};
  const double width = 2 * as_double(shape.linear_key_dim + shape.linear_value_dim);
  const Traffic bytes{size_of(rank.dtype) * tokens / rank.cp * heads * width};
  return Seconds{calibration.attention_floor_s.value} +
         std::max(flops / FlopsPerSecond{calibration.matmul_flops.value},
                  bytes / BytesPerSecond{calibration.memory_bandwidth.value});
}

// A state-space mixer reads its input, both vectors of every group and the steps, and writes its
// output; products at the rate of matrix products.
Seconds state_space_seconds(const RankModel& rank, const LayerShape& shape, double tokens,
                            const Calibration& calibration) {
  const double heads = as_double(rank.largest(shape.state_heads));
  const double own = heads / as_double(shape.state_heads);
  const Flops flops{tokens / rank.cp * own * state_space_flops_per_token(shape) *
                    compute_factor(rank.dtype, calibration)};
  const double width = own * as_double(2 * shape.state_inner() + 2 * shape.state_vectors());
  const Traffic bytes{size_of(rank.dtype) * tokens / rank.cp * width};
  return Seconds{calibration.attention_floor_s.value} +
         std::max(flops / FlopsPerSecond{calibration.matmul_flops.value},
                  bytes / BytesPerSecond{calibration.memory_bandwidth.value});
}

// One of DeepSeek-V4's: the window's keys and the entries, which are their own values; every head
// reads them.
double read_keys(const LayerShape& shape, double context) {
  const double window = std::min(context, as_double(shape.key_window));
  if (shape.entry_rate == 0) return window;
  const double entries = index_keys(shape, context);
  return window + (shape.chosen > 0 ? std::min(entries, as_double(shape.chosen)) : entries);
}

// Scores of an indexer in one step, and its keys, which are read.
Seconds decoded_index_seconds(const RankModel& rank, const LayerShape& shape, double pairs,
                              const Calibration& calibration) {
  return Seconds{calibration.attention_floor_s.value} +
         std::max(
             Traffic{size_of(rank.dtype) * as_double(shape.index_dim) * pairs} /
                 BytesPerSecond{calibration.memory_bandwidth.value},
             Flops{index_flops_per_pair(shape) * pairs * compute_factor(rank.dtype, calibration)} /
                 FlopsPerSecond{calibration.matmul_flops.value});
}

// Attention in which all heads read one row of so many elements of each token, and
// `multiplied` elements of it take part in a head's products.
Seconds shared_row_seconds(const RankModel& rank, double elements, double multiplied, double rows,
                           const Calibration& calibration) {
  const Traffic bytes{size_of(rank.dtype) * elements * rows};
  const Flops flops{2.0 * as_double(rank.query_heads()) * multiplied * rows};
  return Seconds{calibration.attention_floor_s.value} +
         std::max(bytes / BytesPerSecond{calibration.memory_bandwidth.value},
                  flops * compute_factor(rank.dtype, calibration) /
                      FlopsPerSecond{calibration.matmul_flops.value});
}

// Keys that a decoded token reads at this context: a window's, or of its chunk, beyond the first,
// half on average.
double seen_back(const LayerShape& shape, double context) {
  const double window = as_double(shape.window);
  if (context <= window) return context;
  return shape.chunked ? window / 2 : window;
}

}  // namespace

double state_space_flops_per_token(const LayerShape& shape) {
  const double chunk = as_double(shape.state_chunk);
  const double within = chunk * as_double(shape.state_vectors() + shape.state_inner());
  const double states = 2 * as_double(shape.state_inner() * shape.state_size);
  return 2 * (within + states);
}

double linear_flops_per_token(const LayerShape& shape) {
  constexpr double kChunk = 64;  // flash-linear-attention's and transformers' chunk_size
  const double key = as_double(shape.linear_key_dim), value = as_double(shape.linear_value_dim);
  if (shape.lightning()) {
    const double block = as_double(shape.linear_block) * (key + value);
    return 2 * as_double(shape.linear_heads) * (block + 2 * key * value);
  }
  const double within = 2 * kChunk * key + kChunk * value;  // scores twice, and what they weight
  const double solved = kChunk * (key + value) / 2;         // a triangle for each right-hand side
  const double states = 3 * key * value;                    // read twice, written once
  return 2 * as_double(shape.linear_heads) * (within + solved + states);
}

Seconds attention_seconds(const RankModel& rank, const LayerShape& shape, const TokenBatch& batch,
                          const Calibration& calibration) {
  if (batch.tokens <= 0 || !shape.mixes) return {};
  if (shape.state_space()) return state_space_seconds(rank, shape, batch.tokens, calibration);
  if (shape.linear()) return linear_seconds(rank, shape, batch.tokens, calibration);
  const double length = batch.squared / batch.tokens;
  if (!rank.traits.kernels.flash_attention) {
    return unfused_seconds(rank, shape, batch.tokens, length, calibration);
  }
  const auto over = [&](double tokens) {
    return flash_seconds(rank, shape, batch.tokens, tokens, calibration);
  };
  if (shape.compressed()) {  // one kernel over the window's tiles and the entries
    return index_seconds(rank, shape, batch.tokens, length, calibration) +
           over(windowed_length(as_double(shape.key_window), length) +
                2 * seen_entries(shape, length));
  }
  if (shape.chosen > 0) {
    return index_seconds(rank, shape, batch.tokens, length, calibration) +
           over(2 * seen_keys(shape, length));
  }
  const double window = as_double(shape.window);
  if (window <= 0 || length <= window) return over(length);
  const double windowed =
      shape.chunked ? 2 * seen_in_chunk(window, length) : windowed_length(window, length);
  return shape.full_share * over(length) + (1 - shape.full_share) * over(windowed);
}

Seconds decode_attention_seconds(const RankModel& rank, const LayerShape& shape, double sequences,
                                 CacheReads reads, const Calibration& calibration) {
  double context = reads.context;
  if (!shape.mixes) return {};
  if (shape.linear() || shape.state_space()) {  // the state is read and written
    const Traffic bytes{2.0 * sequences * recurrent_state_bytes(rank, shape, rank.dtype)};
    return Seconds{calibration.attention_floor_s.value} +
           bytes / BytesPerSecond{calibration.memory_bandwidth.value};
  }
  if (shape.window > 0) {
    context = shape.full_share * context + (1 - shape.full_share) * seen_back(shape, context);
  }
  Seconds index;
  if (shape.index_heads > 0) {
    const double pairs = sequences * index_keys(shape, context);
    index = decoded_index_seconds(rank, shape, pairs, calibration);
  }
  if (shape.compressed()) {
    const double key = as_double(shape.key_dim);
    return index + shared_row_seconds(rank, key, 2 * key, sequences * read_keys(shape, context),
                                      calibration);
  }
  if (shape.chosen > 0) context = std::min(context, as_double(shape.chosen));
  if (shape.latent()) {
    const double latent = as_double(shape.kv_rank + shape.rope_dim);
    return index + shared_row_seconds(rank, latent, latent + as_double(shape.kv_rank),
                                      sequences * context, calibration);
  }
  const auto kv_heads = static_cast<double>(rank.kv_heads());
  const double pairs = sequences * kv_heads;
  const Traffic bytes{static_cast<double>(size_of(rank.dtype)) *
                      as_double(shape.key_dim + shape.value_dim) * pairs * context};
  const DecodeTraits& decode = rank.traits.decode;
  const double spared = decode.shared_reads * std::min(1.0, reads.shared / context);
  const double group = static_cast<double>(rank.query_heads()) / std::max(1.0, kv_heads);
  const std::array<double, 3> point = {group, pairs, context};
  return (decode.attention_start * Seconds{calibration.attention_floor_s.value} +
          (1 - spared) * (bytes / BytesPerSecond{calibration.memory_bandwidth.value})) *
         calibration.decode.at(point);
}

}  // namespace tessera
