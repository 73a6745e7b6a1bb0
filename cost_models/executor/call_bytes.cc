#include "cost_models/executor/call_bytes.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

// Tokens that travel among tensor-parallel ranks lie in three buffers (executor/model's
// token_exchange) as wide as the residual stream.
constexpr double kExchangeBuffers = 3;

double as_double(std::int64_t value) { return static_cast<double>(value); }

Bytes rounded(double bytes) {
  constexpr double kMost = 1LL << 56;  // sums of them stay integers
  return Bytes{static_cast<std::int64_t>(std::ceil(std::min(bytes, kMost)))};
}

/// One rank's widths of a layer, in bytes per token.
struct Widths {
  double stream = 0;  // of the residual stream: this rank's part under sequence parallelism
  double hidden = 0;  // of it whole
  double queries = 0, keys = 0;
  double ffn = 0;       // of one of gate, up and their product; of the shared expert
  double per_head = 0;  // fp32 of one number a query head
  // Routed experts: rows that a token becomes, of their columns and of the stream; what the router
  // and the order of rows take.
  double expert_ffn = 0, expert_stream = 0, routing = 0;
  double gathered = 0;  // tokens of those who cut the same experts, in place of this rank's
};

// Rows by expert that a rank works on, per token (executor/model/experts.cc): all k of the tokens
// of those who cut the same experts, with a part of the columns.
double expert_rows(const RankModel& rank, const LayerShape& shape) {
  return as_double(shape.experts_per_token) * rank.etp / rank.tp * rank.traits.experts.imbalance;
}

void add_experts(const RankModel& rank, const LayerShape& shape, Widths& widths) {
  const double element = size_of(rank.dtype), rows = expert_rows(rank, shape);
  const double fp32 = size_of(DType::fp32), index = size_of(DType::int64);
  const double columns = as_double((shape.expert_ffn + rank.etp - 1) / rank.etp);
  widths.expert_ffn = rows * element * columns;
  widths.expert_stream = rows * element * as_double(shape.hidden);
  const double routed = static_cast<double>(rank.etp) / rank.tp;  // tokens
  if (rank.sequence_parallel && rank.etp > 1) {
    widths.gathered = routed * widths.hidden - widths.stream;
  }
  // Logits' softmax; scores and weights of the choices, and their order and places.
  widths.routing = routed * (fp32 * as_double(shape.experts) +
                             as_double(shape.experts_per_token) * (2 * fp32 + 3 * index));
}

Widths widths_of(const RankModel& rank, const LayerShape& shape) {
  const double element = size_of(rank.dtype);
  const double hidden = element * as_double(shape.hidden);
  Widths widths{
      .stream = hidden / rank.stream_parts(),
      .hidden = hidden,
      .queries = element * as_double(rank.query_heads() * shape.key_dim),
      .keys = element * as_double(rank.kv_heads() * shape.key_dim),
      .ffn = element * as_double(rank.largest(shape.ffn)),
      .per_head = static_cast<double>(size_of(DType::fp32)) * as_double(rank.query_heads())};
  if (shape.sparse()) add_experts(rank, shape, widths);
  return widths;
}

Widths widths_of(const RankModel& rank) { return widths_of(rank, rank.layer()); }

/// What adapters keep of all seven projections, beside what a trained layer keeps: rows of their
/// rank; and what enters a parallel region there, which lies whole in place of this rank's part.
double adapters_saved(const RankModel& rank, const Widths& width) {
  constexpr int kProjections = 7, kRegions = 2;
  if (rank.adapter_rank == 0) return 0;
  return kProjections * as_double(rank.adapter_rank) * size_of(rank.dtype) +
         kRegions * (width.hidden - width.stream);
}

/// What the layer's backward pass makes at once: gradients of gate, up and their product, and of an
/// expert's rows what comes in and what goes out.
double inner_gradients(const Widths& width) {
  return 3 * width.ffn + 3 * width.expert_ffn + 2 * width.expert_stream;
}

/// A slice of logits in fp32 and, where a gradient follows, once more in the model's type
/// (executor/model/scores.cc, by fused kernels).
double logits_bytes(const RankModel& rank, double tokens, bool training) {
  if (rank.model.head == ModelHead::value) return 0;
  const double fp32 = size_of(DType::fp32);
  const double cast = training && rank.dtype != DType::fp32 ? size_of(rank.dtype) : 0;
  const double rows = std::min(tokens, as_double(rank.traits.loss.rows));
  return rows * as_double(rank.vocab()) * (fp32 + cast);
}

