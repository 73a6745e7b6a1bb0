#include "cost_models/transformers/saved_tensors.h"

#include <algorithm>

#include "cost_models/spec/families.h"
#include "cost_models/transformers/compressed_tensors.h"

namespace tessera {
namespace {

constexpr std::int64_t kWide = 4, kIndex = 8;  // bytes of fp32 and int64
constexpr std::int64_t kChosen = 4;            // of int32, by which sparse attention's keys go

// One model as it runs: the terms are named by the operators that keep them.
struct Counter {
  const ModelSpec& model;
  const FamilyFacts& facts;
  const ModuleFacts& modules;
  std::int64_t element;  // bytes of an element of the residual stream
  int ulysses;
  std::int64_t adapter_rank = 0;

  // A copy that autocast makes where it computes in fp32, and none where everything is fp32.
  std::int64_t widened() const { return element < kWide ? kWide : 0; }

  // Over `width` elements, of which a token has `count` such rows (heads).
  SavedBytes norm(std::int64_t width, std::int64_t count = 1) const {
    switch (model.norm) {
      case NormKind::rms:           // input in fp32, 1 / rms, what the weight multiplies
        if (modules.offset_norm) {  // 1 + weight is new
          return {count * (2 * kWide * width + kWide), kWide * width};
        }
        if (adapter_rank > 0) return {count * (kWide * width + kWide), 0};
        return {count * (kWide * width + kWide + (modules.wide_norm ? kWide : element) * width), 0};
      case NormKind::layer_norm:  // input, mean, 1 / deviation; weight and bias are cast
        return {count * (kWide * width + 2 * kWide), widened() * 2 * width};
      case NormKind::layer_norm_1p:  // the same with autocast off; 1 + weight is new
        return {count * (element * width + 2 * kWide), element * width};
    }
    return {};
  }

  SavedBytes rows(std::int64_t elements) const { return {elements * element, 0}; }

  // Of cosines and sines: elements that a token has of each, and bytes of one.
  std::int64_t rotated() const {
    return static_cast<std::int64_t>(
        static_cast<double>(model.mla ? model.mla->qk_rope_head_dim : model.head_dim) *
        (model.mla ? 1.0 : model.rope.rotated_fraction));
  }
  std::int64_t rotary_element() const {
    return modules.wide_rotary || facts.rope.complex ? kWide : element;
  }

  // A norm, and its output as the next projections' input.
  SavedBytes norm_of_stream() const {
    SavedBytes bytes = norm(model.hidden);
    bytes += rows(model.hidden);
    return bytes;
  }

  // Of Llama 4's layers: with positions a norm without weights of every head of queries and keys
  // (input in fp32, 1 / rms), without them the queries' scale; the mean of the layers.
  std::int64_t scaled_or_rotated() const {
    const auto full = static_cast<std::int64_t>(model.full_attention_layers.size());
    const std::int64_t heads = model.query_heads + model.kv_heads;
    const std::int64_t normed = model.qk_norm ? kWide * heads * (model.head_dim + 1) : 0;
    return (full * kWide + (model.layers - full) * normed) / model.layers;
  }

  // Flash attention's q, k, v, output and log-sum-exp (fp32 per head).
  SavedBytes attention(LayerKind kind) const {
    const std::int64_t q = model.query_heads, d = model.head_dim;
    const std::int64_t kv = std::max<std::int64_t>(model.kv_heads, ulysses > 1 ? ulysses : 0);
    SavedBytes bytes;
    bool output_copied = ulysses > 1;
    if (model.mla) {
      // Norms of the compressed queries and keys and values, whose outputs feed projections;
      // values are padded to the keys' head size and the output is cut back into a copy.
      for (const std::int64_t rank : {model.mla->q_lora_rank, model.mla->kv_lora_rank}) {
        if (rank == 0) continue;
        bytes += norm(rank);
        bytes += rows(rank);
      }
      bytes += rows(4 * q * d);
      if (model.indexer && !shares_choice(kind)) bytes.per_token += kChosen * model.indexer->chosen;
      output_copied = output_copied || value_head_dim(model) != d;
    } else {
      if (facts.rope.windows_alone) {
        bytes.per_token += scaled_or_rotated();
      } else if (model.qk_norm) {
        bytes += facts.whole_qk_norm ? norm(q * d) : norm(d, q);
        bytes += facts.whole_qk_norm ? norm(model.kv_heads * d) : norm(d, model.kv_heads);
      }
      bytes += rows(2 * q * d + 2 * kv * d);
      if (modules.layer_rotary) bytes.per_token += 2 * rotated() * rotary_element();
      if (modules.scaled_queries) bytes += rows(1);
      if (facts.gated_attention) bytes += rows(2 * q * d);  // the gate, and what it multiplied
    }
    if (output_copied) bytes += rows(q * value_head_dim(model));
    bytes.per_token += kWide * q;
    return bytes;
  }

