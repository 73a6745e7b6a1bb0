#include "executor/run/worker.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "cost_models/spec/problem.h"
#include "executor/model/deterministic.h"
#include "executor/model/placed_weights.h"
#include "executor/model/range_copies.h"
#include "executor/model/torch_memory_ops.h"
#include "executor/reshard/gpu_site.h"
#include "executor/reshard/shared_arena.h"
#include "executor/run/share.h"
#include "executor/run/weight_memory.h"

namespace tessera {
namespace {

std::string hex(std::uint64_t digest) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

bool is_trained(Role role) { return role == Role::actor || role == Role::critic; }

std::optional<AdamWOptions> optimizer_options(Role role, const RunConfig& config) {
  if (!is_trained(role)) return std::nullopt;
  const OptimConfig& optim = role == Role::actor ? config.actor.optim : config.critic.optim;
  return AdamWOptions{
      .beta1 = optim.beta1,
      .beta2 = optim.beta2,
      .eps = optim.eps,
      .weight_decay = optim.weight_decay,
      .clip_norm = role == Role::actor ? config.actor.grad_clip : config.critic.grad_clip};
}

/// The rollout's weights arrive by a reshard, all others from their model's folder.
void load(RoleWorker& worker, Role role, const Plan& plan, std::uint64_t seed) {
  if (role == Role::rollout) return;
  Problems problems;
  load_weights(*worker.weights, plan.models.at(worker.plan->model).path, seed, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
}

/// Memory that a role's weights lie in; undefined where in memory of their own.
struct RoleMemory {
  torch::Tensor storage;
  const ArenaLayout* places = nullptr;  // where they lie in it; nullptr = one behind another
};

/// Fills `worker` where it stays: the trainer refers to its weights and groups.
void make_role(RoleWorker& worker, const Plan& plan, const RolePlan& role, const RunConfig& config,
               const RunContext& context, const RoleMemory& memory) {
  worker.plan = &role;
  worker.map = rank_map_of(plan, role.role);
  worker.groups = make_groups(*context.world, worker.map, context.decorate);
  const bool side =
      context.side != nullptr && context.side->world != nullptr && role.role != Role::rollout;
  if (side) worker.side_group = make_shard_group(*context.side->world, worker.map);
  if (side && role.layout.cp > 1) {
    worker.ring_lane = make_axis_group(*context.side->world, worker.map, Axis::cp);
  }
  if (context.host != nullptr && role.role != Role::rollout) {
    worker.host_group = make_shard_group(*context.host, worker.map);
    worker.tensor_host = make_axis_group(*context.host, worker.map, Axis::tp);
  }
  if (!worker.groups.member) return;
  const ParameterTable table = parameter_table(plan.model_of(role.role));
  worker.weights = std::make_unique<Weights>(
      memory.places != nullptr
          ? make_placed_weights(table, role.layout, worker.groups.coord, role.dtypes.param,
                                context.device, memory.storage, *memory.places)
          : make_weights(table, role.layout, worker.groups.coord, role.dtypes.param, context.device,
                         memory.storage));
  load(worker, role.role, plan, config.trainer.seed);
  if (role.role != Role::rollout) {
    std::optional<AdamWOptions> optimizer = optimizer_options(role.role, config);
    if (optimizer) optimizer->offload = role.offload.optimizer;
    TrainerOptions options{.recompute = role.recompute,
                           .offload_parameters = role.offload.parameters,
                           .offload_gradients = role.offload.gradients};
    options.sharding.reshard_after_forward = role.role == Role::critic
                                                 ? config.critic.reshard_after_forward
                                                 : config.actor.reshard_after_forward;
    options.sharding.host_group = worker.host_group.get();
    options.tensor_host = worker.tensor_host.get();
    if (worker.side_group != nullptr) {
      options.sharding.side_group = worker.side_group.get();
      options.sharding.side = context.side->stream;
    }
    if (worker.ring_lane != nullptr) {
      options.context = {.lane = worker.ring_lane.get(), .side = context.side->stream};
    }
    worker.trainer = std::make_unique<Trainer>(*worker.weights, worker.groups, optimizer, options);
    worker.trainer->rest();
  }
}

bool moves_minimally(const Plan& plan) {
  return !plan.reshard.empty() && plan.reshard[0].mode == ReshardMode::minimal;
}

std::unique_ptr<SharedBlock> make_memory(const RunContext& context, std::int64_t bytes) {
  return context.device.is_cuda() ? make_device_block(bytes, context.device.index())
                                  : make_host_block(bytes);
}

/// A minimal reshard reads the actor's weights out of memory that all ranks of the host see. Every
/// rank brings such memory, if only an empty one. This is the weights' as a tensor; undefined for
/// other roles, for FSDP, whose shards lie in memory of their own (readable_shards), and for
/// weights that leave the device between phases: what peers have mapped cannot.
torch::Tensor readable_storage(Worker& worker, const Plan& plan, const RolePlan& role) {
  if (role.role != Role::actor || !moves_minimally(plan) || role.layout.dp_shard > 1 ||
      role.offload.parameters) {
    return {};
  }
  const RankMap map = rank_map_of(plan, role.role);
  const int index = map.index_of(worker.context.world->rank());
  std::int64_t bytes = 0;
  if (index >= 0) {
    bytes = arena_layout(parameter_table(plan.model_of(role.role)), role.layout,
                         map.coords[static_cast<std::size_t>(index)], role.dtypes.param)
                .bytes;
  }
  worker.actor_memory = make_memory(worker.context, bytes);
  if (index < 0) return {};
  return torch::from_blob(
      worker.actor_memory->data(), {bytes / size_of(role.dtypes.param)},
      torch::TensorOptions().dtype(scalar_type(role.dtypes.param)).device(worker.context.device));
}

/// The rollout's weights as a tensor over memory that can be given back; undefined for other roles,
/// and where it is kept.
torch::Tensor releasable_storage(Worker& worker, const Plan& plan, const RolePlan& role,
                                 bool unmap) {
  if (role.role != Role::rollout || !unmap) return {};
  const RunContext& context = worker.context;
  const RankMap map = rank_map_of(plan, role.role);
  const int index = map.index_of(context.world->rank());
  if (index < 0) return {};
  const std::int64_t bytes =
      arena_layout(parameter_table(plan.model_of(role.role)), role.layout,
                   map.coords[static_cast<std::size_t>(index)], role.dtypes.param)
          .bytes;
  worker.rollout_memory = context.device.is_cuda()
                              ? make_releasable_device_memory(bytes, context.device.index())
                              : make_releasable_host_memory(bytes);
  return torch::from_blob(
      worker.rollout_memory->data(), {bytes / size_of(role.dtypes.param)},
      torch::TensorOptions().dtype(scalar_type(role.dtypes.param)).device(context.device));
}

/// One memory of both, where the run has it so.
void make_shared_memory(Worker& worker, const Plan& plan, const ReshardConfig& config) {
  if (!shares_memory(plan, config)) return;
  const PlannedReshard& pair = plan.reshard.front();
  worker.shared = shared_arena_on(parameter_table(plan.model_of(pair.from)),
                                  rank_map_of(plan, pair.from), rank_map_of(plan, pair.to),
                                  worker.context.world->rank(), plan.find(pair.from)->dtypes.param);
  worker.actor_memory = make_memory(worker.context, worker.shared->bytes);
}

RoleMemory memory_of(Worker& worker, const Plan& plan, const RolePlan& role,
                     const ReshardConfig& config) {
  const bool actor = role.role == Role::actor, rollout = role.role == Role::rollout;
  if (!worker.shared || !(actor || rollout)) {
    return {.storage = rollout ? releasable_storage(worker, plan, role, config.unmap)
                               : readable_storage(worker, plan, role)};
  }
  const ArenaLayout& places = actor ? worker.shared->training : worker.shared->rollout;
  if (places.slots.empty()) return {};  // no member
  const auto options =
      torch::TensorOptions().dtype(scalar_type(role.dtypes.param)).device(worker.context.device);
  return {.storage = torch::from_blob(worker.actor_memory->data(),
                                      {places.bytes / places.element_bytes}, options),
          .places = actor ? &places : nullptr};
}

/// The actor's FSDP shards as a block for all ranks of the host; nullptr on every rank where some
/// actor keeps its shards in memory that cannot be mapped. Collective over the world.
std::unique_ptr<SharedBlock> readable_shards(const Worker& worker) {
  const RunContext& context = worker.context;
  const RoleWorker& actor = *worker.find(Role::actor);
  std::unique_ptr<SharedBlock> block;
  if (!actor.member()) {
    block = make_memory(context, 0);
  } else {
    const torch::Tensor& shards = actor.weights->storage;
    const auto bytes = static_cast<std::int64_t>(shards.nbytes());
    block = context.device.is_cuda()
                ? share_device_memory(shards.data_ptr(), bytes, context.device.index())
                : share_host_memory(shards.data_ptr(), bytes);
  }
  if (any_rank(*context.host, block == nullptr)) block.reset();
  return block;
}

/// Every rank recomputes the plan's reshard and refuses another digest.
std::unique_ptr<Reshard> make_reshard(const Plan& plan, const PlannedReshard& pair, int rank) {
  const RolePlan& actor = *plan.find(pair.from);
  auto reshard = std::make_unique<Reshard>(
      parameter_table(plan.model_of(pair.from)), rank_map_of(plan, pair.from),
      rank_map_of(plan, pair.to), actor.dtypes.param, pair.mode, rank, reshard_options(plan));
  const std::string digest = hex(reshard->plan().digest);
  if (digest != pair.digest) {
    throw Error(ExitCode::bad_input,
                {Problem{.file = "plan",
                         .place = "/reshard",
                         .found = "digest " + pair.digest,
                         .expected = digest + ", which this version derives from the layouts",
                         .hint = "plan again with this version of tessera"}});
  }
  return reshard;
}

/// What the switch moves, and between which places of the ranks' memories.
SwitchPlan switch_plan(const Worker& worker, const Plan& plan, const PlannedReshard& pair) {
  if (!worker.shared) return worker.reshard->switch_plan();
  const auto training_on = [table = parameter_table(plan.model_of(pair.from)),
                            from = rank_map_of(plan, pair.from), to = rank_map_of(plan, pair.to),
                            type = plan.find(pair.from)->dtypes.param](int rank) {
    return shared_arena_on(table, from, to, rank, type).training;
  };
  return worker.reshard->switch_plan(training_on, worker.shared->rollout);
}

/// The minimal reshard by the plan's transport: over memory that peers read, or by messages.
void make_switch(Worker& worker, const Plan& plan, const PlannedReshard& pair,
                 const ReshardConfig& config, double timeout_s) {
  const RunContext& context = worker.context;
  const bool gpu = context.device.is_cuda();
  worker.copies = gpu ? make_device_copies(context.device.index(), context.stream,
                                           make_range_copies(context.device.index()))
                      : make_host_copies();
  if (gpu) worker.memory_ops = make_torch_memory_ops(context.device.index());
  const RoleWorker *actor = worker.find(pair.from), *rollout = worker.find(pair.to);
  const SharedBlock* const block = worker.actor_memory.get();
  SwitchSite site{.world = context.world,
                  .host = context.host,
                  .block = block,
                  .source = block != nullptr  ? block->data()
                            : actor->member() ? actor->weights->storage.data_ptr()
                                              : nullptr,
                  .destination = rollout->member() ? rollout->weights->storage.data_ptr() : nullptr,
                  .copies = worker.copies.get(),
                  .ops = worker.memory_ops.get()};
  if (gpu) complete_on_gpu(site, context.device.index());
  if (config.transport == ReshardTransport::window) {
    if (!gpu) throw Error(ExitCode::usage, "reshard: transport window needs GPUs and NCCL");
    gather_through_windows(site);
  }
  worker.weight_switch = std::make_unique<WeightSwitch>(
      switch_plan(worker, plan, pair), site,
      SwitchOptions{.transport = config.transport,
                    .bucket_bytes = config.bucket_bytes,
                    .wire = config.wire,
                    .wire_from = config.wire_from_step - 1,
                    .incremental = config.incremental,
                    .verify = config.verify,
                    .overlap = config.overlap,
                    .write_order = update_order(parameter_table(plan.model_of(pair.from))),
                    .timeout_s = timeout_s});
}

}  // namespace

const RoleWorker* Worker::find(Role role) const {
  const auto found = roles.find(role);
  return found == roles.end() ? nullptr : &found->second;
}

RoleWorker* Worker::find(Role role) {
  return const_cast<RoleWorker*>(std::as_const(*this).find(role));
}

bool shares_layers(const Plan& plan) {
  return std::any_of(plan.roles.begin(), plan.roles.end(), [](const RolePlan& role) {
    const ParallelLayout& layout = role.layout;
    return layout.cp > 1 || (layout.zero >= 1 && layout.dp() > 1);
  });
}

Worker make_worker(const Plan& plan, const RunConfig& config, const RunContext& context) {
  if (plan.world_size() != context.world->size()) {
    throw Error(ExitCode::bad_input,
                {Problem{.file = "plan",
                         .place = "/roles",
                         .found = std::to_string(context.world->size()) + " ranks",
                         .expected = std::to_string(plan.world_size()) + ", as the plan places"}});
  }
  fused::set_deterministic(config.trainer.deterministic);
  Worker worker;
  worker.context = context;
  make_shared_memory(worker, plan, config.reshard);
  for (const RolePlan& role : plan.roles) {
    make_role(worker.roles[role.role], plan, role, config, context,
              memory_of(worker, plan, role, config.reshard));
  }
  for (const PlannedReshard& pair : plan.reshard) {
    worker.reshard = make_reshard(plan, pair, context.world->rank());
    const RolePlan& from = *worker.find(pair.from)->plan;
    if (pair.mode == ReshardMode::minimal && !from.offload.parameters) {
      if (from.layout.dp_shard > 1) worker.actor_memory = readable_shards(worker);
      make_switch(worker, plan, pair, config.reshard, config.trainer.timeout_s);
    }
    worker.staging =
        torch::empty({worker.reshard->staging_bytes()},
                     torch::TensorOptions().dtype(torch::kUInt8).device(context.device));
  }
  const AlgorithmConfig& algorithm = config.algorithm;
  worker.kl_in_reward = {.adaptive = algorithm.kl_ctrl.adaptive,
                         .coef = algorithm.kl_ctrl.kl_coef,
                         .target_kl = algorithm.kl_ctrl.target_kl,
                         .horizon = algorithm.kl_ctrl.horizon};
  return worker;
}

void unmap_rollout(Worker& worker) {
  if (worker.rollout_memory == nullptr) return;
  const torch::Device device = worker.context.device;
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
  worker.rollout_memory->release();
}

void map_rollout_in_background(Worker& worker) {
  if (worker.rollout_memory == nullptr || worker.rollout_memory->mapped()) return;
  if (worker.rollout_mapping.valid()) return;
  worker.rollout_mapping =
      std::async(std::launch::async, [memory = worker.rollout_memory.get()] { memory->map(); });
}

void map_rollout(Worker& worker) {
  if (worker.rollout_memory == nullptr) return;
  try {
    worker.rollout_mapping.valid() ? worker.rollout_mapping.get() : worker.rollout_memory->map();
  } catch (const Error& error) {
    // What torch holds in reserve may be what is missing.
    if (error.code() != ExitCode::missing || !worker.context.device.is_cuda()) throw;
    c10::cuda::CUDACachingAllocator::emptyCache();
    worker.rollout_memory->map();
  }
}

ReshardReport move_weights(Worker& worker, const ReshardHooks& hooks) {
  map_rollout(worker);
  const RoleWorker *actor = worker.find(Role::actor), *rollout = worker.find(Role::rollout);
  if (actor->member()) actor->trainer->wake();
  if (worker.weight_switch != nullptr) {
    if (worker.weight_switch->begun()) return worker.weight_switch->finish();
    return worker.weight_switch->run(hooks);
  }
  const void* source = actor->member() ? actor->weights->storage.data_ptr() : nullptr;
  void* destination = rollout->member() ? rollout->weights->storage.data_ptr() : nullptr;
  const ReshardReport report = worker.reshard->run(*worker.context.world, source, destination,
                                                   worker.staging.data_ptr(), hooks);
  if (actor->member()) actor->trainer->rest();
  return report;
}

}  // namespace tessera
