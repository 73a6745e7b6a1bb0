#include "cost_models/adapters.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "cost_models/documents/check.h"
#include "cost_models/layout/sharding.h"

namespace tessera {
namespace {

struct Target {
  std::string_view megatron, module;
  bool fused;  // with its neighbours: one A for all
};

// Megatron-Bridge's names of what checkpoints call otherwise.
constexpr std::array<Target, 17> kMegatron{{
    {"linear_qkv", "q_proj", true},
    {"linear_qkv", "k_proj", true},
    {"linear_qkv", "v_proj", true},
    {"linear_q", "q_proj", false},
    {"linear_k", "k_proj", false},
    {"linear_v", "v_proj", false},
    {"linear_proj", "o_proj", false},
    {"linear_fc1", "gate_proj", true},
    {"linear_fc1", "up_proj", true},
    {"linear_fc1_gate", "gate_proj", false},
    {"linear_fc1_up", "up_proj", false},
    {"linear_fc2", "down_proj", false},
    {"linear_q_down_proj", "q_a_proj", false},
    {"linear_q_up_proj", "q_b_proj", false},
    {"linear_q_proj", "q_proj", false},
    {"linear_kv_down_proj", "kv_a_proj_with_mqa", false},
    {"linear_kv_up_proj", "kv_b_proj", false},
}};

// "model.layers.0.self_attn.q_proj.weight" -> "q_proj", of routed experts the first one's;
// empty: no linear weight of a layer.
std::string_view module_of(const Parameter& row) {
  std::string_view name = row.slice ? row.slice->tensor : row.name;
  constexpr std::string_view kWeight = ".weight", kRouter = ".gate.weight";
  const bool first = row.experts == 0 || row.expert == 0;
  const bool matrix = row.place == StagePlace::layer && row.shape.size() == 2 && first;
  if (!matrix || !name.ends_with(kWeight)) return {};
  if (name.ends_with(kRouter)) return "router";
  name.remove_suffix(kWeight.size());
  return name.substr(name.rfind('.') + 1);
}

// How a module is adapted: alone, or fused with its neighbours, as rows of one tensor always are.
struct Adapted {
  bool fused = false;
};

// nullopt where the target means another module. Megatron-Bridge's names mean routed experts as
// well, whose adapter those of a rank share (peft/lora.py, share_expert_adapters); for peft they
// are no modules. A router is one where it is named.
std::optional<Adapted> adapted_by(const std::string& target, const Parameter& row) {
  const std::string_view module = module_of(row);
  if (module.empty()) return std::nullopt;
  if (target == module) {
    return row.experts == 0 ? std::optional(Adapted{row.slice.has_value()}) : std::nullopt;
  }
  for (const Target& each : kMegatron) {
    if (each.megatron == target && each.module == module) return Adapted{each.fused};
  }
  return std::nullopt;
}

std::optional<Adapted> adapted(const Lora& lora, const Parameter& row) {
  if (lora.targets.empty()) {
    const std::string_view module = module_of(row);
    const bool linear = !module.empty() && module != "router" && row.experts == 0;
    return linear ? std::optional(Adapted{row.slice.has_value()}) : std::nullopt;
  }
  for (const std::string& target : lora.targets) {
    if (const auto found = adapted_by(target, row)) return found;
  }
  return std::nullopt;
}

// Sizes of a matrix on one tensor-parallel rank; experts are cut by etp, not tp. Zeros: it has no
// part of it.
std::array<std::int64_t, 2> held_sizes(const Parameter& row, const ParallelLayout& layout,
                                       int tp_rank) {
  if (row.experts > 0) return {row.shape[0], row.shape[1]};
  const auto box = compute_box(row, layout, {.tp = tp_rank});
  if (!box) return {};
  return {box->dims[0].size(), box->dims[1].size()};
}

std::string peft_name(const std::string& weight, const char* matrix) {
  constexpr std::string_view kWeight = ".weight";
  return "base_model.model." + weight.substr(0, weight.size() - kWeight.size()) + matrix;
}

// A or B of a matrix: `shape` with the matrix' own dim `dim`, which is cut where the matrix is cut
// along it.
Parameter part_of(const Parameter& matrix, const std::string& name,
                  const std::vector<std::int64_t>& shape, int dim) {
  Parameter part{.name = name,
                 .shape = shape,
                 .slice = {},
                 .storage = name,
                 .place = matrix.place,
                 .layer = matrix.layer};
  if (matrix.split_dim != dim) return part;
  part.split_dim = dim;
  part.unit = matrix.unit;
  part.units = matrix.units;
  part.unit_size = matrix.unit_size;
  part.queries_per_unit = matrix.queries_per_unit;
  return part;
}

}  // namespace

std::array<std::int64_t, kLayerKinds> adapter_elements(const ParameterTable& table,
                                                       const Lora& lora, int tp) {
  std::array<std::int64_t, kLayerKinds> most{}, sample{};
  sample.fill(-1);
  if (!lora.used()) return most;
  ParallelLayout layout;
  layout.tp = tp;
  layout.stages = even_stages(table.model.layers, 1);
  std::array<std::vector<std::int64_t>, kLayerKinds> by_rank;
  by_rank.fill(std::vector<std::int64_t>(static_cast<std::size_t>(tp), 0));
  for (const Parameter& row : table.rows) {
    const auto found = adapted(lora, row);
    if (!found) continue;
    const auto kind = static_cast<std::size_t>(kind_of_layer(table.model, row.layer));
    if (sample[kind] < 0) sample[kind] = row.layer;
    if (sample[kind] != row.layer) continue;
    const bool shared = found->fused && row.part > 0;  // the A of the first part
    for (int rank = 0; rank < tp; ++rank) {
      const auto [rows, columns] = held_sizes(row, layout, rank);
      by_rank[kind][static_cast<std::size_t>(rank)] += lora.rank * (rows + (shared ? 0 : columns));
    }
  }
  for (std::size_t kind = 0; kind < most.size(); ++kind) {
    most[kind] = *std::ranges::max_element(by_rank[kind]);
  }
  return most;
}

std::int64_t adapter_count(const ParameterTable& table, const Lora& lora) {
  const auto each = adapter_elements(table, lora, 1);
  std::int64_t elements = 0;
  for (std::int64_t layer = 0; layer < table.model.layers; ++layer) {
    elements += each[static_cast<std::size_t>(kind_of_layer(table.model, layer))];
  }
  return elements;
}

std::int64_t adapter_tensors(const ParameterTable& table, const Lora& lora) {
  return 2 * static_cast<std::int64_t>(adapted_rows(table, lora).size());
}

std::vector<int> adapted_rows(const ParameterTable& table, const Lora& lora) {
  std::vector<int> rows;
  if (!lora.used()) return rows;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (adapted(lora, table.rows[i])) rows.push_back(static_cast<int>(i));
  }
  return rows;
}

