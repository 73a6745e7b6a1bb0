// Every tensor of a model, once: the one table that memory model, reshard planner, executor,
// checkpoint reader and GUI read.
//
// Shapes are those of a saved Hugging Face checkpoint ([out, in] for a linear weight). A tied
// lm_head is not a row of its own: `model.embed_tokens.weight` is then held by the first and the
// last stage (gradients summed, counted once in norms and files). The parts of one fused storage
// tensor are consecutive rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/spec/model_spec.h"

namespace tessera {

/// What tensor parallelism counts when it cuts a tensor.
enum class SplitUnit { none, query_heads, kv_heads, ffn_columns, vocab_rows };

/// Which pipeline stages hold a tensor.
enum class StagePlace { embedding, layer, head, embedding_and_head };

struct Parameter {
  std::string name;                 // in the checkpoint
  std::vector<std::int64_t> shape;  // in the checkpoint
  std::string storage;              // fused storage tensor (q|k|v, gate|up), or `name`
  int part = 0;                     // position inside the fused storage tensor
  StagePlace place = StagePlace::layer;
  std::int64_t layer = -1;          // -1 outside the layers
  int split_dim = -1;               // dim that TP slices; -1 = replicated
  SplitUnit unit = SplitUnit::none;
  std::int64_t units = 0;           // along split_dim
  std::int64_t unit_size = 0;       // elements of split_dim per unit
  /// For kv_heads: query heads per KV head. A rank holds the KV heads its query heads use.
  std::int64_t queries_per_unit = 1;
  bool decayed = true;              // weight decay applies (matrices; not norms and biases)

  std::int64_t elements() const;
  bool operator==(const Parameter&) const = default;
};

struct ParameterTable {
  ModelSpec model;
  std::vector<Parameter> rows;  // in checkpoint order: embedding, layers ascending, norm, head

  /// Index of a checkpoint name, or nullopt.
  std::optional<int> find(const std::string& name) const;
  std::int64_t elements() const;
};

ParameterTable parameter_table(const ModelSpec& model);

}  // namespace tessera
