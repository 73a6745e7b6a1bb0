#include "cost_models/layout/parameter_table.h"

#include <algorithm>
#include <utility>

#include "cost_models/spec/families.h"

namespace tessera {
namespace {

/// Collects the rows of one model in table order.
class Rows {
 public:
  explicit Rows(const ModelSpec& model) : model_(model), names_(facts_of(model.family).tensors) {}

  void embedding() {
    const bool shared = model_.tied_embeddings && model_.head == ModelHead::language_model;
    const StagePlace place = shared ? StagePlace::embedding_and_head : StagePlace::embedding;
    const std::string name(names_.embedding);
    add(at(place, cut(matrix(name, model_.vocab, model_.hidden), 0, SplitUnit::vocab_rows)));
    if (model_.learned_positions) {
      add(at(StagePlace::embedding,
             matrix("transformer.wpe.weight", model_.max_positions, model_.hidden)));
    }
    if (model_.vision) vision(*model_.vision);
  }

  void layer(std::int64_t index) {
    layer_ = index;
    prefix_ = std::string(names_.layers) + std::to_string(index) + ".";
    if (names_.layer == LayerTensors::conv1d) {
      conv1d_layer();
    } else {
      model_.mla ? latent_attention(*model_.mla) : attention();
      if (names_.experts == ExpertTensors::stacked) {
        stacked_experts(*model_.moe);
      } else if (is_moe_layer(model_, index)) {
        experts(*model_.moe);
      } else {
        mlp("mlp.", model_.ffn);
      }
      norm("input_layernorm");
      norm("post_attention_layernorm");
    }
    layer_ = -1;
    prefix_.clear();
  }

  void head() {
    const size_t first = rows_.size();
    norm(std::string(names_.last_norm));
    if (model_.head == ModelHead::value) {
      add(matrix(std::string(names_.value_head), 1, model_.hidden));
      if (!names_.value_head_bias.empty()) add(vector(std::string(names_.value_head_bias), 1));
    } else if (!model_.tied_embeddings) {
      add(cut(matrix("lm_head.weight", model_.vocab, model_.hidden), 0, SplitUnit::vocab_rows));
    }
    for (size_t i = first; i < rows_.size(); ++i) rows_[i].place = StagePlace::head;
  }

  std::vector<Parameter> take() { return std::move(rows_); }

 private:
  void norm(const std::string& name, bool bias) {
    add(vector(name + ".weight", model_.hidden));
    if (bias) add(vector(name + ".bias", model_.hidden));
  }
  void norm(const std::string& name) { norm(name, has_bias(model_.norm)); }

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
    if (model_.attention_sinks) {
      add(cut(vector(attn + "sinks", model_.query_heads), 0, SplitUnit::query_heads));
    }
  }