  // Gated delta net. causal_conv1d_fn keeps its input (causal-conv1d 1.5,
  // causal_conv1d_interface.py). chunk_gated_delta_rule keeps queries and keys of every value head,
  // normalised, with their norms, values, summed decays, steps, and a row of 64 of each chunk's
  // inverse (flash-linear-attention 0.4, ops/gated_delta_rule/chunk.py). The decays' softplus keeps
  // input and output, all in fp32. The gated norm runs eagerly: its input, the gate and the gate's
  // silu in fp32; what is normalised, weighted and gated.
  SavedBytes linear_attention(const LinearAttentionSpec& linear) const {
    constexpr std::int64_t kChunk = 64;
    const std::int64_t heads = linear.value_heads, values = linear.values();
    SavedBytes bytes = rows(2 * linear.keys() + values);
    bytes += rows(2 * heads * linear.key_dim + values + heads + kChunk * heads);
    bytes.per_token += kWide * heads * 5;
    bytes.per_token += kWide * (3 * values + heads);
    bytes += rows(3 * values);
    bytes.once += 2 * kWide * heads;  // exp(A_log) and its negative
    return bytes;
  }

  // MiniMaxLightningAttention, block by block: the activation's input and output, of which queries,
  // keys and values are parts; each block's scores, decayed, the state that it reads with its
  // decayed queries, and its decayed keys, but for the first block's queries, whose state is zero,
  // and the last one's keys, whose state nobody reads; a state's decay in fp32. The norm of all
  // heads, its output, the gate, and what it gives.
  SavedBytes lightning_attention(const LinearAttentionSpec& linear) const {
    const std::int64_t heads = linear.value_heads, values = linear.values(), block = linear.block;
    const std::int64_t state = heads * linear.key_dim * linear.value_dim;
    SavedBytes bytes = rows(2 * (2 * linear.keys() + values) + 2 * linear.keys());
    bytes += rows(heads * block + state / block);
    bytes.per_token += kWide * heads / block;
    bytes.once -= 2 * kWide * heads + 2 * element * block * linear.keys();
    bytes += norm(values);
    bytes += rows(3 * values);
    return bytes;
  }

  // mamba_split_conv1d_scan_combined keeps the first projection's output, what the norm divides,
  // and its 1 / rms of every group in fp32 (mamba_ssm 2.2, ops/triton/ssd_combined.py); the rest is
  // computed again. A's exponential and its negative are in fp32.
  SavedBytes state_space(const StateSpaceSpec& mixer) const {
    SavedBytes bytes = rows(mixer.projected() + mixer.inner());
    bytes.per_token += kWide * mixer.groups;
    bytes.once += 2 * kWide * mixer.heads;
    return bytes;
  }

  // What mixes tokens.
  SavedBytes mixer(LayerKind kind) const {
    if (kind == LayerKind::state_space_alone) return state_space(*model.state_space);
    if (model.compressed) return saved_by_compressed(model, entries_of(kind), element);
    if (!model.linear || !is_linear(kind)) return attention(kind);
    return model.linear->block > 0 ? lightning_attention(*model.linear)
                                   : linear_attention(*model.linear);
  }

  // An MLP of `columns` for one of the token's rows, its input excepted.
  SavedBytes mlp(std::int64_t columns) const {
    switch (model.mlp) {
      case MlpKind::swiglu:  // gate, silu(gate), up, their product
      case MlpKind::geglu:   // the same of its gelu
        return rows((modules.clamped_gates ? 6 : 4) * columns);  // gate and up before it, too
      case MlpKind::clamped_swiglu:
        // Gate and up, both clamped, the sigmoid, the gated gate, up + 1, their product.
        return rows(7 * columns);
      case MlpKind::gelu:  // half the input, the product; in fp32 the input, tanh, 1 + tanh
        return {columns * (2 * element + 3 * kWide), 0};
      case MlpKind::squared_relu:  // relu, its square, and relu in fp32
        return {columns * (2 * element + widened()), 0};
    }
    return {};
  }

