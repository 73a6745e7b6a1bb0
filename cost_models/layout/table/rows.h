// The rows of one model's parameter table, made in table order: embedding, layers ascending, head.
//
// Private to cost_models/layout/table; parameter_table() is the way in. Rows are made in several
// sources: attention_rows.cc, compressed_rows.cc, state_space_rows.cc, mlp_rows.cc and
// vision_rows.cc besides rows.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/spec/families.h"
#include "cost_models/spec/layer_kind.h"

namespace tessera {

class Rows {
 public:
  explicit Rows(const ModelSpec& model);

  void embedding();
  void layer(std::int64_t index);
  void head();
  /// A layer of multi-token prediction, which the last stage holds (Megatron-Core's
  /// multi_token_prediction.py; names as DeepSeek-V3 was published).
  void prediction_layer(std::int64_t index);
  std::vector<Parameter> take() { return std::move(rows_); }

 private:
  void norm(const std::string& name);
  void layer_norms();
  void conv1d_layer();
  void layer_of(LayerKind kind);
  void mixer(LayerKind kind);

  // attention_rows.cc
  void attention();
  void latent_attention(const MlaSpec& mla, bool shares_choice);
  void indexer(const IndexerSpec& indexer, std::int64_t queries);
  void linear_attention(const LinearAttentionSpec& linear);
  void lightning_attention(const LinearAttentionSpec& linear);

  // compressed_rows.cc
  void compressed_attention(const CompressedAttentionSpec& attention, LayerEntries entries);
  void compressor(const std::string& name, std::int64_t head_dim, std::int64_t rate, int series);
  void entry_indexer(const IndexerSpec& indexer, const CompressedAttentionSpec& attention);
  void hyper_connection(const std::string& name, std::int64_t weights, std::int64_t scales);

  // state_space_rows.cc
  void state_space(const StateSpaceSpec& mixer);

  // mlp_rows.cc
  /// One MLP of `columns` columns, in every layer or shared by all tokens beside the experts.
  void mlp(const std::string& name, std::int64_t columns);
  void experts(const MoeSpec& moe, bool hashed);
  void each_expert(const MoeSpec& moe);
  void interleaved_experts(const MoeSpec& moe);
  void stacked_experts(const MoeSpec& moe);
  void transposed_experts(const MoeSpec& moe);
  void shared_expert(const MoeSpec& moe);

  // vision_rows.cc
  /// The tower, whole on every rank of the first stage.
  void vision(const VisionSpec& tower);
  void windowed_tower(const VisionSpec& tower);
  void positioned_tower(const VisionSpec& tower);
  void glm_tower(const VisionSpec& tower);
  void llama4_tower(const VisionSpec& tower);
  void siglip_tower(const VisionSpec& tower);
  void plain_blocks(const VisionSpec& tower, const std::string& prefix, const char* output,
                    const std::array<const char*, 2>& norms);
  /// A linear layer with a bias, or a norm of weight and bias, of the tower.
  void linear(const std::string& name, std::int64_t out, std::int64_t in);
  void norm_with_bias(const std::string& name, std::int64_t size);

  Parameter matrix(const std::string& name, std::int64_t out, std::int64_t in) const;
  /// Biases and norms; replicated unless cut, and never decayed.
  Parameter vector(const std::string& name, std::int64_t size) const;
  Parameter cut(Parameter row, int dim, SplitUnit unit) const;
  static Parameter cut(Parameter row, int dim, SplitUnit unit, std::int64_t units);
  Parameter fused(Parameter row, const std::string& storage, int position) const;
  /// `row` as the part of the file's tensor of its name that begins at `offset` along `dim`; the
  /// row's own name says which part.
  static Parameter sliced(Parameter row, const std::string& part, int dim, std::int64_t offset);
  void add(Parameter row) { rows_.push_back(std::move(row)); }

  const ModelSpec& model_;
  const FamilyFacts& facts_;
  const TensorNames& names_;
  std::int64_t layer_ = -1;
  std::string prefix_;
  std::vector<Parameter> rows_;
};

}  // namespace tessera
