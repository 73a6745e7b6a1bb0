#include "cost_models/layer_shape.h"

#include "cost_models/spec/families.h"

namespace tessera {

namespace {

void add_choice(const ModelSpec& model, LayerKind kind, LayerShape& shape) {
  if (!model.indexer || (model.compressed && entries_of(kind) != LayerEntries::chosen)) return;
  shape.chosen = model.indexer->chosen;
  if (shares_choice(kind)) return;
  shape.index_heads = model.indexer->heads;
  shape.index_dim = model.indexer->head_dim;
}

void add_compressed(const CompressedAttentionSpec& attention, LayerKind kind, LayerShape& shape) {
  shape.query_rank = attention.query_rank;
  shape.rope_dim = attention.rope_dim;
  shape.output_groups = attention.groups;
  shape.output_rank = attention.group_rank;
  shape.key_window = attention.window;
  const LayerEntries entries = entries_of(kind);
  if (entries == LayerEntries::none) return;
  const bool chosen = entries == LayerEntries::chosen;
  shape.entry_rate = chosen ? attention.chosen_rate : attention.all_rate;
  shape.entry_keys = chosen ? 2 : 1;  // of its own entry and of the next
}

}  // namespace

LayerShape layer_shape(const ModelSpec& model, LayerKind kind) {
  LayerShape shape;
  shape.hidden = model.hidden;
  shape.query_heads = model.query_heads;
  shape.kv_heads = model.kv_heads;
  shape.key_dim = model.head_dim;
  shape.value_dim = value_head_dim(model);
  if (model.mla) {
    shape.query_rank = model.mla->q_lora_rank;
    shape.kv_rank = model.mla->kv_lora_rank;
    shape.rope_dim = model.mla->qk_rope_head_dim;
  }
  add_choice(model, kind, shape);
  if (model.compressed) add_compressed(*model.compressed, kind, shape);
  if (model.hyper) {
    shape.streams = model.hyper->streams;
    shape.stream_weights = model.hyper->weights();
  }
  shape.window = model.sliding_window;
  shape.chunked = model.chunked_attention;
  if (model.sliding_window > 0) {
    shape.full_share =
        static_cast<double>(model.full_attention_layers.size()) / static_cast<double>(model.layers);
  }
  const FamilyFacts& facts = facts_of(model.family);
  shape.norms = facts.norms == LayerNorms::around ? 4 : 2;
  if (is_one_block(kind)) shape.norms = 1;
  shape.mixes = has_mixer(kind);
  shape.rotary = facts.rope.none ? 0 : facts.rope.windows_alone ? 1 - shape.full_share : 1;
  shape.gated_output = facts.gated_attention;
  if (model.linear && is_linear(kind)) {
    shape.linear_keys = model.linear->keys();
    shape.linear_values = model.linear->values();
    shape.linear_heads = model.linear->value_heads;
    shape.linear_key_dim = model.linear->key_dim;
    shape.linear_value_dim = model.linear->value_dim;
    shape.kernel = model.linear->kernel;
    shape.linear_block = model.linear->block;
  }
  if (model.state_space && kind == LayerKind::state_space_alone) {
    shape.state_heads = model.state_space->heads;
    shape.state_head_dim = model.state_space->head_dim;
    shape.state_groups = model.state_space->groups;
    shape.state_size = model.state_space->state;
    shape.state_chunk = model.state_space->chunk;
    shape.kernel = model.state_space->kernel;
  }
  shape.gated = is_gated(model.mlp);
  shape.ffn = has_mlp(kind) ? model.ffn : 0;
  if (is_sparse(kind) && model.moe) {
    shape.ffn = model.moe->shared_ffn;
    shape.experts = model.moe->experts;
    shape.experts_per_token = model.moe->experts_per_token;
    shape.expert_ffn = model.moe->expert_ffn;
    shape.expert_width = model.moe->width(model.hidden);
  }
  return shape;
}

}  // namespace tessera
