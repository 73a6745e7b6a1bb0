// Attention of all kinds in the parameter table: by heads, latent, and linear.
#include <array>
#include <utility>

#include "cost_models/layout/table/rows.h"

namespace tessera {
namespace {

constexpr std::array<const char*, 3> kParts{"q", "k", "v"};

}  // namespace

// A gate on the output comes from the second half of each head of q_proj.
void Rows::attention() {
  const std::string attn(names_.attention);
  const std::int64_t queries = model_.query_heads * model_.head_dim;
  const std::int64_t keys = model_.kv_heads * model_.head_dim;
  const std::array widths{facts_.gated_attention ? 2 * queries : queries, keys, keys};
  const bool joined = names_.layer == LayerTensors::joined;
  const auto projections = [&](bool bias) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string name =
          attn + (joined ? "qkv" : kParts[i]) + "_proj" + (bias ? ".bias" : ".weight");
      Parameter row = bias ? vector(name, widths[i]) : matrix(name, widths[i], model_.hidden);
      const SplitUnit unit = i == 0 ? SplitUnit::query_heads : SplitUnit::kv_heads;
      row = fused(cut(std::move(row), 0, unit), attn + "qkv_proj", static_cast<int>(i));
      add(joined ? sliced(std::move(row), kParts[i], 0, offset) : std::move(row));
      offset += widths[i];
    }
  };
  projections(false);
  if (model_.qkv_bias) projections(true);
  add(cut(matrix(attn + "o_proj.weight", model_.hidden, queries), 1, SplitUnit::query_heads));
  if (model_.output_bias) add(vector(attn + "o_proj.bias", model_.hidden));
  if (model_.qk_norm && !facts_.bare_qk_norm) {
    const std::string query(names_.query_norm), key(names_.key_norm);
    add(vector(attn + query + ".weight", facts_.whole_qk_norm ? queries : model_.head_dim));
    add(vector(attn + key + ".weight", facts_.whole_qk_norm ? keys : model_.head_dim));
  }
  if (model_.attention_sinks) {
    add(cut(vector(attn + "sinks", model_.query_heads), 0, SplitUnit::query_heads));
  }
}

// The compressions are the same on every rank; what leads out of them is cut by heads
// (arXiv:2405.04434, and Megatron's and vLLM's practice).
void Rows::latent_attention(const MlaSpec& mla, bool shares_choice) {
  const std::string attn = "self_attn.";
  const std::int64_t heads = model_.query_heads;
  const auto compression = [&](const std::string& name, std::int64_t size, int position) {
    add(fused(matrix(attn + name + ".weight", size, model_.hidden), attn + "qkv_a_proj", position));
  };
  const auto by_heads = [&](const std::string& name, std::int64_t per_head, std::int64_t in) {
    add(cut(matrix(attn + name + ".weight", heads * per_head, in), 0, SplitUnit::query_heads));
  };
  const std::int64_t keys = mla.kv_lora_rank + mla.qk_rope_head_dim;
  if (mla.q_lora_rank > 0) compression("q_a_proj", mla.q_lora_rank, 0);
  compression("kv_a_proj_with_mqa", keys, 1);
  if (model_.qkv_bias) {
    const std::string storage = attn + "qkv_a_proj";
    if (mla.q_lora_rank > 0) {
      add(fused(vector(attn + "q_a_proj.bias", mla.q_lora_rank), storage, 0));
    }
    add(fused(vector(attn + "kv_a_proj_with_mqa.bias", keys), storage, 1));
  }
  if (mla.q_lora_rank > 0) {
    add(vector(attn + "q_a_layernorm.weight", mla.q_lora_rank));
    by_heads("q_b_proj", model_.head_dim, mla.q_lora_rank);
  } else {
    by_heads("q_proj", model_.head_dim, model_.hidden);
  }
  add(vector(attn + "kv_a_layernorm.weight", mla.kv_lora_rank));
  by_heads("kv_b_proj", mla.qk_nope_head_dim + mla.v_head_dim, mla.kv_lora_rank);
  add(cut(matrix(attn + "o_proj.weight", model_.hidden, heads * mla.v_head_dim), 1,
          SplitUnit::query_heads));
  if (model_.output_bias) add(vector(attn + "o_proj.bias", model_.hidden));
  if (model_.indexer && !shares_choice) indexer(*model_.indexer, mla.q_lora_rank);
}

// The same on every rank (vLLM's and Megatron-LM's practice).
void Rows::indexer(const IndexerSpec& indexer, std::int64_t queries) {
  const std::string name = "self_attn.indexer.";
  add(matrix(name + "wq_b.weight", indexer.heads * indexer.head_dim, queries));
  add(matrix(name + "wk.weight", indexer.head_dim, model_.hidden));
  add(vector(name + "k_norm.weight", indexer.head_dim));
  add(vector(name + "k_norm.bias", indexer.head_dim));
  add(matrix(name + "weights_proj.weight", indexer.heads, model_.hidden));
}

// Cut by heads, each with its queries, keys and values; the norm spans all heads.
void Rows::lightning_attention(const LinearAttentionSpec& linear) {
  const std::string attn(names_.attention);
  const std::int64_t values = linear.values(), h = model_.hidden;
  const auto by_heads = [&](Parameter row, int dim = 0) {
    add(cut(std::move(row), dim, SplitUnit::linear_heads, linear.key_heads));
  };
  by_heads(vector(attn + "norm.weight", values));
  by_heads(matrix(attn + "qkv_proj.weight", 2 * linear.keys() + values, h));
  by_heads(matrix(attn + "out_proj.weight", h, values), 1);
  by_heads(matrix(attn + "output_gate.weight", values, h));
}

// Cut by key heads, each with the value heads that it serves (vLLM's and Megatron-LM's practice).
void Rows::linear_attention(const LinearAttentionSpec& linear) {
  const std::string net = "linear_attn.";
  const std::int64_t keys = linear.keys(), values = linear.values(), h = model_.hidden;
  const auto by_heads = [&](Parameter row, int dim = 0) {
    add(cut(std::move(row), dim, SplitUnit::linear_heads, linear.key_heads));
  };
  // Queries, keys and values lie one above the other.
  const auto mixed = [&](const std::string& name, std::vector<std::int64_t> rest) {
    const std::array widths{keys, keys, values};
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      Parameter row = matrix(net + name, 0, 0);
      row.shape = {widths[i]};
      row.shape.insert(row.shape.end(), rest.begin(), rest.end());
      row.part = static_cast<int>(i);
      by_heads(sliced(std::move(row), kParts[i], 0, offset));
      offset += widths[i];
    }
  };
  by_heads(vector(net + "dt_bias", linear.value_heads));
  by_heads(vector(net + "A_log", linear.value_heads));
  mixed("conv1d.weight", {1, linear.kernel});
  if (names_.linear == LinearTensors::together) {
    by_heads(matrix(net + "in_proj_qkvz.weight", 2 * (keys + values), h));
    by_heads(matrix(net + "in_proj_ba.weight", 2 * linear.value_heads, h));
  } else {
    mixed("in_proj_qkv.weight", {h});
    by_heads(matrix(net + "in_proj_z.weight", values, h));
    by_heads(matrix(net + "in_proj_b.weight", linear.value_heads, h));
    by_heads(matrix(net + "in_proj_a.weight", linear.value_heads, h));
  }
  add(vector(net + "norm.weight", linear.value_dim));
  by_heads(matrix(net + "out_proj.weight", h, values), 1);
}

}  // namespace tessera
