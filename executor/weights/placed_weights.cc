#include "executor/weights/placed_weights.h"

namespace tessera {

Weights make_placed_weights(const ParameterTable& table, const ParallelLayout& layout,
                            const RankCoord& coord, DType dtype, torch::Device device,
                            const torch::Tensor& storage, const ArenaLayout& places) {
  const ArenaLayout dense = arena_layout(table, layout, coord, dtype);
  TORCH_CHECK(storage.is_contiguous() && storage.scalar_type() == scalar_type(dtype) &&
              storage.numel() == places.bytes / places.element_bytes &&
              places.slots.size() == dense.slots.size());
  const torch::Tensor nowhere =
      torch::empty({dense.bytes / dense.element_bytes}, storage.options().device(torch::kMeta));
  Weights weights = make_weights(table, layout, coord, dtype, device, nowhere);
  weights.storage = storage;
  weights.tensors = arena_tensors(places, table.rows.size(), storage);
  return weights;
}

std::int64_t place_of(const Weights& weights, int row) {
  const torch::Tensor& tensor = weights.tensors[static_cast<std::size_t>(row)];
  return tensor.storage_offset() - weights.storage.storage_offset();
}

}  // namespace tessera
