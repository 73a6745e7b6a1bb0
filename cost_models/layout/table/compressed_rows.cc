// DeepSeek-V4's attention and its residual streams in the parameter table.
#include <utility>

#include "cost_models/layout/table/rows.h"

namespace tessera {

// Query heads and groups of the output are cut; the one head of keys, what makes entries and who
// chooses them are the same on every rank (vLLM's and Megatron-LM's practice).
void Rows::compressed_attention(const CompressedAttentionSpec& attention, LayerEntries entries) {
  const std::string attn(names_.attention);
  const std::int64_t queries = model_.query_heads * model_.head_dim;
  add(cut(vector(attn + "attn_sink", model_.query_heads), 0, SplitUnit::query_heads));
  add(matrix(attn + "wq_a.weight", attention.query_rank, model_.hidden));
  add(vector(attn + "q_norm.weight", attention.query_rank));
  add(cut(matrix(attn + "wq_b.weight", queries, attention.query_rank), 0, SplitUnit::query_heads));
  add(matrix(attn + "wkv.weight", model_.head_dim, model_.hidden));
  add(vector(attn + "norm.weight", model_.head_dim));
  const std::int64_t inner = attention.groups * attention.group_rank;
  add(cut(matrix(attn + "wo_a.weight", inner, queries / attention.groups), 0,
          SplitUnit::query_heads, attention.groups));
  add(cut(matrix(attn + "wo_b.weight", model_.hidden, inner), 1, SplitUnit::query_heads,
          attention.groups));
  if (entries == LayerEntries::all) {
    compressor(attn + "compressor.", model_.head_dim, attention.all_rate, 1);
  }
  if (entries == LayerEntries::chosen) {
    compressor(attn + "compressor.", model_.head_dim, attention.chosen_rate, 2);
    entry_indexer(*model_.indexer, attention);
  }
}

// What an entry is made of: `series` keys of each token, and as many weights.
void Rows::compressor(const std::string& name, std::int64_t head_dim, std::int64_t rate,
                      int series) {
  Parameter bias = matrix(name + "ape", rate, series * head_dim);
  bias.decayed = false;
  add(std::move(bias));
  add(matrix(name + "wkv.weight", series * head_dim, model_.hidden));
  add(matrix(name + "wgate.weight", series * head_dim, model_.hidden));
  add(vector(name + "norm.weight", head_dim));
}

void Rows::entry_indexer(const IndexerSpec& indexer, const CompressedAttentionSpec& attention) {
  const std::string name = std::string(names_.attention) + "indexer.";
  compressor(name + "compressor.", indexer.head_dim, attention.chosen_rate, 2);
  add(matrix(name + "wq_b.weight", indexer.heads * indexer.head_dim, attention.query_rank));
  add(matrix(name + "weights_proj.weight", indexer.heads, model_.hidden));
}

// The same on every rank: it reads whole streams.
void Rows::hyper_connection(const std::string& name, std::int64_t weights, std::int64_t scales) {
  add(matrix(name + "fn", weights, model_.hyper->streams * model_.hidden));
  add(vector(name + "base", weights));
  add(vector(name + "scale", scales));
}

}  // namespace tessera
