// Bytes that the calls of a role need while they run: activations, logits, caches and buffers.
#include <algorithm>
#include <cmath>

#include "cost_models/memory.h"
#include "cost_models/rank_model.h"
#include "cost_models/spec/families.h"

namespace tessera {
namespace {

// More than any memory holds, and little enough that sums of them stay integers.
constexpr double kMostBytes = 1LL << 56;

Bytes rounded(double bytes) {
  return Bytes{static_cast<std::int64_t>(std::ceil(std::min(bytes, kMostBytes)))};
}

double as_double(std::int64_t value) { return static_cast<double>(value); }

// A slice of logits in the model's type and fp32 and their exponentials (executor/model/scores.cc);
// the backward pass has gradients of both kinds besides.
Bytes logits_bytes(const RankModel& rank, double tokens, bool training) {
  if (rank.model.head == ModelHead::value) return {};
  const double columns = as_double(rank.vocab());
  if (rank.traits.loss.rows == 0) {
    const Traffic each = bytes_per_logit(rank.traits.loss.kernel, rank.dtype, training);
    const ModuleFacts& modules = facts_of(rank.model.family).modules;
    const bool capped = training && modules.capped_logits;
    const int widened = modules.wide_logits ? size_of(DType::fp32) - size_of(rank.dtype) : 0;
    return rounded(tokens * columns *
                   (each + Traffic(widened + (capped ? size_of(rank.dtype) : 0))));
  }
  const double rows = std::min(tokens, as_double(rank.traits.loss.rows));
  const double element = size_of(rank.dtype), fp32 = size_of(DType::fp32);
  return rounded(rows * columns * (training ? 2 * element + 3 * fp32 : element + 2 * fp32));
}

// What layers of multi-token prediction keep of a token beside their transformer layers: the
// embedding, which a norm reads; the projection's two inputs side by side; the last norm's input
// and output, which the head reads. The transformer layer counts what the projection gives, which
// full recomputation makes again with all of this but the embedding and the last output.
double mtp_elements(const RankModel& rank, Recompute recompute) {
  return as_double(run_mtp_layers(rank.model) * rank.model.hidden) / rank.stream_parts() *
         (recompute == Recompute::full ? 1.0 : 5.0);
}

// Their logits of all tokens: exponentials in fp32, kept for the loss's gradient (Megatron-Core's
// vocab_parallel_cross_entropy); with a copy in the model's type while they are made.
Bytes mtp_logits_bytes(const RankModel& rank, double tokens, bool kept) {
  const double each = tokens * as_double(rank.vocab());
  const auto layers = as_double(run_mtp_layers(rank.model));
  if (kept) return rounded(layers * each * size_of(DType::fp32));
  if (layers == 0) return {};
  return rounded(each * bytes_per_logit(LossKernel::vocab_parallel, rank.dtype, false));
}

// Token copies that the experts of one rank work on, per token of the rank: k, of which etp ranks
// each work on all with a part of the columns; without sequence parallelism the tokens are dealt to
// the t ranks that hold copies of them.
double expert_copies(const RankModel& rank, const LayerShape& shape) {
  return as_double(shape.experts_per_token) * rank.etp / rank.tp * rank.traits.experts.imbalance;
}

// Widths of what attention and MLP make besides the residual stream, per token.
// `projected`: latent attention's queries, keys and values of every head are kept, not made again
// from the compressed ones (DeepSeek-V3, arXiv:2412.19437, sec. 3.2.3).
double attention_elements(const RankModel& rank, const LayerShape& shape, bool projected = true) {
  if (!shape.mixes) return 0;
  if (shape.state_space()) {  // the first projection's output, and what its gate multiplies
    return 3 * as_double(rank.largest(shape.state_inner())) +
           2 * as_double(rank.largest(shape.state_vectors())) +
           as_double(rank.largest(shape.state_heads));
  }
  const double q = as_double(rank.query_heads()), kv = as_double(rank.kv_heads());
  const double heads = q * as_double(shape.key_dim + shape.value_dim);
  if (shape.linear()) {  // before the convolution and after it; gate, output, what is gated
    const double keys = as_double(rank.largest(shape.linear_keys));
    return 2 * (2 * keys) + 5 * as_double(rank.largest(shape.linear_values));
  }
  if (shape.compressed()) {  // queries and output, what they are made of and what is made of it
    const double groups = as_double(rank.largest(shape.output_groups));
    return heads + as_double(shape.query_rank + 2 * shape.key_dim) +
           groups * as_double(shape.output_rank) + 2 * as_double(shape.entry_keys * shape.key_dim);
  }
  if (!shape.latent()) {
    const double gates = shape.gated_output ? 2 * q * as_double(shape.value_dim) : 0;
    return heads + kv * as_double(shape.key_dim + shape.value_dim) + gates;
  }
  const double output = q * as_double(shape.value_dim);
  return (projected ? heads + q * as_double(shape.key_dim) : 0) + output +
         as_double(shape.query_rank + shape.kv_rank + shape.rope_dim);
}

// `product`, `expert_product`: the second projection's inputs are kept.
double mlp_elements(const RankModel& rank, const LayerShape& shape, bool product,
                    bool expert_product) {
  const double up = as_double(shape.up_parts());
  double elements = (up + (product ? 1.0 : 0.0)) * as_double(rank.largest(shape.ffn));
  if (shape.sparse()) {
    const double columns = as_double((shape.expert_ffn + rank.etp - 1) / rank.etp);
    const double parts = up + (expert_product ? 1.0 : 0.0);
    const double width = as_double(shape.expert_width);
    elements += expert_copies(rank, shape) * (parts * columns + 2.0 * width) +
                as_double(shape.experts) + (shape.latent_experts() ? 2.0 * width : 0.0);
  }
  return elements;
}

// Inputs and outputs of a layer's widest operator besides the residual stream.
double layer_buffers(const RankModel& rank, const LayerShape& shape, double tokens) {
  const double widest =
      std::max(attention_elements(rank, shape), mlp_elements(rank, shape, true, true));
  const double stream = as_double(shape.hidden) + 2.0 * as_double(shape.stream());
  return tokens * size_of(rank.dtype) * (stream + widest);
}

double activation_bytes(const RankModel& rank, const LayerShape& shape, Recompute recompute,
                        double sequence) {
  const auto bytes = static_cast<double>(size_of(rank.dtype));
  const double hidden = as_double(shape.hidden) / rank.stream_parts();
  const double streams = as_double(shape.stream()) / rank.stream_parts();
  if (recompute == Recompute::full) return bytes * streams;
  const bool selective = recompute == Recompute::selective,
             flash = rank.traits.kernels.flash_attention;
  double softmax = 0;
  if (!flash && !selective && shape.mixes && !shape.state_space()) {
    // Scores are whole whatever the mask is.
    const double seen = sequence;
    softmax = as_double(rank.query_heads()) * seen *
              (rank.traits.kernels.dropout ? 2 * bytes + 1 : bytes);
  }
  const bool remade = rank.traits.kernels.elementwise == ElementwiseKernels::remade;
  const bool products = selective && rank.traits.kernels.selective == SelectiveRecompute::products;
  const bool product = !(flash && shape.gated && (products || remade));
  const bool expert_product = !(flash && shape.gated && (selective || remade));
  const double two_norms = remade ? 2.0 : 4.0;
  const double stream =
      bytes * (shape.one_block() ? two_norms / 2 : two_norms + 2.0 * (shape.norms - 2)) * hidden +
      (rank.traits.kernels.dropout ? 2.0 * hidden : 0.0) +
      (shape.streams > 0 ? bytes * 2.0 * streams : 0.0);  // before attention and before the MLP
  return stream +
         bytes * (attention_elements(rank, shape, !selective) +
                  mlp_elements(rank, shape, product, expert_product)) +
         softmax;
}

}  // namespace

Traffic bytes_per_logit(LossKernel loss, DType type, bool training) {
  const Traffic element(size_of(type)), fp32(size_of(DType::fp32));
  switch (loss) {
    case LossKernel::eager:
      return training ? 3 * fp32 : element + 2 * fp32;
    case LossKernel::vocab_parallel:
      return element + fp32;
    case LossKernel::fused:
      return 2 * element;
    case LossKernel::in_place:
      return element;
    case LossKernel::with_entropy:
      return training ? 3 * element : 2 * element;
  }
  return {};
}

Traffic layer_activation_bytes(const RankModel& rank, Recompute recompute, double sequence) {
  return Traffic{activation_bytes(rank, rank.layer(), recompute, sequence)};
}

int micro_batches_in_flight(int micro_batches, int pp, int stage) {
  return std::min(micro_batches, pp - stage);
}

double stage_batches_in_flight(int micro_batches, int pp, int vpp, int stage) {
  if (vpp <= 1) return micro_batches_in_flight(micro_batches, pp, stage);
  const int chunks = 2 * (pp - stage - 1) + (vpp - 1) * pp + 1;
  return static_cast<double>(std::min(micro_batches * vpp, chunks)) / vpp;
}

double layers_in_flight(const ParallelLayout& layout, int micro_batches, int stage) {
  const int chunks = layout.vpp, pp = layout.pp;
  const auto layers = [&](int chunk) {
    const int index = chunk * pp + stage;
    const LayerRange& range = layout.stages[static_cast<std::size_t>(index)];
    return as_double(range.last - range.first);
  };
  bool even = true;
  for (int chunk = 1; chunk < chunks; ++chunk) even = even && layers(chunk) == layers(0);
  if (even) {
    return stage_batches_in_flight(micro_batches, pp, chunks, stage) * chunks * layers(0);
  }
  // p micro-batches pass a chunk, then the next chunk (Megatron-LM's schedules.py); backward passes
  // go the other way. One follows the other once the stage is warm.
  const int passes = micro_batches * chunks;
  const int ahead = std::min(passes, 2 * (pp - stage - 1) + (chunks - 1) * pp + 1);
  double held = 0;
  for (int i = 0; i < ahead; ++i) held += layers(i / pp % chunks);
  double most = held;
  for (int i = 0; i + ahead < std::min(passes, ahead + pp * chunks); ++i) {
    held += layers((i + ahead) / pp % chunks) - layers(chunks - 1 - i / pp % chunks);
    most = std::max(most, held);
  }
  return most;
}

MemoryUse training_memory(const RankModel& rank, const StageLoad& load, Recompute recompute) {
  const double tokens = load.tokens / rank.cp;
  const double stage_input =
      static_cast<double>(size_of(rank.dtype) * stream_width(rank.model)) / rank.stream_parts();
  double kept = stage_input, one_layer = 0, buffers = 0;
  for (std::size_t kind = 0; kind < load.layers.size(); ++kind) {
    if (load.layers[kind] == 0) continue;
    const LayerShape shape = layer_shape(rank.model, static_cast<LayerKind>(kind));
    kept += as_double(load.layers[kind]) * activation_bytes(rank, shape, recompute, load.sequence);
    one_layer = std::max(one_layer, activation_bytes(rank, shape, Recompute::none, load.sequence));
    buffers = std::max(buffers, layer_buffers(rank, shape, tokens));
  }
  if (load.last) {  // the final norm's input and output
    kept += 2.0 * stage_input + size_of(rank.dtype) * mtp_elements(rank, recompute);
  }
  MemoryUse use;
  use.activations = rounded(kept * tokens * load.in_flight);
  use.workspace = rounded(buffers);
  if (load.last) {
    use.logits = logits_bytes(rank, tokens, true) + mtp_logits_bytes(rank, tokens, true);
  }
  // All rows of logits and their gradient are gone when the backward pass reaches the last layer:
  // what that needs besides takes their place.
  Bytes gone = rank.traits.loss.rows == 0 ? use.logits : Bytes{};
  const auto beside = [&gone](Bytes bytes) {
    const Bytes shared = std::min(bytes, gone);
    gone -= shared;
    return bytes - shared;
  };
  use.workspace = beside(use.workspace);
  if (recompute == Recompute::full) use.activations += beside(rounded(one_layer * tokens));
  return use;
}

MemoryUse training_memory(const RankModel& rank, std::int64_t layers, bool last_stage,
                          double tokens, int in_flight, Recompute recompute) {
  StageLoad load{.last = last_stage, .tokens = tokens, .in_flight = static_cast<double>(in_flight)};
  const LayerKind kind = rank.kind.value_or(kind_of_layer(rank.model, rank.model.layers - 1));
  load.layers[static_cast<std::size_t>(kind)] = layers;
  return training_memory(rank, load, recompute);
}

MemoryUse inference_memory(const RankModel& rank, bool last_stage, double tokens) {
  MemoryUse use;
  use.activations = rounded(layer_buffers(rank, rank.layer(), tokens / rank.cp));
  if (last_stage) {  // one after the other
    use.logits = std::max(logits_bytes(rank, tokens / rank.cp, false),
                          mtp_logits_bytes(rank, tokens / rank.cp, false));
  }
  return use;
}

namespace {

// Elements that a token adds to the entries of all layers together.
double entry_elements(const ModelSpec& model, const CompressedAttentionSpec& attention) {
  const auto chosen = as_double(std::ssize(attention.chosen_layers));
  const auto all = as_double(std::ssize(attention.all_layers));
  return chosen * as_double(model.head_dim + model.indexer->head_dim) /
             as_double(attention.chosen_rate) +
         all * as_double(model.head_dim) / as_double(attention.all_rate);
}

// Elements of a sequence that no token adds to, in all layers together: windows, and keys and
// weights of tokens that are no entry yet.
double window_elements(const ModelSpec& model, const CompressedAttentionSpec& attention) {
  const auto chosen = as_double(std::ssize(attention.chosen_layers));
  const auto all = as_double(std::ssize(attention.all_layers));
  const double head = as_double(model.head_dim);
  return as_double(model.layers * attention.window) * head +
         chosen * 4 * as_double(attention.chosen_rate) *
             (head + as_double(model.indexer->head_dim)) +
         all * 2 * as_double(attention.all_rate) * head;
}

}  // namespace

Bytes cache_bytes_per_token(const RankModel& rank, DType kv) {
  if (rank.model.compressed) {
    const double elements = entry_elements(rank.model, *rank.model.compressed);
    return rounded(elements / as_double(rank.model.layers) * size_of(kv));
  }
  const LayerShape shape = layer_shape(rank.model, LayerKind::dense);
  if (!shape.latent()) {
    return Bytes{rank.kv_heads() * (shape.key_dim + shape.value_dim) * size_of(kv)};
  }
  double indexers = 0;  // part of the layers that have one
  if (rank.model.indexer) {
    const auto shared = as_double(std::ssize(rank.model.indexer->shared_layers));
    indexers = 1 - shared / as_double(rank.model.layers);
  }
  return rounded(
      (as_double(shape.kv_rank + shape.rope_dim) + indexers * as_double(shape.index_dim)) *
      size_of(kv));
}

Traffic recurrent_state_bytes(const RankModel& rank, const LayerShape& shape, DType kv) {
  if (shape.state_space()) {
    const double inner = as_double(rank.largest(shape.state_inner()));
    const double mixed = inner + 2 * as_double(rank.largest(shape.state_vectors()));
    return Traffic{inner * as_double(shape.state_size) * size_of(DType::fp32) +
                   mixed * as_double(shape.kernel) * size_of(kv)};
  }
  const double heads = as_double(rank.largest(shape.linear_heads));
  const DType kept = shape.lightning() ? kv : DType::fp32;
  const double state =
      heads * as_double(shape.linear_key_dim * shape.linear_value_dim) * size_of(kept);
  const double mixed = as_double(rank.largest(2 * shape.linear_keys + shape.linear_values));
  return Traffic{state + mixed * as_double(shape.kernel) * size_of(kv)};
}

MemoryUse rollout_memory(const RankModel& rank, DType kv, std::int64_t slots, double kept_tokens,
                         double prefill_tokens, std::int64_t layers) {
  MemoryUse use;
  if (layers == 0) layers = rank.model.layers;
  const LayerShape shape = rank.layer();
  double kept = kept_tokens;
  if (shape.window > 0) {
    kept =
        shape.full_share * kept + (1 - shape.full_share) * std::min(kept, as_double(shape.window));
  }
  const double caching = as_double(layers) * as_double(attention_layer_count(rank.model)) /
                         as_double(rank.model.layers);
  const bool blocks = !rank.model.blocks.empty();
  const LayerShape recurrent =
      layer_shape(rank.model, blocks ? LayerKind::state_space_alone : LayerKind::linear_dense);
  const double mixers = blocks ? as_double(layers) *
                                     as_double(block_count(rank.model, LayerBlock::state_space)) /
                                     as_double(rank.model.layers)
                               : as_double(layers) - caching;
  Traffic states = mixers * recurrent_state_bytes(rank, recurrent, kv);
  if (rank.model.compressed) {
    states = Traffic{caching / as_double(rank.model.layers) *
                     window_elements(rank.model, *rank.model.compressed) * size_of(kv)};
  }
  const double cached = as_double(cache_bytes_per_token(rank, kv)) * caching * as_double(slots);
  const double bytes = cached * kept + states.value * as_double(slots);
  use.kv_cache = Bytes{static_cast<std::int64_t>(std::min(bytes, kMostBytes))};
  use.activations =
      rounded(layer_buffers(rank, rank.layer(), std::max(prefill_tokens, 1.0 * slots)));
  use.logits = rounded(static_cast<double>(slots) * 2.0 * size_of(DType::fp32) *
                       static_cast<double>(rank.vocab() + rank.model.vocab));
  return use;
}

MemoryUse communication_memory(const RankModel& rank, const ParallelLayout& layout,
                               const Elements& fullest_layer, double tokens,
                               const RoleDTypes& dtypes, bool training, std::int64_t layers) {
  const LayerShape shape = rank.layer();
  const auto element = static_cast<double>(size_of(rank.dtype));
  const double own = tokens / rank.cp;
  double gathered = 0, bytes = 0;
  if (layout.dp_shard > 1) {
    const auto layer = as_double(fullest_layer.total());
    const double at_once =
        training && rank.traits.shards.kept_gathered ? std::max(2.0, as_double(layers)) : 2.0;
    gathered = layer * (at_once * size_of(dtypes.param) + (training ? size_of(dtypes.grad) : 0));
  }
  if (rank.cp > 1) {
    const double heads = as_double(shape.key_dim + shape.value_dim);
    const double keys = as_double(rank.kv_heads()) * heads;
    bytes += own * element * (rank.ulysses ? keys + as_double(rank.query_heads()) * heads : keys);
  }
  if (shape.sparse() && rank.ep > 1) {
    bytes += own * element * 2.0 * expert_copies(rank, shape) * as_double(shape.expert_width);
  }
  return {.gathered = rounded(gathered), .communication = rounded(bytes)};
}

}  // namespace tessera
