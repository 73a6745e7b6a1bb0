// One rank's part of a layer and how it runs: what costs and memory of a layer are computed from.
//
// A plain value. Degrees count ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "cost_models/engine_traits.h"
#include "cost_models/layer_shape.h"
#include "cost_models/spec/dtype.h"
#include "cost_models/spec/model_spec.h"
#include "cost_models/spec/parallel_layout.h"

namespace tessera {

/// One rank's part of each operator of one kind of layer, and how the layer runs. Heads and columns
/// that do not divide count the largest part. Degrees that cut no layer (pp, vpp, dp, dp_shard)
/// are 1.
struct RankModel : Degrees {
  ModelSpec model;
  DType dtype = DType::bf16;
  bool sequence_parallel = false;  // what TP would replicate is cut along the sequence
  bool ulysses = false;            // cp by all-to-all over heads, else a ring over keys and values
  EngineTraits traits = {};
  /// Rank of adapters beside the layers' matrices, which are frozen then (adapters.h); 0 = none.
  std::int64_t adapter_rank = 0;
  std::optional<LayerKind> kind = {};  // nullopt: that of the last layer

  LayerShape layer() const {
    return layer_shape(model, kind ? *kind : kind_of_layer(model, model.layers - 1));
  }
  std::int64_t query_heads() const { return largest(model.query_heads); }
  std::int64_t kv_heads() const;  // that the rank's query heads use, at most
  std::int64_t vocab() const { return largest(model.vocab); }
  /// Parts into which the residual stream is cut beside cp.
  int stream_parts() const { return sequence_parallel ? tp : 1; }
  std::int64_t largest(std::int64_t units) const { return (units + tp - 1) / tp; }
};

}  // namespace tessera
