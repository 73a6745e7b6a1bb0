// Plain MLPs and routed experts in the parameter table.
#include <utility>

#include "cost_models/layout/table/rows.h"

namespace tessera {

void Rows::mlp(const std::string& name, std::int64_t columns) {
  const bool gated = is_gated(model_.mlp);
  const bool joined =
      gated && (names_.layer == LayerTensors::joined || names_.layer == LayerTensors::joined_mlp);
  const auto projection = [&](const std::string& module, const char* suffix, int position) {
    const std::string tensor = name + (joined ? "gate_up_proj" : module) + suffix;
    const bool bias = std::string_view(suffix) == ".bias";
    Parameter row = bias ? vector(tensor, columns) : matrix(tensor, columns, model_.hidden);
    row = cut(std::move(row), 0, SplitUnit::ffn_columns, columns);
    if (gated) row = fused(std::move(row), name + "gate_up_proj", position);
    add(joined ? sliced(std::move(row), module, 0, position * columns) : std::move(row));
  };
  for (const char* const suffix : {".weight", ".bias"}) {
    if (std::string_view(suffix) == ".bias" && !model_.mlp_bias) break;
    if (gated) projection(joined ? "gate" : std::string(names_.gate), suffix, 0);
    projection(joined ? "up" : std::string(names_.up), suffix, 1);
  }
  const std::string down = name + std::string(names_.down);
  add(cut(matrix(down + ".weight", model_.hidden, columns), 1, SplitUnit::ffn_columns, columns));
  if (model_.mlp_bias) add(vector(down + ".bias", model_.hidden));
}

void Rows::experts(const MoeSpec& moe, bool hashed) {
  const std::string block(names_.expert_block);
  const std::string router = block + std::string(names_.router);
  add(matrix(router + ".weight", moe.experts, model_.hidden));
  if (moe.router_bias) add(vector(router + ".bias", moe.experts));
  if (hashed) {  // the experts of each token
    Parameter table = matrix(router + ".tid2eid", model_.vocab, moe.experts_per_token);
    table.decayed = false;
    add(std::move(table));
  } else if (moe.correction_bias) {
    Parameter correction = vector(block + std::string(names_.correction), moe.experts);
    if (names_.correction_row) correction.shape.insert(correction.shape.begin(), 1);
    add(std::move(correction));
  }
  if (moe.latent > 0) {
    add(matrix(block + "fc1_latent_proj.weight", moe.latent, model_.hidden));
    add(matrix(block + "fc2_latent_proj.weight", model_.hidden, moe.latent));
  }
  switch (names_.experts) {
    case ExpertTensors::each:
      each_expert(moe);
      break;
    case ExpertTensors::interleaved:
      interleaved_experts(moe);
      break;
    case ExpertTensors::stacked:
      stacked_experts(moe);
      break;
    case ExpertTensors::transposed:
      transposed_experts(moe);
      break;
  }
  if (moe.shared_ffn > 0) shared_expert(moe);
}

void Rows::each_expert(const MoeSpec& moe) {
  const std::string block(names_.expert_block);
  const std::string gate(names_.gate), up(names_.up), down(names_.down);
  const std::int64_t width = moe.width(model_.hidden);
  const auto expert = [&](std::int64_t e, const std::string& name, bool in) {
    Parameter row = matrix(block + "experts." + std::to_string(e) + "." + name + ".weight",
                           in ? moe.expert_ffn : width, in ? width : moe.expert_ffn);
    row = cut(std::move(row), in ? 0 : 1, SplitUnit::expert_columns, moe.expert_ffn);
    row.experts = moe.experts;
    row.expert = e;
    return row;
  };
  const bool gated = is_gated(model_.mlp);
  const std::string storage = block + (gated ? "experts.gate_up_proj" : "experts.up_proj");
  const int parts = gated ? 2 : 1;
  for (std::int64_t e = 0; e < moe.experts; ++e) {
    const auto first = static_cast<int>(parts * e);
    if (gated) add(fused(expert(e, gate, true), storage, first));
    add(fused(expert(e, up, true), storage, first + parts - 1));
  }
  for (std::int64_t e = 0; e < moe.experts; ++e) {
    add(fused(expert(e, down, false), block + "experts.down_proj", static_cast<int>(e)));
  }
}

// One tensor for all experts, input dim before output dim, gate and up interleaved.
void Rows::interleaved_experts(const MoeSpec& moe) {
  const auto stacked = [&](const std::string& name, std::vector<std::int64_t> shape, int dim) {
    Parameter row = matrix("mlp.experts." + name, 0, 0);
    row.decayed = shape.size() > 2;
    row.shape = std::move(shape);
    if (dim >= 0) row = cut(std::move(row), dim, SplitUnit::expert_columns, moe.expert_ffn);
    row.experts = moe.experts;
    row.expert_dim = 0;
    add(std::move(row));
  };
  stacked("gate_up_proj", {moe.experts, model_.hidden, 2 * moe.expert_ffn}, 2);
  if (model_.mlp_bias) stacked("gate_up_proj_bias", {moe.experts, 2 * moe.expert_ffn}, 1);
  stacked("down_proj", {moe.experts, moe.expert_ffn, model_.hidden}, 1);
  if (model_.mlp_bias) stacked("down_proj_bias", {moe.experts, model_.hidden}, -1);
}

// One tensor for all experts, output dim before input dim, gate before up.
void Rows::stacked_experts(const MoeSpec& moe) {
  const std::int64_t h = model_.hidden, f = moe.expert_ffn;
  const auto stacked = [&](const char* name, bool in) {
    Parameter row = matrix(std::string("mlp.experts.") + name, 0, 0);
    row.shape = {moe.experts, in ? f : h, in ? h : f};
    row = cut(std::move(row), in ? 1 : 2, SplitUnit::expert_columns, f);
    row.experts = moe.experts;
    row.expert_dim = 0;
    return row;
  };
  for (int i = 0; i < 2; ++i) {
    Parameter row = stacked("gate_up_proj", true);
    row.part = i;
    add(sliced(std::move(row), i == 0 ? "gate" : "up", 1, i * f));
  }
  add(stacked("down_proj", false));
}

// One tensor for all experts, input dim before output dim, gate before up.
void Rows::transposed_experts(const MoeSpec& moe) {
  const std::int64_t h = model_.hidden, f = moe.expert_ffn;
  const auto tensor = [&](const char* name, bool in) {
    Parameter row = matrix(std::string(names_.expert_block) + "experts." + name, 0, 0);
    row.shape = {moe.experts, in ? h : f, in ? f : h};
    row = cut(std::move(row), in ? 2 : 1, SplitUnit::expert_columns, f);
    row.experts = moe.experts;
    row.expert_dim = 0;
    return row;
  };
  for (int i = 0; i < 2; ++i) {
    Parameter row = tensor("gate_up_proj", true);
    row.part = i;
    add(sliced(std::move(row), i == 0 ? "gate" : "up", 2, i * f));
  }
  add(tensor("down_proj", false));
}

void Rows::shared_expert(const MoeSpec& moe) {
  const std::string block(names_.expert_block);
  mlp(block + (moe.shared_gate ? "shared_expert." : std::string(names_.shared)), moe.shared_ffn);
  if (moe.shared_gate) add(matrix("mlp.shared_expert_gate.weight", 1, model_.hidden));
}

}  // namespace tessera
