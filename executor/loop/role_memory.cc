#include "executor/loop/role_memory.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <utility>

#include "cost_models/documents/out_of_memory.h"
#include "executor/config/weight_memory.h"
#include "executor/loop/share.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

bool moves_minimally(const Plan& plan) {
  return !plan.reshard.empty() && plan.reshard.front().mode == ReshardMode::minimal;
}

std::unique_ptr<SharedBlock> make_memory(torch::Device device, std::int64_t bytes) {
  return device.is_cuda() ? make_device_block(bytes, device.index()) : make_host_block(bytes);
}

torch::Tensor tensor_over(void* data, std::int64_t bytes, DType type, torch::Device device) {
  return torch::from_blob(data, {bytes / size_of(type)},
                          torch::TensorOptions().dtype(scalar_type(type)).device(device));
}

/// Bytes of the role's weights on this rank; nullopt where it has none.
std::optional<std::int64_t> bytes_on(int rank, const Plan& plan, const ParameterTables& tables,
                                     const RolePlan& role) {
  const RankMap map = rank_map_of(plan, role.role);
  const int index = map.index_of(rank);
  if (index < 0) return std::nullopt;
  return arena_layout(tables.of(role.role), role.layout,
                      map.coords[static_cast<std::size_t>(index)], role.dtypes.param)
      .bytes;
}

/// Not for FSDP, whose shards lie in memory of their own (share_shards), and not for weights that
/// leave the device between phases: what peers have mapped cannot.
torch::Tensor readable_storage(RoleMemory& memory, const Plan& plan, const ParameterTables& tables,
                               const RolePlan& role) {
  if (!moves_minimally(plan) || role.layout.dp_shard > 1 || role.offload.parameters) return {};
  const std::optional<std::int64_t> bytes = bytes_on(memory.rank, plan, tables, role);
  memory.actor = make_memory(memory.device, bytes.value_or(0));
  if (!bytes) return {};
  return tensor_over(memory.actor->data(), *bytes, role.dtypes.param, memory.device);
}

torch::Tensor releasable_storage(RoleMemory& memory, const Plan& plan,
                                 const ParameterTables& tables, const RolePlan& role) {
  const std::optional<std::int64_t> bytes = bytes_on(memory.rank, plan, tables, role);
  if (!bytes) return {};
  memory.rollout = memory.device.is_cuda()
                       ? make_releasable_device_memory(*bytes, memory.device.index())
                       : make_releasable_host_memory(*bytes);
  return tensor_over(memory.rollout->data(), *bytes, role.dtypes.param, memory.device);
}

}  // namespace

ParameterTables parameter_tables(const Plan& plan) {
  ParameterTables tables;
  for (const RolePlan& role : plan.roles) {
    const ModelSpec model = plan.model_of(role.role);
    const auto same = std::find_if(tables.by_role.begin(), tables.by_role.end(),
                                   [&](const auto& each) { return each.second->model == model; });
    auto table = same != tables.by_role.end()
                     ? same->second
                     : std::make_shared<const ParameterTable>(parameter_table(model));
    tables.by_role.emplace(role.role, std::move(table));
  }
  return tables;
}

RoleMemory make_role_memory(const Plan& plan, const ParameterTables& tables,
                            const ReshardConfig& config, int rank, torch::Device device) {
  RoleMemory memory{.rank = rank, .device = device};
  if (!shares_memory(plan, config)) return memory;
  const PlannedReshard& pair = plan.reshard.front();
  memory.shared =
      shared_arena_on(tables.of(pair.from), rank_map_of(plan, pair.from),
                      rank_map_of(plan, pair.to), rank, plan.find(pair.from)->dtypes.param);
  memory.actor = make_memory(device, memory.shared->bytes);
  return memory;
}

WeightPlace place_weights(RoleMemory& memory, const Plan& plan, const ParameterTables& tables,
                          const RolePlan& role, const ReshardConfig& config) {
  const bool actor = role.role == Role::actor, rollout = role.role == Role::rollout;
  if (memory.shared && (actor || rollout)) {
    const ArenaLayout& places = actor ? memory.shared->training : memory.shared->rollout;
    if (places.slots.empty()) return {};  // no member
    return {.storage =
                tensor_over(memory.actor->data(), places.bytes, role.dtypes.param, memory.device),
            .places = actor ? &places : nullptr};
  }
  if (actor) return {.storage = readable_storage(memory, plan, tables, role)};
  if (rollout && config.unmap) return {.storage = releasable_storage(memory, plan, tables, role)};
  return {};
}

void share_shards(RoleMemory& memory, const Weights* weights, Communicator& host) {
  if (weights == nullptr) {
    memory.actor = make_memory(memory.device, 0);
  } else {
    const torch::Tensor& shards = weights->storage;
    const auto bytes = static_cast<std::int64_t>(shards.nbytes());
    memory.actor = memory.device.is_cuda()
                       ? share_device_memory(shards.data_ptr(), bytes, memory.device.index())
                       : share_host_memory(shards.data_ptr(), bytes);
  }
  if (any_rank(host, memory.actor == nullptr)) memory.actor.reset();
}

void unmap_rollout(RoleMemory& memory) {
  if (memory.rollout == nullptr) return;
  if (memory.device.is_cuda()) torch::cuda::synchronize(memory.device.index());
  memory.rollout->release();
}

void map_rollout_in_background(RoleMemory& memory) {
  if (memory.rollout == nullptr || memory.rollout->mapped() || memory.mapping.valid()) return;
  memory.mapping =
      std::async(std::launch::async, [rollout = memory.rollout.get()] { rollout->map(); });
}

void map_rollout(RoleMemory& memory) {
  if (memory.rollout == nullptr) return;
  try {
    memory.mapping.valid() ? memory.mapping.get() : memory.rollout->map();
  } catch (const OutOfMemory&) {
    // Memory that torch holds in reserve may be what is missing.
    if (!memory.device.is_cuda()) throw;
    c10::cuda::CUDACachingAllocator::emptyCache();
    memory.rollout->map();
  }
}

}  // namespace tessera
