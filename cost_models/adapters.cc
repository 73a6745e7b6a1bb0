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
constexpr std::array<Target, 16> kMegatron{{
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
    {"linear_kv_down_proj", "kv_a_proj_with_mqa", false},
    {"linear_kv_up_proj", "kv_b_proj", false},
}};

// "model.layers.0.self_attn.q_proj.weight" -> "q_proj"; empty: no linear weight of a layer.
std::string_view module_of(const Parameter& row) {
  std::string_view name = row.name;
  constexpr std::string_view kWeight = ".weight", kRouter = ".gate.weight";
  const bool matrix = row.place == StagePlace::layer && row.shape.size() == 2 && row.experts == 0;
  if (!matrix || !name.ends_with(kWeight) || name.ends_with(kRouter)) return {};
  name.remove_suffix(kWeight.size());
  return name.substr(name.rfind('.') + 1);
}

// How a module is adapted: alone, or fused with its neighbours.
struct Adapted {
  bool fused = false;
};

// nullopt where the target means another module.
std::optional<Adapted> adapted_by(const std::string& target, std::string_view module) {
  if (target == module) return Adapted{};
  for (const Target& each : kMegatron) {
    if (each.megatron == target && each.module == module) return Adapted{each.fused};
  }
  return std::nullopt;
}

std::optional<Adapted> adapted(const Lora& lora, std::string_view module) {
  if (module.empty()) return std::nullopt;
  if (lora.targets.empty()) return Adapted{};
  for (const std::string& target : lora.targets) {
    if (const auto found = adapted_by(target, module)) return found;
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
    const auto found = adapted(lora, module_of(row));
    if (!found) continue;
    const auto kind = static_cast<std::size_t>(kind_of_layer(table.model, row.layer));
    if (sample[kind] < 0) sample[kind] = row.layer;
    if (sample[kind] != row.layer) continue;
    const auto part = [&](int dim) {
      const std::int64_t size = row.shape[static_cast<std::size_t>(dim)];
      return row.split_dim == dim ? (size + tp - 1) / tp : size;
    };
    const bool shared = found->fused && row.part > 0;  // the A of the first part
    elements[kind] += lora.rank * (part(0) + (shared ? 0 : part(1)));
  }
  return elements;
}

std::vector<std::string> unknown_targets(const ParameterTable& table, const Lora& lora) {
  std::vector<std::string> unknown;
  for (const std::string& target : lora.targets) {
    const bool known = std::any_of(table.rows.begin(), table.rows.end(), [&](const Parameter& row) {
      const std::string_view module = module_of(row);
      return !module.empty() && adapted_by(target, module);
    });
    if (!known) unknown.push_back(target);
  }
  return unknown;
}

}  // namespace tessera