  // The router's scores and choice, for k experts of a token.
  SavedBytes router(const MoeSpec& moe) const {
    const std::int64_t k = moe.experts_per_token;
    SavedBytes bytes{kIndex * k, 0};               // the chosen experts
    if (modules.cast_router && element < kWide) {  // its input and weight, to fp32 and back
      bytes += rows(model.hidden);
      bytes.once += element * moe.experts * model.hidden;
    }
    if (modules.wide_router) {  // in the place of what no shared expert reads
      bytes.per_token += kWide * (model.hidden + 1);
      if (moe.shared_ffn == 0) bytes.per_token -= element * model.hidden;
    }
    if (moe.router_bias) {
      bytes += rows(k);  // softmax over the chosen
      return bytes;
    }
    if (moe.score == RouterScore::sqrt_softplus) {  // what each function keeps, in fp32
      bytes.per_token += kWide * (2 * moe.experts + 1 + k);
      return bytes;
    }
    const bool softmax = moe.score == RouterScore::softmax;
    const std::int64_t score = softmax || modules.wide_sigmoid ? kWide : element;
    bytes.per_token += score * moe.experts;
    if (softmax && moe.groups > 1) bytes.per_token += moe.experts;  // mask of groups
    if (moe.normalised && !modules.unnormalised) bytes.per_token += kWide + score * k;
    return bytes;
  }

  // Llama4TextMoe: every expert works on every token, multiplied by its score, 0 where it was not
  // chosen. The chosen experts, scores in fp32 and as they multiply, rows before and after that.
  SavedBytes every_expert(const MoeSpec& moe) const {
    SavedBytes bytes = mlp(moe.expert_ffn);
    bytes += rows(2 * model.hidden + 1);
    bytes.per_token += kWide;
    bytes.per_token *= moe.experts;
    bytes.per_token += kIndex * moe.experts_per_token;
    bytes += mlp(moe.shared_ffn);
    return bytes;
  }