  /// The compressions are the same on every rank; what leads out of them is cut by heads
  /// (arXiv:2405.04434, and Megatron's and vLLM's practice).
  void latent_attention(const MlaSpec& mla) {
    const std::string attn = "self_attn.";
    const std::int64_t heads = model_.query_heads;
    const auto compression = [&](const std::string& name, std::int64_t size, int position) {
      add(fused(matrix(attn + name + ".weight", size, model_.hidden), attn + "qkv_a_proj",
                position));
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
  }

  /// One MLP of `columns` columns, in every layer or shared by all tokens beside the experts.
  void mlp(const std::string& name, std::int64_t columns) {
    const auto part = [&](Parameter row, int position) {
      row = cut(std::move(row), 0, SplitUnit::ffn_columns, columns);
      add(is_gated(model_.mlp) ? fused(std::move(row), name + "gate_up_proj", position) : row);
    };
    const bool gated = is_gated(model_.mlp);
    if (gated) part(matrix(name + "gate_proj.weight", columns, model_.hidden), 0);
    part(matrix(name + "up_proj.weight", columns, model_.hidden), 1);
    if (model_.mlp_bias) {
      if (gated) part(vector(name + "gate_proj.bias", columns), 0);
      part(vector(name + "up_proj.bias", columns), 1);
    }
    add(cut(matrix(name + "down_proj.weight", model_.hidden, columns), 1, SplitUnit::ffn_columns,
            columns));
    if (model_.mlp_bias) add(vector(name + "down_proj.bias", model_.hidden));
  }

  void experts(const MoeSpec& moe) {
    const std::string block(names_.expert_block);
    const std::string gate(names_.gate), up(names_.up), down(names_.down);
    add(matrix(block + "gate.weight", moe.experts, model_.hidden));
    if (moe.correction_bias) add(vector(block + "gate.e_score_correction_bias", moe.experts));
    const auto expert = [&](std::int64_t e, const std::string& name, bool in) {
      Parameter row =
          matrix(block + "experts." + std::to_string(e) + "." + name + ".weight",
                 in ? moe.expert_ffn : model_.hidden, in ? model_.hidden : moe.expert_ffn);
      row = cut(std::move(row), in ? 0 : 1, SplitUnit::expert_columns, moe.expert_ffn);
      row.experts = moe.experts;
      row.expert = e;
      return row;
    };
    for (std::int64_t e = 0; e < moe.experts; ++e) {
      const auto first = static_cast<int>(2 * e);
      add(fused(expert(e, gate, true), block + "experts.gate_up_proj", first));
      add(fused(expert(e, up, true), block + "experts.gate_up_proj", first + 1));
    }
    for (std::int64_t e = 0; e < moe.experts; ++e) {
      add(fused(expert(e, down, false), block + "experts.down_proj", static_cast<int>(e)));
    }
    if (moe.shared_ffn == 0) return;
    mlp(moe.shared_gate ? "mlp.shared_expert." : "mlp.shared_experts.", moe.shared_ffn);
    if (moe.shared_gate) add(matrix("mlp.shared_expert_gate.weight", 1, model_.hidden));
  }

  /// One tensor for all experts, input dim before output dim, gate and up interleaved.
  void stacked_experts(const MoeSpec& moe) {
    const auto stacked = [&](const std::string& name, std::vector<std::int64_t> shape, int dim) {
      Parameter row = matrix("mlp.experts." + name, 0, 0);
      row.decayed = shape.size() > 2;
      row.shape = std::move(shape);
      if (dim >= 0) row = cut(std::move(row), dim, SplitUnit::expert_columns, moe.expert_ffn);
      row.experts = moe.experts;
      row.expert_dim = 0;
      add(std::move(row));
    };
    add(matrix("mlp.router.weight", moe.experts, model_.hidden));
    if (moe.router_bias) add(vector("mlp.router.bias", moe.experts));
    stacked("gate_up_proj", {moe.experts, model_.hidden, 2 * moe.expert_ffn}, 2);
    if (model_.mlp_bias) stacked("gate_up_proj_bias", {moe.experts, 2 * moe.expert_ffn}, 1);
    stacked("down_proj", {moe.experts, moe.expert_ffn, model_.hidden}, 1);
    if (model_.mlp_bias) stacked("down_proj_bias", {moe.experts, model_.hidden}, -1);
  }

  /// Conv1D weights: [in, out]; c_attn holds queries, keys and values side by side.
  void conv1d_layer() {
    const std::int64_t h = model_.hidden;
    const auto side = [&](const std::string& name, bool bias, int position) {
      const SplitUnit unit = position == 0 ? SplitUnit::query_heads : SplitUnit::kv_heads;
      Parameter row = bias ? vector(name, h) : matrix(name, h, h);
      const int dim = bias ? 0 : 1;
      row = cut(std::move(row), dim, unit);
      row.slice = CheckpointSlice{.tensor = row.name, .dim = dim, .offset = position * h};
      row.part = position;
      row.name += std::string("[") + "qkv"[position] + "]";
      add(std::move(row));
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

  /// The tower of Qwen2.5-VL, whole on every rank of the first stage.
  void vision(const VisionSpec& tower) {
    const size_t first = rows_.size();
    const std::int64_t h = tower.hidden;
    const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
      add(matrix(name + ".weight", out, in));
      add(vector(name + ".bias", out));
    };
    Parameter patches = matrix("visual.patch_embed.proj.weight", h, tower.channels);
    patches.shape.insert(patches.shape.end(), {tower.temporal_patch, tower.patch, tower.patch});
    add(std::move(patches));
    for (std::int64_t block = 0; block < tower.layers; ++block) {
      prefix_ = "visual.blocks." + std::to_string(block) + ".";
      add(vector("norm1.weight", h));
      add(vector("norm2.weight", h));
      linear("attn.qkv", 3 * h, h);
      linear("attn.proj", h, h);
      linear("mlp.gate_proj", tower.ffn, h);
      linear("mlp.up_proj", tower.ffn, h);
      linear("mlp.down_proj", h, tower.ffn);
    }
    prefix_ = "visual.merger.";
    const std::int64_t merged = h * tower.merge * tower.merge;
    add(vector("ln_q.weight", h));
    linear("mlp.0", merged, merged);
    linear("mlp.2", tower.output, merged);
    prefix_.clear();
    for (size_t i = first; i < rows_.size(); ++i) rows_[i].place = StagePlace::embedding;
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

  static Parameter at(StagePlace place, Parameter row) {
    row.place = place;
    return row;
  }

  Parameter cut(Parameter row, int dim, SplitUnit unit) const {
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
      case SplitUnit::none:
        break;
    }
    return row;
  }

  static Parameter cut(Parameter row, int dim, SplitUnit unit, std::int64_t units) {
    row.split_dim = dim;
    row.unit = unit;
    row.units = units;
    row.unit_size = row.shape[static_cast<size_t>(dim)] / units;
    return row;
  }

  Parameter fused(Parameter row, const std::string& storage, int position) const {
    row.storage = prefix_ + storage + row.name.substr(row.name.rfind('.'));
    row.part = position;
    return row;
  }

  void add(Parameter row) { rows_.push_back(std::move(row)); }

  const ModelSpec& model_;
  const TensorNames& names_;
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

std::map<std::string, std::vector<std::int64_t>> checkpoint_tensors(const ParameterTable& table) {
  std::map<std::string, std::vector<std::int64_t>> tensors;
  for (const Parameter& row : table.rows) {
    if (!row.slice) {
      tensors[row.name] = row.shape;
      continue;
    }
    std::vector<std::int64_t>& shape = tensors[row.slice->tensor];
    const auto dim = static_cast<size_t>(row.slice->dim);
    const std::int64_t end = row.slice->offset + row.shape[dim];
    const std::int64_t known = shape.empty() ? 0 : shape[dim];
    shape = row.shape;
    shape[dim] = std::max(known, end);
  }
  return tensors;
}

}  // namespace tessera
