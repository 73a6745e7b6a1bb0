// Where a rank's weights of actor and rollout lie: in memory that peers read, in one memory of
// both, in memory that is given back between generations, or in torch's; and the tables of the
// models whose weights they are.
//
// Owned by the Worker; one thread, but for mapping in the background. Bytes.
#pragma once

#include "executor/tensor/torch.h"

#include <future>
#include <map>
#include <memory>
#include <optional>

#include "cost_models/layout/parameter_table.h"
#include "cost_models/spec/workload.h"
#include "executor/arena/shared_arena.h"
#include "executor/comm/communicator.h"
#include "executor/config/run_config.h"
#include "executor/storage/releasable_memory.h"
#include "executor/storage/shared_block.h"
#include "executor/weights/weights.h"

namespace tessera {

struct Plan;
struct RolePlan;

/// The parameter table of every role's model, each model's built once per start.
struct ParameterTables {
  std::map<Role, std::shared_ptr<const ParameterTable>> by_role;  // equal models share one

  const ParameterTable& of(Role role) const { return *by_role.at(role); }
};

ParameterTables parameter_tables(const Plan& plan);

struct RoleMemory {
  int rank = 0;
  torch::Device device = torch::kCPU;
  std::unique_ptr<SharedBlock> actor;  // the actor's weights, where peers can read them
  /// Where the rollout's lie in that memory too, and the actor's as views of them
  /// (weight_memory.h).
  std::optional<SharedArena> shared;
  std::unique_ptr<ReleasableMemory> rollout;  // the rollout's, with storage `unmap`
  std::future<void> mapping;                  // going on in the background
};

/// The memory that a role's weights are put into; an undefined `storage` = memory of their own.
struct WeightPlace {
  torch::Tensor storage;
  const ArenaLayout* places = nullptr;  // where they lie in it; nullptr = one behind another
};

/// One memory of actor and rollout where the run has it so, else none yet.
RoleMemory make_role_memory(const Plan& plan, const ParameterTables& tables,
                            const ReshardConfig& config, int rank, torch::Device device);

/// Where this role's weights go. A minimal reshard reads the actor's out of memory that all ranks
/// of the host see: every rank then brings some, if only an empty one.
WeightPlace place_weights(RoleMemory& memory, const Plan& plan, const ParameterTables& tables,
                          const RolePlan& role, const ReshardConfig& config);

/// The actor's FSDP shards as memory that all ranks of the host see; none on every rank where some
/// actor keeps its shards in memory that cannot be mapped. `weights` is nullptr on ranks without
/// the actor. Collective over the run's ranks.
void share_shards(RoleMemory& memory, const Weights* weights, Communicator& host);

/// The rollout's memory between generations, with storage `unmap`: given back after one, there
/// again before a reshard. Mapping can begin in the background. Nothing with `keep`.
void unmap_rollout(RoleMemory& memory);
void map_rollout_in_background(RoleMemory& memory);
void map_rollout(RoleMemory& memory);

}  // namespace tessera
