#include "cost_models/layer_operators.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera {

double seen_keys(const LayerShape& shape, double length) {
  const double window = as_double(shape.window);
  if (window <= 0 || length <= window) return length / 2;
  return shape.full_share * length / 2 +
         (1 - shape.full_share) * window * (1 - window / (2 * length));
}

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

}  // namespace tessera