/// Tokens that tensor-parallel ranks pass on, while they travel.
double exchange(const RankModel& rank, const Widths& width) {
  return rank.tp > 1 && rank.sequence_parallel ? kExchangeBuffers * width.hidden : 0;
}

/// What the head reads whole where the residual stream is cut.
double whole_stream(const RankModel& rank, const Widths& width) {
  return rank.stream_parts() > 1 ? width.hidden : 0;
}

/// What a layer of these widths keeps for its backward pass, in bytes per token.
double saved_bytes(const RankModel& rank, const Widths& width, Recompute recompute) {
  if (recompute == Recompute::full) return width.stream;
  const double fp32 = size_of(DType::fp32);
  const double norms = 4 * width.stream + 2 * fp32 / rank.stream_parts();
  const double attention = 2 * (width.queries + width.keys) + width.per_head;
  const bool made_again = recompute == Recompute::selective && rank.adapter_rank == 0;
  const int inner = made_again ? 2 : 3;
  const double mlp = inner * width.ffn + inner * width.expert_ffn + 2 * width.expert_stream +
                     width.routing + width.gathered;
  double own_norms = 0;
  if (rank.model.qk_norm) {
    own_norms = width.queries + width.keys + fp32 * as_double(rank.query_heads() + rank.kv_heads());
  }
  return norms + attention + mlp + own_norms + adapters_saved(rank, width);
}

}  // namespace

Traffic executor_saved_bytes(const RankModel& rank, Recompute recompute) {
  return Traffic{saved_bytes(rank, widths_of(rank), recompute)};
}

MemoryUse executor_training_bytes(const RankModel& rank, const StageLoad& load,
                                  Recompute recompute) {
  const Widths width = widths_of(rank);
  const double tokens = load.tokens / rank.cp;
  // Of each kind of layer: all that is kept; of the widest, its gradients and its second forward.
  double saved = 0, gradients = inner_gradients(width),
         whole = saved_bytes(rank, width, Recompute::none);
  for (int kind = 0; kind < kLayerKinds; ++kind) {
    const std::int64_t count = load.layers[static_cast<std::size_t>(kind)];
    if (count == 0) continue;
    const Widths own = widths_of(rank, layer_shape(rank.model, static_cast<LayerKind>(kind)));
    saved += as_double(count) * saved_bytes(rank, own, recompute);
    gradients = std::max(gradients, inner_gradients(own));
    whole = std::max(whole, saved_bytes(rank, own, Recompute::none));
  }
  const double kept = saved * load.in_flight;
  const double travels = exchange(rank, width);
  // Where the logits are: input, output and gradient of the final norm.
  const double loss = load.last ? 3 * width.stream + whole_stream(rank, width) : 0;
  const double logits = load.last ? logits_bytes(rank, tokens, true) : 0;
  // In a layer's backward pass: what comes in, and gradients; a layer that is run again has an
  // output, and keeps all but its input, which was kept already.
  double backward = width.stream + whole_stream(rank, width) + gradients;
  double again = 0;
  if (recompute == Recompute::full) {
    again = whole - width.stream;
    backward += width.stream;
  }
  MemoryUse use;
  use.communication = rounded(tokens * travels);
  const bool at_loss = tokens * loss + logits > tokens * (backward + again);
  use.activations = rounded(tokens * (kept + (at_loss ? loss : again)));
  use.logits = rounded(at_loss ? logits : 0);
  use.workspace = rounded(at_loss ? 0 : tokens * backward);
  return use;
}

MemoryUse executor_scoring_bytes(const RankModel& rank, bool last_stage, double tokens) {
  const Widths width = widths_of(rank);
  const double own = tokens / rank.cp;
  // A layer's input and normed input beside the widest operator's inputs and outputs.
  const double attention = 2 * (width.queries + 2 * width.keys) + width.queries;
  const double mlp = std::max(3 * width.ffn, 3 * width.expert_ffn + 2 * width.expert_stream);
  const double layer =
      own * (3 * width.stream + whole_stream(rank, width) + std::max(attention, mlp));
  const double head = last_stage ? own * (2 * width.stream + whole_stream(rank, width)) : 0;
  const double logits = last_stage ? logits_bytes(rank, own, false) : 0;
  MemoryUse use{.communication = rounded(own * exchange(rank, width))};
  const bool at_head = head + logits > layer;
  use.activations = rounded(at_head ? head : layer);
  use.logits = rounded(at_head ? logits : 0);
  return use;
}

}  // namespace tessera
