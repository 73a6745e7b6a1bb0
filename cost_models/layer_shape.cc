#include "cost_models/layer_shape.h"

namespace tessera {

LayerShape layer_shape(const ModelSpec& model, LayerKind) {
  LayerShape shape;
  shape.hidden = model.hidden;
  shape.query_heads = model.query_heads;
  shape.kv_heads = model.kv_heads;
  shape.key_dim = shape.value_dim = model.head_dim;
  shape.window = model.sliding_window;
  shape.ffn = model.ffn;
  return shape;
}

LayerKind kind_of_layer(const ModelSpec&, std::int64_t) { return LayerKind::dense; }

}  // namespace tessera