std::vector<std::string> adapted_modules(const ParameterTable& table, const Lora& lora) {
  std::vector<std::string> modules;
  for (const int row : adapted_rows(table, lora)) {
    const std::string_view module = module_of(table.rows[static_cast<std::size_t>(row)]);
    if (std::ranges::find(modules, module) == modules.end()) modules.emplace_back(module);
  }
  return modules;
}

std::vector<std::string> unknown_targets(const ParameterTable& table, const Lora& lora) {
  std::vector<std::string> unknown;
  for (const std::string& target : lora.targets) {
    const bool known = std::any_of(table.rows.begin(), table.rows.end(), [&](const Parameter& row) {
      return adapted_by(target, row).has_value();
    });
    if (!known) unknown.push_back(target);
  }
  return unknown;
}

std::string peft_name_of_a(const std::string& weight) {
  return peft_name(weight, ".lora_A.weight");
}
std::string peft_name_of_b(const std::string& weight) {
  return peft_name(weight, ".lora_B.weight");
}
bool is_peft_a(const std::string& name) { return name.ends_with(".lora_A.weight"); }

bool has_adapter_table(const ParameterTable& model, const Lora& lora) {
  return std::ranges::all_of(adapted_rows(model, lora), [&](int row) {
    const Parameter& matrix = model.rows[static_cast<std::size_t>(row)];
    return matrix.experts == 0 && !matrix.slice;
  });
}

ParameterTable adapter_table(const ParameterTable& model, const Lora& lora) {
  TESSERA_CHECK(has_adapter_table(model, lora));
  ParameterTable table{.model = model.model, .rows = {}};
  const std::vector<int> rows = adapted_rows(model, lora);
  const auto matrix = [&](std::size_t i) -> const Parameter& {
    return model.rows[static_cast<std::size_t>(rows[i])];
  };
  // A layer's A adjoin, so that those of q, k and v or of gate and up are one matrix to a product.
  for (std::size_t first = 0, last = 0; first < rows.size(); first = last) {
    while (last < rows.size() && matrix(last).layer == matrix(first).layer) ++last;
    for (std::size_t i = first; i < last; ++i) {
      const Parameter& of = matrix(i);
      TESSERA_CHECK(of.shape.size() == 2);
      table.rows.push_back(part_of(of, peft_name_of_a(of.name), {lora.rank, of.shape[1]}, 1));
    }
    for (std::size_t i = first; i < last; ++i) {
      const Parameter& of = matrix(i);
      table.rows.push_back(part_of(of, peft_name_of_b(of.name), {of.shape[0], lora.rank}, 0));
    }
  }
  return table;
}

ParallelLayout adapter_layout(const ParallelLayout& layout) {
  ParallelLayout own = layout;
  own.dp_shard = 1;
  own.zero = 0;
  return own;
}

RankCoord adapter_coord(const ParallelLayout& layout, const RankCoord& coord) {
  RankCoord own = coord;
  own.dp_replicate = coord.dp_replicate * layout.dp_shard + coord.dp_shard;
  own.dp_shard = 0;
  return own;
}

RankMap adapter_map(const RankMap& map) {
  RankMap own{.layout = adapter_layout(map.layout), .ranks = map.ranks, .coords = {}};
  for (const RankCoord& coord : map.coords) own.coords.push_back(adapter_coord(map.layout, coord));
  return own;
}

}  // namespace tessera
