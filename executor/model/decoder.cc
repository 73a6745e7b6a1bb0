#include "executor/model/decoder.h"

#include <algorithm>

#include "executor/comm/groups.h"
#include "executor/model/decoder_layer.h"
#include "executor/model/ordered_attention.h"
#include "executor/tensor/recompute.h"

namespace tessera {

using torch::Tensor;

PackedTokens pack_tokens(std::span<const std::vector<std::int64_t>> sequences,
                         torch::Device device) {
  PackedTokens packed;
  std::vector<std::int64_t> ids, positions;
  for (const auto& sequence : sequences) {
    packed.lengths.push_back(static_cast<std::int64_t>(sequence.size()));
    ids.insert(ids.end(), sequence.begin(), sequence.end());
    for (std::size_t i = 0; i < sequence.size(); ++i) {
      positions.push_back(static_cast<std::int64_t>(i));
    }
  }
  packed.ids = torch::tensor(ids, torch::kInt64).to(device);
  packed.positions = torch::tensor(positions, torch::kInt64).to(device);
  return packed;
}

LayerRange chunk_layers(const Weights& weights, int chunk) {
  const int index = chunk * weights.layout.pp + weights.coord.pp;
  return weights.layout.stages.at(static_cast<std::size_t>(index));
}

std::int64_t routed_layers(const Weights& weights, LayerRange layers) {
  const auto first = weights.rows.layers.begin();
  return std::count_if(first + layers.first, first + layers.last,
                       [](const LayerRows& rows) { return rows.routed(); });
}

bool is_first_chunk(const Weights& weights, int chunk) {
  return chunk == 0 && weights.coord.pp == 0;
}

bool is_last_chunk(const Weights& weights, int chunk) {
  return chunk == weights.layout.vpp - 1 && weights.coord.pp == weights.layout.pp - 1;
}

Tensor embed_tokens(const Weights& weights, const Tensor& ids, const TensorParallel& tp) {
  const Tensor table = weights.tensor(weights.rows.embedding);
  const std::int64_t padding = weights.model().pad_token.value_or(-1);
  if (tp.group == nullptr) return embed(table, ids, {}, padding, tp);
  const Interval rows = vocab_range(weights);
  const Tensor outside = (ids < rows.lo).logical_or_(ids >= rows.hi);
  return embed(table, (ids - rows.lo).masked_fill_(outside, 0), outside, padding - rows.lo, tp);
}

Tensor final_norm(const Weights& weights, const Tensor& hidden) {
  return rms_norm(hidden, weights.tensor(weights.rows.final_norm), weights.model().norm_epsilon);
}

HeadStates project_heads(const Weights& weights, const LayerRows& rows, const Tensor& normed,
                         const RopeTable& rope, const TensorParallel& tp) {
  const std::int64_t dim = weights.model().head_dim;
  const double epsilon = weights.model().norm_epsilon;
  const auto [q, k, v] = column_parallel(
      normed, {weights.tensor(rows.q), weights.tensor(rows.k), weights.tensor(rows.v)},
      {weights.tensor(rows.q_bias), weights.tensor(rows.k_bias), weights.tensor(rows.v_bias)}, tp,
      {weights.adapter(rows.q), weights.adapter(rows.k), weights.adapter(rows.v)});
  const auto heads = [&](const Tensor& x) { return x.unflatten(1, {-1, dim}); };
  const auto normalised = [&](const Tensor& x, int norm) {
    if (norm < 0) return heads(x);
    return rms_norm(x.reshape({-1, dim}), weights.tensor(norm), epsilon).view({x.size(0), -1, dim});
  };
  // One product makes all three side by side. Values of their own let the whole of it go, which
  // the backward pass would else keep for them: queries and keys are copies once rotated.
  const bool kept = at::GradMode::is_enabled() && normed.requires_grad();
  return {apply_rope(normalised(q, rows.q_norm), rope),
          apply_rope(normalised(k, rows.k_norm), rope), heads(kept ? v.contiguous() : v)};
}

Tensor after_attention(const Weights& weights, const LayerRows& rows, const Tensor& hidden,
                       const Tensor& attended, const TensorParallel& tp,
                       const ExpertOptions& options) {
  const Tensor projected = row_parallel(attended, weights.tensor(rows.o),
                                        weights.tensor(rows.o_bias), tp, weights.adapter(rows.o));
  const auto [x, normed] =
      add_rms_norm(projected, hidden, weights.tensor(rows.post_norm), weights.model().norm_epsilon);
  return x + feed_forward(weights, rows, normed, tp, options);
}

Tensor feed_forward(const Weights& weights, const LayerRows& rows, const Tensor& normed,
                    const TensorParallel& tp, const ExpertOptions& options) {
  if (rows.routed()) return routed_mlp(weights, rows, normed, tp, options);
  const Projections mlp =
      column_parallel(normed, {weights.tensor(rows.gate), weights.tensor(rows.up), {}},
                      {weights.tensor(rows.gate_bias), weights.tensor(rows.up_bias), {}}, tp,
                      {weights.adapter(rows.gate), weights.adapter(rows.up)});
  return gated_row_parallel(mlp.a, mlp.b, weights.tensor(rows.down), weights.tensor(rows.down_bias),
                            tp, options.recompute_product, weights.adapter(rows.down));
}

TensorParallel tensor_parallel(const Weights& weights, const ParallelGroups& groups) {
  return {groups.tp.get(), weights.layout.sequence_parallel};
}

namespace {

/// What the chunk's first layer begins with.
Tensor stage_input(const Weights& weights, const PackedTokens& tokens, const Tensor& hidden,
                   const TensorParallel& tp, const StageOptions& options) {
  Tensor x =
      is_first_chunk(weights, options.chunk) ? embed_tokens(weights, tokens.ids, tp) : hidden;
  // A layer is run again only for the gradient of its input.
  const bool again = options.recompute == Recompute::full && at::GradMode::is_enabled();
  if (again && !weights.adapters.empty()) x.requires_grad_();
  return x;
}

/// The chunk's options for a layer before which so many of its layers have experts.
ExpertOptions of_layer(const ExpertOptions& chunk, std::int64_t index, const LayerRows& rows) {
  ExpertOptions layer = chunk;
  if (!rows.routed()) return layer;
  layer.balance = chunk.balance.of_layer(index);
  layer.replay = chunk.replay.of_layer(index);
  return layer;
}

}  // namespace

Tensor stage_forward(const Weights& weights, const ParallelGroups& groups,
                     const PackedTokens& tokens, const Tensor& hidden,
                     const StageOptions& options) {
  const ModelSpec& model = weights.model();
  TensorParallel tp = tensor_parallel(weights, groups);
  tp.exchange = options.exchange;
  tp.order = options.order;
  const bool fixed = options.order == SumOrder::fixed;
  const int chunk = options.chunk;
  Tensor x = stage_input(weights, tokens, hidden, tp, options);
  ContextParallel parallel = options.context;
  if (parallel.group == nullptr) parallel.group = groups.cp.get();
  const HeadRange head_counts = head_range(model, weights.layout.tp, weights.coord.tp);
  const auto context = parallel.alone() ? nullptr : plan_context(weights, tokens.lengths, parallel);
  const AttentionPlan plan = context || fixed ? AttentionPlan{.heads = head_counts}
                                              : plan_attention(weights, tokens.lengths);
  const auto in_order =
      fixed ? std::make_shared<const OrderedPlan>(plan_in_order(weights, tokens)) : nullptr;
  const RopeTable rope = rope_table(weights.inverse_frequencies, model.rope.attention_factor,
                                    tokens.positions, scalar_type(weights.dtype));
  const ExpertOptions experts{.group = groups.ep.get(),
                              .parts = groups.etp.get(),
                              .z_loss = options.z_loss,
                              .balance = options.balance,
                              .replay = options.replay,
                              .recompute_product = options.recompute == Recompute::selective};
  // By value: the backward pass may run it again after this function has returned.
  const LayerRange range = chunk_layers(weights, chunk);
  const auto run_layer = [&weights, tp, plan, in_order, context, rope, experts, range](
                             std::int64_t layer, const Tensor& in) {
    const LayerRows& rows = weights.rows.layers[static_cast<std::size_t>(layer)];
    const Tensor normed =
        rms_norm(in, weights.tensor(rows.input_norm), weights.model().norm_epsilon);
    const auto attended_by = [&](const HeadStates& heads) {
      return context ? attend_context(context, plan.heads, heads.q, heads.k, heads.v)
                     : attend(plan, heads.q, heads.k, heads.v);
    };
    const Tensor attended = in_order ? attend_layer_in_order(weights, rows, normed, *in_order, tp)
                                     : attended_by(project_heads(weights, rows, normed, rope, tp));
    return after_attention(weights, rows, in, attended, tp,
                           of_layer(experts, routed_layers(weights, {range.first, layer}), rows));
  };
  LayerAccess* const access = options.access;
  for (std::int64_t layer = range.first; layer < range.last; ++layer) {
    if (access != nullptr) {
      access->before_forward(layer, range);
      x = on_backward(x, [=] { access->after_backward(layer, range); });
    }
    if (options.recompute == Recompute::full) {
      x = recomputed(x, [=](const Tensor& in) { return run_layer(layer, in); });
    } else {
      x = run_layer(layer, x);
    }
    if (access != nullptr) {
      x = on_backward(x, [=] { access->before_backward(layer, range); });
      access->after_forward(layer, range);
    }
  }
  return is_last_chunk(weights, chunk) ? final_norm(weights, x) : x;
}

}  // namespace tessera
