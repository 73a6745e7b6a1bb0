#include "executor/rollout/sample_rows.h"
#include "executor/threads/shared_work.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>

#include "cost_models/documents/check.h"
#include "executor/rl/draw_weight.h"

namespace tessera {
namespace {

using torch::Tensor;

/// Elements of a [draws, vocabulary] block of fp64: several such blocks exist at a time.
constexpr std::int64_t kBlockElements = std::int64_t{1} << 23;

/// Sets the weights that top-k and top-p exclude to 0.
Tensor most_likely(const Tensor& logits, const Tensor& weights, const SamplingOptions& options) {
  const std::int64_t vocabulary = logits.size(1);
  const bool all_k = options.top_k <= 0 || options.top_k >= vocabulary;
  if (all_k && options.top_p >= 1) return weights;
  const Tensor order = std::get<1>(logits.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true));
  Tensor sorted = weights.gather(1, order);
  if (!all_k) sorted.slice(1, options.top_k).zero_();
  if (options.top_p < 1) {
    const Tensor limit = sorted.sum(1, true).to(torch::kDouble) * options.top_p;
    const Tensor before = sorted.cumsum(1) - sorted;
    sorted = sorted * (before.eq(0) | before.to(torch::kDouble).lt(limit)).to(torch::kLong);
  }
  return torch::zeros_like(weights).scatter(1, order, sorted);
}

/// draw_weight (draw_weight.h) by tensor operations, which round each result once as it does.
Tensor draw_weights(const Tensor& logits, const Tensor& highest, float scale) {
  const Tensor y = ((logits - highest) * scale).clamp_min(-42.0F);
  const Tensor n = (y + 12582952.0F) - 12582952.0F;
  const Tensor r = y - n;
  Tensor p = torch::full_like(r, 1.32646994e-3F);
  for (const float term : {9.67153441e-3F, 5.55073395e-2F, 2.40222424e-1F, 6.93147004e-1F, 1.0F}) {
    p = p * r + term;
  }
  const Tensor power = (n.to(torch::kInt) + (40 + 127)).bitwise_left_shift(23).view(torch::kFloat);
  return (p * power).to(torch::kLong);
}

/// restrict_weights of sampling.cc.
Tensor restricted(const Tensor& logits, const Tensor& weights, const SamplingOptions& options) {
  const Tensor kept = most_likely(logits, weights, options);
  const std::int64_t least = least_weight(options);
  return least > 0 ? kept.masked_fill(kept.lt(least), 0) : kept;
}

DrawnRows draw_block(const Tensor& x, const Tensor& uniforms, const SamplingOptions& options) {
  const bool greedy = options.temperature == 0;
  const double temperature = greedy ? 1 : options.temperature;
  const Tensor top = x.amax(1, true);
  const Tensor good = top.squeeze(1).isfinite();
  const Tensor weights = draw_weights(x, top, exponent_scale(temperature));
  Tensor token;
  if (greedy) {
    const Tensor ids = torch::arange(x.size(1), x.options().dtype(torch::kLong)).expand_as(x);
    token = ids.masked_fill(x.ne(top), x.size(1)).amin(1);
  } else {
    const Tensor running = restricted(x, weights, options).cumsum(1);
    const Tensor total = running.select(1, -1);
    const Tensor target =
        torch::minimum((uniforms * total.to(torch::kDouble)).to(torch::kLong), total - 1);
    token = running.le(target.unsqueeze(1)).sum(1);
  }
  token = token.clamp(0, x.size(1) - 1);
  const Tensor gap = x.gather(1, token.unsqueeze(1)).squeeze(1).to(torch::kDouble) -
                     top.squeeze(1).to(torch::kDouble);
  const Tensor normalizer = (weights.sum(1).to(torch::kDouble) / kWeightScale).log();
  return {token.masked_fill(~good, -1).to(torch::kInt),
          (gap / temperature - normalizer).to(torch::kFloat)};
}

}  // namespace

DrawnRows draw_rows(const Tensor& logits, const Tensor& rows, const Tensor& uniforms,
                    const SamplingOptions& options) {
  const torch::NoGradGuard no_grad;
  const std::int64_t block = std::max<std::int64_t>(1, kBlockElements / logits.size(1));
  std::vector<Tensor> tokens, log_probs;
  for (std::int64_t lo = 0; lo < rows.size(0); lo += block) {
    const std::int64_t hi = std::min(lo + block, rows.size(0));
    const DrawnRows part = draw_block(logits.index_select(0, rows.slice(0, lo, hi)),
                                      uniforms.slice(0, lo, hi), options);
    tokens.push_back(part.tokens);
    log_probs.push_back(part.log_probs);
  }
  return {torch::cat(tokens), torch::cat(log_probs)};
}

std::vector<Draw> draws_of(const DrawnRows& drawn) {
  const Tensor tokens = drawn.tokens.cpu().contiguous(),
               scores = drawn.log_probs.cpu().contiguous();
  const auto* token = tokens.const_data_ptr<std::int32_t>();
  const auto* score = scores.const_data_ptr<float>();
  std::vector<Draw> draws;
  for (std::int64_t i = 0; i < tokens.size(0); ++i) {
    if (token[i] < 0) throw NoDraw();
    draws.push_back({token[i], score[i]});
  }
  return draws;
}

std::vector<Draw> sample_rows(const Tensor& logits, std::span<const std::int64_t> rows,
                              std::span<const double> uniforms, const SamplingOptions& options) {
  TESSERA_CHECK(rows.size() == uniforms.size());
  TESSERA_CHECK(logits.is_cpu());
  const Tensor host = logits.to(torch::kFloat).contiguous();
  const auto vocabulary = static_cast<std::size_t>(host.size(1));
  const float* data = host.const_data_ptr<float>();
  std::vector<Draw> draws(rows.size());
  share_work(static_cast<std::int64_t>(rows.size()), 8, at::get_num_threads(),
             [&](std::int64_t lo, std::int64_t hi) {
               for (auto i = static_cast<std::size_t>(lo); i < static_cast<std::size_t>(hi); ++i) {
                 const float* row = data + static_cast<std::size_t>(rows[i]) * vocabulary;
                 draws[i] = draw({row, vocabulary}, options, uniforms[i]);
               }
             });
  return draws;
}

}  // namespace tessera
