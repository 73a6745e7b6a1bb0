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

/// One rank's widths of a dense layer, in bytes per token.
struct Widths {
  double stream = 0;  // of the residual stream: this rank's part under sequence parallelism
  double hidden = 0;  // of it whole
  double queries = 0, keys = 0;
  double ffn = 0;       // of one of gate, up and their product
  double per_head = 0;  // fp32 of one number a query head
};

Widths widths_of(const RankModel& rank) {
  const LayerShape shape = rank.layer();
  const double element = size_of(rank.dtype);
  const double hidden = element * as_double(shape.hidden);
  return {.stream = hidden / rank.stream_parts(),
          .hidden = hidden,
          .queries = element * as_double(rank.query_heads() * shape.key_dim),
          .keys = element * as_double(rank.kv_heads() * shape.key_dim),
          .ffn = element * as_double(rank.largest(shape.ffn)),
          .per_head = static_cast<double>(size_of(DType::fp32)) * as_double(rank.query_heads())};
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

}  // namespace

Traffic executor_saved_bytes(const RankModel& rank, Recompute recompute) {
  const Widths width = widths_of(rank);
  if (recompute == Recompute::full) return Traffic{width.stream};
  const double fp32 = size_of(DType::fp32);
  const double norms = 4 * width.stream + 2 * fp32 / rank.stream_parts();
  const double attention = 2 * (width.queries + width.keys) + width.per_head;
  const double mlp = (recompute == Recompute::selective ? 2 : 3) * width.ffn;
  double own_norms = 0;
  if (rank.model.qk_norm) {
    own_norms = width.queries + width.keys + fp32 * as_double(rank.query_heads() + rank.kv_heads());
  }
  return Traffic{norms + attention + mlp + own_norms};
}

MemoryUse executor_training_bytes(const RankModel& rank, const StageLoad& load,
                                  Recompute recompute) {
  const Widths width = widths_of(rank);
  const double tokens = load.tokens / rank.cp;
  double layers = 0;
  for (const std::int64_t count : load.layers) layers += as_double(count);
  const double kept = layers * executor_saved_bytes(rank, recompute).value * load.in_flight;
  const double travels = exchange(rank, width);
  // Where the logits are: input, output and gradient of the final norm.
  const double loss = load.last ? 3 * width.stream + whole_stream(rank, width) : 0;
  const double logits = load.last ? logits_bytes(rank, tokens, true) : 0;
  // In a layer's backward pass: what comes in, and gradients of gate, up and their product; a layer
  // that is run again has an output, and keeps all but its input, which was kept already.
  double backward = width.stream + whole_stream(rank, width) + 3 * width.ffn;
  double again = 0;
  if (recompute == Recompute::full) {
    again = executor_saved_bytes(rank, Recompute::none).value - width.stream;
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
  const double layer =
      own * (3 * width.stream + whole_stream(rank, width) + std::max(attention, 3 * width.ffn));
  const double head = last_stage ? own * (2 * width.stream + whole_stream(rank, width)) : 0;
  const double logits = last_stage ? logits_bytes(rank, own, false) : 0;
  MemoryUse use{.communication = rounded(own * exchange(rank, width))};
  const bool at_head = head + logits > layer;
  use.activations = rounded(at_head ? head : layer);
  use.logits = rounded(at_head ? logits : 0);
  return use;
}

}  // namespace tessera
