#include "cost_models/layout/parameter_table.h"

#include <utility>

namespace tessera {
namespace {

/// Collects the rows of one model in table order.
class Rows {
 public:
  explicit Rows(const ModelSpec& model) : model_(model) {}

  void embedding() {
    const bool shared = model_.tied_embeddings && model_.head == ModelHead::language_model;
    Parameter row = matrix("model.embed_tokens.weight", model_.vocab, model_.hidden);
    row.place = shared ? StagePlace::embedding_and_head : StagePlace::embedding;
    add(cut(row, 0, SplitUnit::vocab_rows));
  }

  void layer(std::int64_t index) {
    layer_ = index;
    prefix_ = "model.layers." + std::to_string(index) + ".";
    attention();
    mlp();
    add(vector("input_layernorm.weight", model_.hidden));
    add(vector("post_attention_layernorm.weight", model_.hidden));
    layer_ = -1;
    prefix_.clear();
  }

  void head() {
    Parameter norm = vector("model.norm.weight", model_.hidden);
    norm.place = StagePlace::head;
    add(norm);
    if (model_.head == ModelHead::value) {
      Parameter score = matrix("score.weight", 1, model_.hidden);
      score.place = StagePlace::head;
      add(score);
    } else if (!model_.tied_embeddings) {
      Parameter projection = matrix("lm_head.weight", model_.vocab, model_.hidden);
      projection.place = StagePlace::head;
      add(cut(projection, 0, SplitUnit::vocab_rows));
    }
  }

  std::vector<Parameter> take() { return std::move(rows_); }

 private:
  void attention() {
    const std::int64_t queries = model_.query_heads * model_.head_dim;
    const std::int64_t keys = model_.kv_heads * model_.head_dim;
    const std::string attn = "self_attn.";
    const auto part = [&](Parameter row, int position) {
      const SplitUnit unit = position == 0 ? SplitUnit::query_heads : SplitUnit::kv_heads;
      add(fused(cut(std::move(row), 0, unit), attn + "qkv_proj", position));
    };
    part(matrix(attn + "q_proj.weight", queries, model_.hidden), 0);
    part(matrix(attn + "k_proj.weight", keys, model_.hidden), 1);
    part(matrix(attn + "v_proj.weight", keys, model_.hidden), 2);
    if (model_.qkv_bias) {
      part(vector(attn + "q_proj.bias", queries), 0);
      part(vector(attn + "k_proj.bias", keys), 1);
      part(vector(attn + "v_proj.bias", keys), 2);
    }
    add(cut(matrix(attn + "o_proj.weight", model_.hidden, queries), 1, SplitUnit::query_heads));
    if (model_.output_bias) add(vector(attn + "o_proj.bias", model_.hidden));
    if (model_.qk_norm) {
      add(vector(attn + "q_norm.weight", model_.head_dim));
      add(vector(attn + "k_norm.weight", model_.head_dim));
    }
  }

  void mlp() {
    const auto part = [&](Parameter row, int position) {
      add(fused(cut(std::move(row), 0, SplitUnit::ffn_columns), "mlp.gate_up_proj", position));
    };
    part(matrix("mlp.gate_proj.weight", model_.ffn, model_.hidden), 0);
    part(matrix("mlp.up_proj.weight", model_.ffn, model_.hidden), 1);
    if (model_.mlp_bias) {
      part(vector("mlp.gate_proj.bias", model_.ffn), 0);
      part(vector("mlp.up_proj.bias", model_.ffn), 1);
    }
    add(cut(matrix("mlp.down_proj.weight", model_.hidden, model_.ffn), 1, SplitUnit::ffn_columns));
    if (model_.mlp_bias) add(vector("mlp.down_proj.bias", model_.hidden));
  }

  Parameter matrix(const std::string& name, std::int64_t out, std::int64_t in) const {
    return {.name = prefix_ + name, .shape = {out, in}, .storage = prefix_ + name, .layer = layer_};
  }

  /// Biases and norms; replicated unless cut, and never decayed.
  Parameter vector(const std::string& name, std::int64_t size) const {
    return {.name = prefix_ + name,
            .shape = {size},
            .storage = prefix_ + name,
            .layer = layer_,
            .decayed = false};
  }

  Parameter cut(Parameter row, int dim, SplitUnit unit) const {
    row.split_dim = dim;
    row.unit = unit;
    switch (unit) {
      case SplitUnit::query_heads:
        row.units = model_.query_heads;
        break;
      case SplitUnit::kv_heads:
        row.units = model_.kv_heads;
        row.queries_per_unit = model_.query_heads / model_.kv_heads;
        break;
      case SplitUnit::ffn_columns:
        row.units = model_.ffn;
        break;
      case SplitUnit::vocab_rows:
        row.units = model_.vocab;
        break;
      case SplitUnit::none:
        return row;
    }
    row.unit_size = row.shape[static_cast<size_t>(dim)] / row.units;
    return row;
  }

  Parameter fused(Parameter row, const std::string& storage, int position) const {
    row.storage = prefix_ + storage + row.name.substr(row.name.rfind('.'));
    row.part = position;
    return row;
  }

  void add(Parameter row) { rows_.push_back(std::move(row)); }

  const ModelSpec& model_;
  std::int64_t layer_ = -1;
  std::string prefix_;
  std::vector<Parameter> rows_;
};

}  // namespace

std::int64_t Parameter::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t side : shape) product *= side;
  return product;
}

std::optional<int> ParameterTable::find(const std::string& name) const {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

std::int64_t ParameterTable::elements() const {
  std::int64_t sum = 0;
  for (const Parameter& row : rows) sum += row.elements();
  return sum;
}

ParameterTable parameter_table(const ModelSpec& model) {
  Rows rows(model);
  rows.embedding();
  for (std::int64_t layer = 0; layer < model.layers; ++layer) rows.layer(layer);
  rows.head();
  return {.model = model, .rows = rows.take()};
}

std::int64_t parameter_count(const ModelSpec& model) { return parameter_table(model).elements(); }

}  // namespace tessera
