#include <array>

#include "cost_models/compute.h"
#include "cost_models/rank_model.h"
#include "executor/attention/attention.h"
#include "executor/comm/groups.h"
#include "executor/measure/sampler.h"
#include "executor/model/decoder.h"
#include "executor/model/layer_ops.h"
#include "executor/model/paged_decoder.h"
#include "executor/tensor/norm_ops.h"
#include "executor/tensor/rope.h"

namespace tessera {
namespace {

/// A decoder small enough that its operators do next to nothing.
ModelSpec small_model(std::int64_t layers) {
  return {.family = ModelFamily::qwen2,
          .layers = layers,
          .hidden = 64,
          .query_heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .ffn = 176,
          .vocab = 16,
          .max_positions = 256,
          .tied_embeddings = true,
          .qkv_bias = true};
}

struct SmallModelTimes {
  double forward = 0, backward = 0, decode = 0;
};

/// One token of 8 sequences of 64 tokens each.
double time_decode(Sampler& sampler, const Weights& weights, const ParallelGroups& alone) {
  constexpr std::int64_t kRows = 8, kPage = 64;
  PagedDecoder decoder(weights, alone);
  const torch::Tensor cache = torch::zeros(
      {kRows * decoder.page_bytes(kPage) / size_of(weights.dtype)}, weights.storage.options());
  decoder.place(cache, kRows, kPage, kPage);
  const auto options = weights.storage.options().dtype(torch::kInt64);
  const auto halves = options.dtype(torch::kInt32);
  const torch::Tensor rows = torch::arange(kRows, options);
  const PagedBatch batch{.ids = torch::full({kRows}, 3, options),
                         .positions = torch::full({kRows}, kPage - 1, options),
                         .places = rows * kPage + (kPage - 1),
                         .decode = {.rows = kRows,
                                    .tokens = kRows,
                                    .longest_keys = kPage,
                                    .query_lengths = torch::ones({kRows}, halves),
                                    .key_lengths = torch::full({kRows}, kPage, halves),
                                    .page_table = torch::arange(kRows, halves).view({kRows, 1})}};
  return sampler.compute([&] { decoder.forward(batch); });
}

SmallModelTimes time_small_model(Sampler& sampler, std::int64_t layers) {
  ParallelLayout layout;
  layout.stages = even_stages(layers, 1);
  const ParallelGroups alone{.member = true, .index = 0};
  Weights weights = make_weights(parameter_table(small_model(layers)), layout, {},
                                 sampler.options().dtype, sampler.options().device);
  initialize(weights, 1);
  const std::vector<std::vector<std::int64_t>> sequences(8, std::vector<std::int64_t>(8, 3));
  const PackedTokens tokens = pack_tokens(sequences, sampler.options().device);
  SmallModelTimes times;
  {
    const torch::NoGradGuard no_grad;
    times.forward = sampler.compute([&] { stage_forward(weights, alone, tokens); });
    times.decode = time_decode(sampler, weights, alone);
  }
  for (torch::Tensor& tensor : weights.tensors) {
    if (tensor.defined()) tensor.requires_grad_(true);
  }
  const double both =
      sampler.compute([&] { stage_forward(weights, alone, tokens).sum().backward(); });
  times.backward = std::max(both - times.forward, 0.1 * both);
  return times;
}

}  // namespace

void measure_stream(Sampler& sampler, std::vector<CalibrationSample>& samples) {
  constexpr double kCount = 7;  // operators in the body below
  const torch::NoGradGuard no_grad;
  std::vector<std::int64_t> rows{128, 1024, 4096}, widths{64, 256};
  if (!sampler.small_sizes()) rows = {64, 512, 4096, 16384}, widths = {256, 1024, 4096};
  for (const std::int64_t tokens : rows) {
    for (const std::int64_t hidden : widths) {
      const RankModel rank{{},
                           {.hidden = hidden,
                            .query_heads = 4,
                            .kv_heads = 2,
                            .head_dim = hidden / 4,
                            .ffn = 11 * hidden / 4},
                           sampler.options().dtype};
      const auto random = [&](std::vector<std::int64_t> shape) {
        return torch::randn(shape, sampler.tensor_options());
      };
      const torch::Tensor x = random({tokens, hidden}), weight = random({hidden}),
                          q = random({tokens, 4, hidden / 4}), k = random({tokens, 2, hidden / 4}),
                          gate = random({tokens, 11 * hidden / 4}),
                          angles = random({tokens, hidden / 8});
      const RopeTable rope{angles, angles};
      samples.push_back(
          {.kind = SampleKind::stream,
           .sizes = {(static_cast<double>(tokens) * layer_elementwise_bytes(rank)).value, kCount},
           .seconds = Seconds{sampler.compute([&] {
             apply_rope(q, rope);
             apply_rope(k, rope);
             const torch::Tensor attended = x + rms_norm(x, weight, 1e-6);
             swiglu(gate, gate);
             attended + rms_norm(attended, weight, 1e-6);
           })}});
    }
  }
}

void measure_attention(Sampler& sampler, std::vector<CalibrationSample>& samples) {
  ModelSpec model = small_model(1);
  const bool small = sampler.small_sizes();
  if (!small) model.head_dim = 128;
  ParallelLayout layout;
  layout.stages = even_stages(1, 1);
  const Weights weights = make_weights(parameter_table(model), layout, {}, sampler.options().dtype,
                                       sampler.options().device);
  std::vector<std::int64_t> counts{8, 64, 512}, lengths{8, 32, 128};
  if (!small) counts = {1, 8, 64}, lengths = {128, 1024, 4096};
  for (const std::int64_t sequences : counts) {
    for (const std::int64_t length : lengths) {
      const std::int64_t tokens = sequences * length;
      const AttentionPlan plan = plan_attention(weights, std::vector(sequences, length));
      const auto random = [&](std::int64_t heads) {
        return torch::randn({tokens, heads, model.head_dim}, sampler.tensor_options())
            .requires_grad_(true);
      };
      const torch::Tensor q = random(model.query_heads), k = random(model.kv_heads),
                          v = random(model.kv_heads);
      const std::array<double, 3> sizes = {static_cast<double>(sequences * model.query_heads),
                                           static_cast<double>(length),
                                           static_cast<double>(model.head_dim)};
      double forward = 0;
      {
        const torch::NoGradGuard no_grad;
        forward = sampler.compute([&] { attend(plan, q, k, v); });
      }
      const double both = sampler.compute([&] { attend(plan, q, k, v).sum().backward(); });
      samples.push_back(
          {.kind = SampleKind::attention, .sizes = sizes, .seconds = Seconds{forward}});
      samples.push_back({.kind = SampleKind::attention_backward,
                         .sizes = sizes,
                         .seconds = Seconds{std::max(both - forward, 0.1 * both)}});
    }
  }
}

void measure_operators(Sampler& sampler, std::vector<CalibrationSample>& samples) {
  const SmallModelTimes shallow = time_small_model(sampler, 2), deep = time_small_model(sampler, 6);
  const auto add = [&](SampleKind kind, int operators, double four_layers) {
    samples.push_back({.kind = kind,
                       .sizes = {static_cast<double>(operators)},
                       .seconds = Seconds{std::max(four_layers, 1e-7) / 4}});
  };
  add(SampleKind::dispatch, kOperators.layer_forward, deep.forward - shallow.forward);
  add(SampleKind::dispatch, kOperators.layer_decode, deep.decode - shallow.decode);
  add(SampleKind::backward_dispatch, kOperators.layer_backward, deep.backward - shallow.backward);
}

}  // namespace tessera
