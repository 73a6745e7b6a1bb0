#include "cost_models/adapters.h"

#include <algorithm>
#include <optional>
#include <string_view>

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

}  // namespace

std::array<std::int64_t, kLayerKinds> adapter_elements(const ParameterTable& table,
                                                       const Lora& lora, int tp) {
  std::array<std::int64_t, kLayerKinds> elements{}, sample{};
  sample.fill(-1);
  if (!lora.used()) return elements;
  for (const Parameter& row : table.rows) {
    const auto found = adapted(lora, row);
    if (!found) continue;
    const auto kind = static_cast<std::size_t>(kind_of_layer(table.model, row.layer));
    if (sample[kind] < 0) sample[kind] = row.layer;
    if (sample[kind] != row.layer) continue;
    const auto part = [&](int dim) {
      const std::int64_t size = row.shape[static_cast<std::size_t>(dim)];
      const bool cut = row.split_dim == dim && row.experts == 0;  // experts are cut by etp, not tp
      return cut ? (size + tp - 1) / tp : size;
    };
    const bool shared = found->fused && row.part > 0;  // the A of the first part
    elements[kind] += lora.rank * (part(0) + (shared ? 0 : part(1)));
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

}  // namespace tessera
