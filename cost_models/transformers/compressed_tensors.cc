// Oracle: tests/cost_models/activation_oracle.py, tensor by tensor.
#include "cost_models/transformers/compressed_tensors.h"

namespace tessera {
namespace {

constexpr std::int64_t kWide = 4;  // bytes of fp32

// A product in 16 bit casts its fp32 weight.
std::int64_t cast_weight(std::int64_t elements, std::int64_t element) {
  return element < kWide ? element * elements : 0;
}

// An RMS norm: its input in fp32, 1 / rms, what the weight multiplies.
std::int64_t norm(std::int64_t width, std::int64_t element) {
  return (kWide + element) * width + kWide;
}

// DeepseekV4CSACompressor (two keys of each token) or DeepseekV4HCACompressor: weights in fp32 and
// as they multiply, the keys; the entries' norm and rotary tables, all in fp32.
std::int64_t kept_by_entries(const ModelSpec& model, std::int64_t rate, std::int64_t keys,
                             std::int64_t element) {
  const std::int64_t rotary = 2 * model.compressed->rope_dim;
  return (2 * element + kWide) * keys * model.head_dim +
         kWide * (2 * model.head_dim + 1 + rotary) / rate;
}

}  // namespace

// Norms of compressed queries, of every head (without weights) and of the one key; rotary tables of
// queries, key and output; queries, keys, output and its log-sum-exp, where the keys are the values
// and lie in fp32 before the entries; the output by groups, and what these are projected to.
SavedBytes saved_by_compressed(const ModelSpec& model, LayerEntries entries, std::int64_t element) {
  const CompressedAttentionSpec& attention = *model.compressed;
  const std::int64_t heads = model.query_heads, d = model.head_dim, queries = heads * d;
  std::int64_t bytes = norm(attention.query_rank, element) + element * attention.query_rank;
  bytes += (kWide + element) * (queries + heads);
  bytes += norm(d, element);
  bytes += element * 6 * attention.rope_dim;
  bytes += 2 * element * queries + kWide * heads;
  bytes += element * (queries + attention.groups * attention.group_rank);
  if (entries == LayerEntries::none) return {bytes + element * d, 0};
  const bool chosen = entries == LayerEntries::chosen;
  const std::int64_t rate = chosen ? attention.chosen_rate : attention.all_rate;
  bytes += kWide * (d + d / rate) + kept_by_entries(model, rate, chosen ? 2 : 1, element);
  return {bytes, 0};
}

// DeepseekV4HyperConnection: all streams in fp32, their 1 / rms, what the product reads and gives,
// gates, and the mixing matrix, which is divided twice in each of its steps but the first; streams
// and output that the gates multiply.
SavedBytes saved_by_streams(const ModelSpec& model, std::int64_t element) {
  const HyperConnectionSpec& hyper = *model.hyper;
  const std::int64_t n = hyper.streams, stream = stream_width(model);
  const std::int64_t divisions = 2 * hyper.iterations - 1;
  const std::int64_t wide = stream + 1 + n * n * (divisions + 1) + n * divisions;
  const std::int64_t narrow = 2 * stream + hyper.weights() + model.hidden + 4 * n + n * n;
  return {kWide * wide + element * narrow, cast_weight(hyper.weights() * stream, element)};
}

// DeepseekV4HyperHead.
SavedBytes saved_by_last_streams(const ModelSpec& model, std::int64_t element) {
  const std::int64_t n = model.hyper->streams, stream = stream_width(model);
  const std::int64_t scale = element < kWide ? kWide : 0;
  return {kWide * (stream + 1 + 2 * n) + element * (2 * stream + n),
          cast_weight(n * stream, element) + scale};
}

}  // namespace tessera
