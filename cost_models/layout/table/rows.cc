#include "cost_models/layout/table/rows.h"

#include <utility>

namespace tessera {
namespace {

Parameter at(StagePlace place, Parameter row) {
  row.place = place;
  return row;
}

}  // namespace

Rows::Rows(const ModelSpec& model)
    : model_(model), facts_(facts_of(model.family)), names_(facts_.tensors) {}

void Rows::embedding() {
  const bool shared = model_.tied_embeddings && model_.head == ModelHead::language_model;
  // Layers of multi-token prediction look up embeddings, too.
  const bool last = shared || held_mtp_layers(model_) > 0;
  const StagePlace place = last ? StagePlace::embedding_and_head : StagePlace::embedding;
  const std::string name(names_.embedding);
  add(at(place, cut(matrix(name, model_.vocab, model_.hidden), 0, SplitUnit::vocab_rows)));
  if (model_.learned_positions) {
    add(at(StagePlace::embedding,
           matrix("transformer.wpe.weight", model_.max_positions, model_.hidden)));
  }
  if (model_.vision) vision(*model_.vision);
}

void Rows::layer(std::int64_t index) {
  layer_ = index;
  prefix_ = std::string(names_.layers) + std::to_string(index) + ".";
  names_.layer == LayerTensors::conv1d ? conv1d_layer() : layer_of(kind_of_layer(model_, index));
  layer_ = -1;
  prefix_.clear();
}

void Rows::layer_of(LayerKind kind) {
  if (has_mixer(kind)) mixer(kind);
  if (is_sparse(kind)) {
    experts(*model_.moe, is_hashed(kind));
  } else if (has_mlp(kind)) {
    mlp(std::string(names_.mlp), model_.ffn);
  }
  layer_norms();
  if (!model_.hyper) return;
  for (const char* const place : {"hc_attn_", "hc_ffn_"}) {
    hyper_connection(place, model_.hyper->weights(), 3);
  }
}

void Rows::prediction_layer(std::int64_t index) {
  const std::size_t first = rows_.size();
  const std::string layer =
      std::string(names_.layers) + std::to_string(model_.layers + index) + ".";
  prefix_ = layer;
  norm("enorm");
  norm("hnorm");
  add(cut(matrix("eh_proj.weight", model_.hidden, 2 * model_.hidden), 0, SplitUnit::ffn_columns,
          model_.hidden));
  const std::vector<LayerKind> kinds = mtp_kinds(model_);
  for (std::size_t block = 0; block < kinds.size(); ++block) {
    if (kinds.size() > 1) prefix_ = layer + "layers." + std::to_string(block) + ".";
    layer_of(kinds[block]);
  }
  prefix_ = layer;
  norm("shared_head.norm");
  prefix_.clear();
  for (std::size_t i = first; i < rows_.size(); ++i) rows_[i].place = StagePlace::head;
}

void Rows::mixer(LayerKind kind) {
  if (kind == LayerKind::state_space_alone) {
    state_space(*model_.state_space);
  } else if (is_linear(kind)) {
    model_.linear->block > 0 ? lightning_attention(*model_.linear)
                             : linear_attention(*model_.linear);
  } else if (model_.compressed) {
    compressed_attention(*model_.compressed, entries_of(kind));
  } else {
    model_.mla ? latent_attention(*model_.mla, shares_choice(kind)) : attention();
  }
}

void Rows::head() {
  const size_t first = rows_.size();
  norm(std::string(names_.last_norm));
  if (model_.hyper) hyper_connection("model.hc_head.hc_", model_.hyper->streams, 1);
  if (model_.head == ModelHead::value) {
    add(matrix(std::string(names_.value_head), 1, model_.hidden));
    if (!names_.value_head_bias.empty()) add(vector(std::string(names_.value_head_bias), 1));
  } else if (!model_.tied_embeddings) {
    add(cut(matrix(std::string(names_.head), model_.vocab, model_.hidden), 0,
            SplitUnit::vocab_rows));
  }
  for (size_t i = first; i < rows_.size(); ++i) rows_[i].place = StagePlace::head;
}

void Rows::norm(const std::string& name) {
  add(vector(name + ".weight", model_.hidden));
  if (has_bias(model_.norm)) add(vector(name + ".bias", model_.hidden));
}

void Rows::layer_norms() {
  const NormNames& names = names_.norms;
  if (facts_.norms != LayerNorms::after) norm(std::string(names.first));
  if (facts_.norms == LayerNorms::block) return;
  norm(std::string(names.after_attention));
  if (facts_.norms == LayerNorms::around) norm(std::string(names.before_mlp));
  if (facts_.norms != LayerNorms::before) norm(std::string(names.after_mlp));
}

// Conv1D weights: [in, out]; c_attn holds queries, keys and values side by side.
void Rows::conv1d_layer() {
  const std::int64_t h = model_.hidden;
  const auto side = [&](const std::string& name, bool bias, int position) {
    const SplitUnit unit = position == 0 ? SplitUnit::query_heads : SplitUnit::kv_heads;
    Parameter row = bias ? vector(name, h) : matrix(name, h, h);
    const int dim = bias ? 0 : 1;
    row.part = position;
    add(sliced(cut(std::move(row), dim, unit), std::string(1, "qkv"[position]), dim, position * h));
  };
  for (int i = 0; i < 3; ++i) side("attn.c_attn.weight", false, i);
  for (int i = 0; i < 3; ++i) side("attn.c_attn.bias", true, i);
  add(cut(matrix("attn.c_proj.weight", h, h), 0, SplitUnit::query_heads));
  add(vector("attn.c_proj.bias", h));
  add(cut(matrix("mlp.c_fc.weight", h, model_.ffn), 1, SplitUnit::ffn_columns));
  add(cut(vector("mlp.c_fc.bias", model_.ffn), 0, SplitUnit::ffn_columns));
  add(cut(matrix("mlp.c_proj.weight", model_.ffn, h), 0, SplitUnit::ffn_columns));
  add(vector("mlp.c_proj.bias", h));
  norm("ln_1");
  norm("ln_2");
}

Parameter Rows::matrix(const std::string& name, std::int64_t out, std::int64_t in) const {
  return {.name = prefix_ + name, .shape = {out, in}, .storage = prefix_ + name, .layer = layer_};
}

Parameter Rows::vector(const std::string& name, std::int64_t size) const {
  return {.name = prefix_ + name,
          .shape = {size},
          .storage = prefix_ + name,
          .layer = layer_,
          .decayed = false};
}

Parameter Rows::cut(Parameter row, int dim, SplitUnit unit) const {
  switch (unit) {
    case SplitUnit::query_heads:
      return cut(std::move(row), dim, unit, model_.query_heads);
    case SplitUnit::kv_heads:
      row.queries_per_unit = model_.query_heads / model_.kv_heads;
      return cut(std::move(row), dim, unit, model_.kv_heads);
    case SplitUnit::ffn_columns:
      return cut(std::move(row), dim, unit, model_.ffn);
    case SplitUnit::vocab_rows:
      return cut(std::move(row), dim, unit, model_.vocab);
    case SplitUnit::expert_columns:
    case SplitUnit::linear_heads:
    case SplitUnit::none:
      break;
  }
  return row;
}

Parameter Rows::cut(Parameter row, int dim, SplitUnit unit, std::int64_t units) {
  row.split_dim = dim;
  row.unit = unit;
  row.units = units;
  row.unit_size = row.shape[static_cast<size_t>(dim)] / units;
  return row;
}

Parameter Rows::fused(Parameter row, const std::string& storage, int position) const {
  row.storage = prefix_ + storage + row.name.substr(row.name.rfind('.'));
  row.part = position;
  return row;
}

Parameter Rows::sliced(Parameter row, const std::string& part, int dim, std::int64_t offset) {
  row.slice = CheckpointSlice{.tensor = row.name, .dim = dim, .offset = offset};
  row.name += "[" + part + "]";
  return row;
}

}  // namespace tessera
