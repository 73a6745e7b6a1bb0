// Every tensor of a model, once: the one table that memory model, reshard planner, executor,
// checkpoint reader and GUI read.
//
// Shapes are those of a saved Hugging Face checkpoint ([out, in] for a linear weight). A tied
// lm_head is not a row of its own: `model.embed_tokens.weight` is then held by the first and the
// last stage (gradients summed, counted once in norms and files). The parts of one fused storage
// tensor are consecutive rows; all experts of a layer share two such tensors, gate|up and down.
// Names are those that transformers 5.17 saves. Layers of multi-token prediction that the model
// holds are rows of the last stage, which then holds the embedding, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/spec/model_spec.h"

namespace tessera {

/// Units that tensor parallelism counts when it cuts a tensor; an expert's are the columns of its
/// own MLP.
enum class SplitUnit {
  none,
  query_heads,
  kv_heads,
  linear_heads,  // key heads of linear attention, each with its value heads
  ffn_columns,
  vocab_rows,
  expert_columns
};

/// Which pipeline stages hold a tensor.
enum class StagePlace { embedding, layer, head, embedding_and_head };

/// Where a file holds several rows as one tensor: its name, and the first index of the row along
/// `dim`.
struct CheckpointSlice {
  std::string tensor;
  int dim = 0;
  std::int64_t offset = 0;
  bool operator==(const CheckpointSlice&) const = default;
};

struct Parameter {
  std::string name;                      // in the checkpoint, but for rows with a `slice`
  std::vector<std::int64_t> shape;       // in the checkpoint
  std::optional<CheckpointSlice> slice;  // GPT-2's c_attn, which TP cuts in three places
  std::string storage;                   // fused storage tensor (q|k|v, gate|up), or `name`
  int part = 0;                          // position inside the fused storage tensor
  StagePlace place = StagePlace::layer;
  std::int64_t layer = -1;  // -1 outside the layers
  int split_dim = -1;       // dim that TP (of an expert: ETP) slices; -1 = replicated
  SplitUnit unit = SplitUnit::none;
  std::int64_t units = 0;      // along split_dim
  std::int64_t unit_size = 0;  // elements of split_dim per unit
  /// For kv_heads: query heads per KV head. A rank holds the KV heads its query heads use.
  std::int64_t queries_per_unit = 1;
  bool decayed = true;  // weight decay applies (matrices; not norms and biases)
  /// A routed expert's tensor, which EP places, states the experts of the layer (0 = not such a
  /// tensor), and either the expert it belongs to or, where the file stacks them, their dim.
  std::int64_t experts = 0;
  std::int64_t expert = -1;
  int expert_dim = -1;

  std::int64_t elements() const;
  bool operator==(const Parameter&) const = default;
};

struct ParameterTable {
  ModelSpec model;
  /// In checkpoint order: embedding, layers ascending, norm, head, multi-token prediction.
  std::vector<Parameter> rows;

  /// Index of a checkpoint name, or nullopt.
  std::optional<int> find(const std::string& name) const;
  std::int64_t elements() const;
};

ParameterTable parameter_table(const ModelSpec& model);

/// The tensors of the file: name -> shape, the slices of one tensor together.
std::map<std::string, std::vector<std::int64_t>> checkpoint_tensors(const ParameterTable& table);

}  // namespace tessera
