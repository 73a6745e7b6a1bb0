// What single layers of a ModelSpec are.
#include <algorithm>

#include "cost_models/spec/model_spec.h"

namespace tessera {

bool is_moe_layer(const ModelSpec& model, std::int64_t layer) {
  return model.moe &&
         !std::binary_search(model.moe->dense_layers.begin(), model.moe->dense_layers.end(), layer);
}

std::int64_t moe_layer_count(const ModelSpec& model) {
  return model.moe ? model.layers - static_cast<std::int64_t>(model.moe->dense_layers.size()) : 0;
}

std::int64_t window_of_layer(const ModelSpec& model, std::int64_t layer) {
  const auto& full = model.full_attention_layers;
  return std::binary_search(full.begin(), full.end(), layer) ? 0 : model.sliding_window;
}

std::int64_t value_head_dim(const ModelSpec& model) {
  return model.mla ? model.mla->v_head_dim : model.head_dim;
}

}  // namespace tessera
