#include "executor/adapters/adapter_weights.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "cost_models/adapters.h"
#include "cost_models/documents/problem.h"
#include "cost_models/layout/sharding.h"
#include "executor/checkpoint/peft_folder.h"
#include "executor/checkpoint/tensor_box.h"
#include "executor/data/counter_random.h"

namespace tessera {
namespace {

using torch::Tensor;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// Whether ranks of the tensor-parallel group hold the same elements of it: each has gradients of
/// what it computes with them.
bool held_by_several(const Parameter& parameter, const ParallelLayout& layout, RankCoord coord) {
  if (parameter.split_dim < 0) return true;
  const auto dim = index(parameter.split_dim);
  for (coord.tp = 0; coord.tp + 1 < layout.tp; ++coord.tp) {
    RankCoord next = coord;
    ++next.tp;
    const auto own = compute_box(parameter, layout, coord);
    const auto other = compute_box(parameter, layout, next);
    if (own && other && own->dims[dim].hi > other->dims[dim].lo) return true;
  }
  return false;
}

/// A whole A in checkpoint order, fp32.
Tensor drawn(const Parameter& parameter, std::uint64_t seed) {
  Tensor whole = torch::empty(parameter.shape, torch::kFloat);
  auto* const values = whole.mutable_data_ptr<float>();
  const double bound = 1.0 / std::sqrt(static_cast<double>(parameter.shape[1]));
  const std::uint64_t stream = XXH3_64bits(parameter.name.data(), parameter.name.size());
  std::array<std::uint32_t, 4> bits{};
  for (std::int64_t i = 0; i < whole.numel(); ++i) {
    if (i % 4 == 0) {
      bits = random_block(seed, RandomUse::initial_adapters, stream,
                          static_cast<std::uint32_t>(i / 4));
    }
    const double uniform = static_cast<double>(bits[static_cast<std::size_t>(i % 4)]) * 0x1p-32;
    values[i] = static_cast<float>((2 * uniform - 1) * bound);
  }
  return whole;
}

Tensor held_part(const ArenaSlot& slot, Tensor whole) {
  for (int dim = 0; dim < slot.box.rank; ++dim) {
    const Interval range = slot.box.dims[index(dim)];
    whole = whole.narrow(dim, range.lo, range.size());
  }
  return whole.movedim(slot.outer_dim, 0);
}

}  // namespace

Weights make_adapters(const Weights& weights, const Lora& lora) {
  const ParallelLayout layout = adapter_layout(weights.layout);
  Weights adapters = make_parameters(adapter_table(weights.table, lora), layout,
                                     adapter_coord(weights.layout, weights.coord), weights.dtype,
                                     weights.device());
  for (const ArenaSlot& slot : adapters.arena.slots) {
    if (held_by_several(adapters.table.rows[index(slot.tensor)], layout, adapters.coord)) {
      adapters.partial_rows.push_back(slot.tensor);
    }
  }
  return adapters;
}

void draw_adapters(Weights& adapters, std::uint64_t seed) {
  const torch::NoGradGuard no_grad;
  for (const ArenaSlot& slot : adapters.arena.slots) {
    Tensor& tensor = adapters.tensors[index(slot.tensor)];
    const Parameter& parameter = adapters.table.rows[index(slot.tensor)];
    if (is_peft_a(parameter.name)) {
      tensor.copy_(held_part(slot, drawn(parameter, seed)));
    } else {
      tensor.zero_();
    }
  }
}

void load_adapters(Weights& adapters, const std::filesystem::path& folder, Problems& problems) {
  const torch::NoGradGuard no_grad;
  const auto file = open_peft_tensors(folder, problems);
  if (!file) return;
  if (!check_peft_tensors(*file, folder, adapters.table, problems)) return;
  for (const ArenaSlot& slot : adapters.arena.slots) {
    const std::string& name = adapters.table.rows[index(slot.tensor)].name;
    const auto found = std::ranges::find(file->tensors, name, &TensorView::name);
    Tensor host = torch::empty(slot.memory_shape(), scalar_type(adapters.dtype));
    if (read_box(*found, slot.box, slot.outer_dim, host.mutable_data_ptr(), adapters.dtype,
                 problems)) {
      adapters.tensors[index(slot.tensor)].copy_(host);
    }
  }
}

double adapter_scale(const Lora& lora) {
  return lora.used() ? lora.alpha / static_cast<double>(lora.rank) : 0;
}

void attach_adapters(Weights& weights, const Weights& adapters, const Lora& lora) {
  weights.adapters.assign(weights.tensors.size(), {});
  const double scale = adapter_scale(lora);
  for (const int row : adapted_rows(weights.table, lora)) {
    const std::string& name = weights.table.rows[index(row)].name;
    const int a = adapters.table.find(peft_name_of_a(name)).value();
    const int b = adapters.table.find(peft_name_of_b(name)).value();
    if (!adapters.holds(a)) continue;  // another stage's
    weights.adapters[index(row)] = {
        .a = adapters.tensors[index(a)], .b = adapters.tensors[index(b)], .scale = scale};
  }
}

}  // namespace tessera