  // grouped_mm_experts_forward: rows sorted by expert, k of a token.
  SavedBytes experts(const MoeSpec& moe) const {
    if (modules.every_expert) return every_expert(moe);
    const std::int64_t k = moe.experts_per_token;
    SavedBytes bytes = mlp(moe.expert_ffn);
    bytes += rows(2 * moe.width(model.hidden));                // inputs and outputs
    bytes.per_token += modules.wide_scores ? kWide : element;  // the weight of a row
    bytes.per_token += 3 * kIndex + 1;                         // places, there and back; a mask
    if (moe.router_bias) bytes.per_token += kIndex;            // the expert, for its biases
    bytes.per_token *= k;
    bytes.once += static_cast<std::int64_t>(sizeof(std::int32_t)) * moe.experts;  // offsets
    bytes += router(moe);
    if (moe.shared_ffn > 0) bytes += mlp(moe.shared_ffn);
    if (moe.shared_gate) bytes += rows(1 + model.hidden);  // the gate and what it multiplies
    if (moe.latent > 0) bytes += rows(moe.latent);         // what is projected back
    return bytes;
  }
};

// Adapters beside a layer's linear weights; routed experts are no modules of their own.
std::int64_t adapters_of(const ModelSpec& model, LayerKind kind) {
  const std::int64_t mixer = model.mla ? 5 : 4;
  const std::int64_t mlp = model.mlp == MlpKind::gelu || model.mlp == MlpKind::squared_relu ? 2 : 3;
  const bool sparse = is_sparse(kind) && model.moe;
  return (has_mixer(kind) ? mixer : 0) +
         (has_mlp(kind) && (!sparse || model.moe->shared_ffn > 0) ? mlp : 0);
}

// Bytes that an MLP has at once for each of its columns where these are most.
struct MlpPeaks {
  std::int64_t forward = 0, backward = 0;
};

MlpPeaks mlp_peaks(MlpKind kind, std::int64_t element) {
  switch (kind) {
    case MlpKind::swiglu:  // silu(gate), up and their product; gradients of the last two
    case MlpKind::geglu:
      return {3 * element, 2 * element};
    case MlpKind::clamped_swiglu:  // gate and up twice, and what is made of them
      return {8 * element, 2 * element};
    case MlpKind::gelu:
    case MlpKind::squared_relu:  // the power in fp32, its input there, and the 16-bit input
      return {element + 2 * kWide, 2 * kWide};
  }
  return {};
}

// Rows of experts: their inputs and outputs as they come and as they are sorted, in fp32 where
// their weights are; gate and up lie twice (masked_fill).
MlpPeaks expert_peaks(const Counter& count, const MoeSpec& moe) {
  const std::int64_t worked = count.modules.every_expert ? moe.experts : moe.experts_per_token;
  const std::int64_t rows = worked * moe.width(count.model.hidden) * count.element;
  const std::int64_t widened = count.modules.wide_scores && count.element < kWide ? 2 * rows : 0;
  const MlpPeaks mlp = mlp_peaks(count.model.mlp, count.element);
  const std::int64_t columns = worked * moe.expert_ffn;
  return {std::max(4 * rows + widened, rows + columns * (mlp.forward + count.element)),
          std::max(3 * rows + widened, columns * mlp.backward)};
}

// What a mixer that is a layer of its own projects from the stream, and its output.
std::int64_t mixed_alone(const ModelSpec& model, LayerKind kind, std::int64_t element) {
  if (kind == LayerKind::state_space_alone) {
    return element * (model.state_space->projected() + model.state_space->inner());
  }
  return element * model.head_dim * 2 * (model.query_heads + model.kv_heads);
}

Counter counter_of(const ModelSpec& model, const ModuleRun& run) {
  const FamilyFacts& facts = facts_of(model.family);
  return {model, facts, facts.modules, size_of(run.type), run.ulysses, run.adapter_rank};
}

}  // namespace

SavedBytes saved_by_layer(const ModelSpec& model, LayerKind kind, const ModuleRun& run) {
  const Counter count = counter_of(model, run);
  const LayerNorms norms = count.facts.norms;
  const int parts = is_one_block(kind) ? 1 : 2;
  SavedBytes bytes = count.rows(parts * model.hidden);  // what attention and MLP read
  const int normed = norms == LayerNorms::around ? 4 : parts;
  for (int i = 0; i < normed; ++i) bytes += count.norm(model.hidden);
  if (has_mixer(kind)) bytes += count.mixer(kind);
  if (has_mlp(kind)) {
    bytes += is_sparse(kind) && model.moe ? count.experts(*model.moe) : count.mlp(model.ffn);
  }
  for (int place = 0; model.hyper && place < parts; ++place) {
    bytes += saved_by_streams(model, count.element);
  }
  bytes.per_token += count.modules.dropout_masks * model.hidden;
  bytes += count.rows(run.adapter_rank * adapters_of(model, kind));
  return bytes;
}

SavedBytes saved_by_checkpoint(const ModelSpec& model, const ModuleRun& run) {
  return counter_of(model, run).rows(stream_width(model));
}

SavedBytes saved_outside_layers(const ModelSpec& model, const ModuleRun& run) {
  const Counter count = counter_of(model, run);
  SavedBytes bytes = count.norm_of_stream();
  if (model.hyper) bytes += saved_by_last_streams(model, count.element);
  bytes.per_token += kIndex * (model.learned_positions ? 2 : 1);
  const bool nowhere =
      count.facts.rope.none || model.compressed ||
      count.modules.layer_rotary ||  // tables of each layer's own
      (count.facts.rope.windows_alone &&
       static_cast<std::int64_t>(model.full_attention_layers.size()) == model.layers);
  if (!model.learned_positions && !nowhere) {
    const bool mixed = model.sliding_window > 0 && !model.full_attention_layers.empty();
    const std::int64_t tables = count.facts.rope.by_window && mixed ? 2 : 1;
    const bool half = count.modules.half_rotary || count.facts.rope.complex;
    // Cosines and sines.
    bytes.per_token += tables * 2 * count.rotated() / (half ? 2 : 1) * count.rotary_element();
  }
  return bytes;
}

std::int64_t forward_transients(const ModelSpec& model, LayerKind kind, const ModuleRun& run) {
  const Counter count = counter_of(model, run);
  const std::int64_t stream = stream_width(model) * count.element;
  if (!has_mlp(kind)) return 4 * stream + mixed_alone(model, kind, count.element);
  if (!is_sparse(kind) || !model.moe) {
    return 4 * stream + model.ffn * mlp_peaks(model.mlp, count.element).forward;
  }
  return 4 * stream + expert_peaks(count, *model.moe).forward +
         (model.moe->shared_ffn > 0 ? stream : 0);
}

std::int64_t backward_transients(const ModelSpec& model, LayerKind kind, const ModuleRun& run) {
  const Counter count = counter_of(model, run);
  const std::int64_t stream = stream_width(model) * count.element;
  if (!has_mlp(kind)) return stream + mixed_alone(model, kind, count.element);
  if (!is_sparse(kind) || !model.moe) {
    return stream + model.ffn * mlp_peaks(model.mlp, count.element).backward;
  }
  return stream + expert_peaks(count, *model.moe).backward;
}

std::int64_t last_norm_transients(const ModelSpec& model) { return 4 * kWide * model.hidden; }

}  // namespace tessera
