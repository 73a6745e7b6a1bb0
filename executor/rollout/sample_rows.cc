#include "executor/rollout/sample_rows.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using torch::Tensor;

/// Elements of a [draws, vocabulary] block of fp64: several such blocks exist at a time.
constexpr std::int64_t kBlockElements = std::int64_t{1} << 23;

/// Sets the weights that top-k and top-p exclude to 0 (restrict_weights of sampling.cc).
Tensor restricted(const Tensor& logits, const Tensor& weights, const SamplingOptions& options) {
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

/// [2, draws] fp64: tokens (-1 where the row is no row of logits) and log-probs.
Tensor draw_block(const Tensor& logits, const Tensor& uniforms, const SamplingOptions& options) {
  const Tensor x = logits.to(torch::kDouble);
  const Tensor top = x.amax(1, true);
  const double temperature = options.temperature == 0 ? 1 : options.temperature;
  const Tensor scaled = (x - top) / temperature;
  const Tensor p = scaled.exp();
  Tensor token;
  if (options.temperature == 0) {
    const Tensor ids = torch::arange(x.size(1), x.options().dtype(torch::kLong)).expand_as(x);
    token = ids.masked_fill(x.ne(top), x.size(1)).amin(1);
  } else {
    const Tensor weights = restricted(x, (p * kWeightScale).to(torch::kLong), options);
    const Tensor running = weights.cumsum(1);
    const Tensor total = running.select(1, -1);
    const Tensor target =
        torch::minimum((uniforms * total.to(torch::kDouble)).to(torch::kLong), total - 1);
    token = running.le(target.unsqueeze(1)).sum(1);
  }
  const Tensor good = top.squeeze(1).isfinite();
  token = token.clamp(0, x.size(1) - 1);
  const Tensor log_prob = scaled.gather(1, token.unsqueeze(1)).squeeze(1) - p.sum(1).log();
  return torch::stack({token.masked_fill(~good, -1).to(torch::kDouble), log_prob});
}

}  // namespace

std::vector<Draw> sample_rows_on_device(const Tensor& logits, std::span<const std::int64_t> rows,
                                        std::span<const double> uniforms,
                                        const SamplingOptions& options) {
  TESSERA_CHECK(rows.size() == uniforms.size());
  if (rows.empty()) return {};
  const torch::NoGradGuard no_grad;
  const auto host = [](auto span, torch::ScalarType type) {
    return torch::from_blob(const_cast<void*>(static_cast<const void*>(span.data())),
                            {static_cast<std::int64_t>(span.size())}, type);
  };
  const Tensor row_ids = host(rows, torch::kLong).to(logits.device());
  const Tensor u = host(uniforms, torch::kDouble).to(logits.device());
  const std::int64_t block = std::max<std::int64_t>(1, kBlockElements / logits.size(1));
  std::vector<Tensor> parts;
  for (std::int64_t lo = 0; lo < row_ids.size(0); lo += block) {
    const std::int64_t hi = std::min(lo + block, row_ids.size(0));
    parts.push_back(
        draw_block(logits.index_select(0, row_ids.slice(0, lo, hi)), u.slice(0, lo, hi), options));
  }
  const Tensor result = torch::cat(parts, 1).cpu().contiguous();
  const double* tokens = result.const_data_ptr<double>();
  const double* log_probs = tokens + rows.size();
  std::vector<Draw> draws(rows.size());
  for (std::size_t i = 0; i < draws.size(); ++i) {
    if (tokens[i] < 0) {
      throw Error(ExitCode::internal, "a row of logits holds NaN, +inf or nothing finite");
    }
    draws[i] = {static_cast<std::int32_t>(tokens[i]), static_cast<float>(log_probs[i])};
  }
  return draws;
}

std::vector<Draw> sample_rows(const Tensor& logits, std::span<const std::int64_t> rows,
                              std::span<const double> uniforms, const SamplingOptions& options) {
  TESSERA_CHECK(rows.size() == uniforms.size());
  if (!logits.is_cpu()) return sample_rows_on_device(logits, rows, uniforms, options);
  const Tensor host = logits.to(torch::kFloat).contiguous();
  const auto vocabulary = static_cast<std::size_t>(host.size(1));
  const float* data = host.const_data_ptr<float>();
  std::vector<Draw> draws(rows.size());
  at::parallel_for(
      0, static_cast<std::int64_t>(rows.size()), 8, [&](std::int64_t lo, std::int64_t hi) {
        for (auto i = static_cast<std::size_t>(lo); i < static_cast<std::size_t>(hi); ++i) {
          const float* row = data + static_cast<std::size_t>(rows[i]) * vocabulary;
          draws[i] = draw({row, vocabulary}, options, uniforms[i]);
        }
      });
  return draws;
}

}  // namespace tessera
