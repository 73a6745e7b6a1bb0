#include "executor/loop/worker.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/adapters.h"
#include "cost_models/documents/problem.h"
#include "cost_models/layout/model_tensors.h"
#include "executor/adapters/adapter_weights.h"
#include "executor/comm/group_name.h"
#include "executor/data/init_model.h"
#include "executor/loop/resume.h"
#include "executor/loop/rollout_servers.h"
#include "executor/reshard/gpu_site.h"
#include "executor/rollout/rollout_groups.h"
#include "executor/tensor/fused_settings.h"
#include "executor/tensor/range_copies.h"
#include "executor/tensor/torch_memory_ops.h"
#include "executor/weights/kept_weights.h"
#include "executor/weights/placed_weights.h"
#include "planner/plan/plan.h"

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

/// The rollout's weights arrive by a reshard, all others from their model's folder, a teacher's
/// from its own, or are drawn.
void load(RoleWorker& worker, Role role, const Plan& plan, const RunConfig& config) {
  if (role == Role::rollout) return;
  Problems problems;
  const TrainerConfig& trainer = config.trainer;
  const ModelSource& source = plan.models.at(worker.plan->model);
  const bool teaches = role == Role::reference && !config.actor.teacher.empty();
  if (teaches || !trainer.random_weights) {
    load_kept_weights(*worker.weights, teaches ? config.actor.teacher.string() : source.path,
                      trainer.seed, problems);
  } else if (const auto deviation = initializer_range_of(source.path, problems)) {
    draw_kept_weights(*worker.weights, source.spec, *deviation, trainer.seed);
  }
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
}

/// The groups of the role's members, and those on a side lane and on host memory. Collective.
void make_role_groups(RoleWorker& worker, const RolePlan& role, const RunContext& context) {
  const std::string name(name_of(role.role));
  const auto named = [&](std::unique_ptr<Communicator> group, const std::string& use) {
    if (group != nullptr) name_group(*group, name + " " + use);
    return group;
  };
  const auto decorate = [&](std::unique_ptr<Communicator> group, const std::string& axis) {
    group = named(std::move(group), axis);
    return context.decorate ? context.decorate(std::move(group), axis) : std::move(group);
  };
  const bool generates = role.role == Role::rollout;
  worker.groups = generates ? make_rollout_groups(*context.world, *context.host, worker.map,
                                                  context.device, context.stream, decorate)
                            : make_groups(*context.world, worker.map, decorate);
  if (generates) return;
  if (context.side != nullptr && context.side->world != nullptr) {
    Communicator& side = *context.side->world;
    worker.side_group = named(make_shard_group(side, worker.map), "shards, side lane");
    if (role.layout.cp > 1) {
      worker.ring_lane = named(make_axis_group(side, worker.map, Axis::cp), "cp, side lane");
    }
  }
  if (context.host != nullptr) {
    worker.host_group = named(make_shard_group(*context.host, worker.map), "shards, host");
    worker.tensor_host = named(make_axis_group(*context.host, worker.map, Axis::tp), "tp, host");
  }
}

TrainerOptions trainer_options(const RoleWorker& worker, const RunConfig& config,
                               const RunContext& context) {
  const RolePlan& role = *worker.plan;
  TrainerOptions options{.recompute = role.recompute,
                         .offload_parameters = role.offload.parameters,
                         .offload_gradients = role.offload.gradients};
  options.sharding.reshard_after_forward = role.role == Role::critic
                                               ? config.critic.reshard_after_forward
                                               : config.actor.reshard_after_forward;
  options.sharding.host_group = worker.host_group.get();
  options.tensor_host = worker.tensor_host.get();
  if (role.role == Role::actor) options.adapters = worker.adapters.get();
  if (worker.side_group != nullptr) {
    options.sharding.side_group = worker.side_group.get();
    options.sharding.side = context.side->stream;
  }
  if (worker.ring_lane != nullptr) {
    options.context = {.lane = worker.ring_lane.get(), .side = context.side->stream};
  }
  return options;
}

/// The reference is the actor without its adapters, where both lie alike on the same ranks.
bool is_frozen_actor(const Plan& plan, const RolePlan& role, const RunConfig& config) {
  return role.role == Role::reference && config.actor.lora.used() && config.actor.teacher.empty() &&
         reference_lies_as_actor(plan);
}

/// Makes the adapters of an actor or a rollout whose actor trains some; the rollout's arrive by a
/// reshard, the actor's are read or drawn, or come from a checkpoint.
void make_adapters_of(RoleWorker& worker, Role role, const RunConfig& config, bool resumes) {
  const Lora& lora = config.actor.lora;
  if (!lora.used() || (role != Role::actor && role != Role::rollout)) return;
  worker.adapters = std::make_unique<Weights>(make_adapters(*worker.weights, lora));
  attach_adapters(*worker.weights, *worker.adapters, lora);
  if (role == Role::rollout || resumes) return;
  if (config.actor.adapters.empty()) return draw_adapters(*worker.adapters, config.trainer.seed);
  Problems problems;
  load_adapters(*worker.adapters, config.actor.adapters, problems);
  if (!problems.empty()) throw Error(ExitCode::bad_input, std::move(problems));
}

void end_stage(const RunContext& context, std::string_view stage) {
  if (context.stages != nullptr) end_stage(*context.stages, stage);
}

/// Fills `worker` where it stays: the trainer refers to its weights and groups.
void make_role(RoleWorker& worker, const Plan& plan, const ParameterTable& table,
               const RolePlan& role, const RunConfig& config, const RunContext& context,
               const WeightPlace& place) {
  worker.plan = &role;
  worker.map = rank_map_of(plan, role.role);
  make_role_groups(worker, role, context);
  end_stage(context, "groups");
  const bool served = role.role == Role::rollout && config.rollout.engine == GenerationEngine::vllm;
  if (!worker.groups.member || served || is_frozen_actor(plan, role, config)) return;
  worker.weights = std::make_unique<Weights>(
      place.places != nullptr
          ? make_placed_weights(table, role.layout, worker.groups.coord, role.dtypes.param,
                                context.device, place.storage, *place.places)
          : make_weights(table, role.layout, worker.groups.coord, role.dtypes.param, context.device,
                         place.storage));
  end_stage(context, "memory");
  make_adapters_of(worker, role.role, config, context.resumes);
  const bool restored = context.resumes && is_trained(role.role) && worker.adapters == nullptr;
  if (!restored) load(worker, role.role, plan, config);
  end_stage(context, "weights");
  if (role.role == Role::rollout) return;
  std::optional<AdamWOptions> optimizer = optimizer_options(role.role, config);
  if (optimizer) optimizer->offload = role.offload.optimizer;
  worker.trainer = std::make_unique<Trainer>(*worker.weights, worker.groups, optimizer,
                                             trainer_options(worker, config, context));
  worker.trainer->rest();
  end_stage(context, "optimizer");
}

/// Every rank recomputes the plan's reshard and refuses another digest.
void check_digest(const PlannedReshard& pair, const ReshardPlan& made) {
  const std::string digest = hex(made.digest);
  if (digest == pair.digest) return;
  throw Error(ExitCode::bad_input,
              {Problem{.file = "plan",
                       .place = "/reshard",
                       .found = "digest " + pair.digest,
                       .expected = digest + ", which this version derives from the layouts",
                       .hint = "plan again with this version of tessera"}});
}

std::unique_ptr<Reshard> make_reshard(const Plan& plan, const ParameterTable& table,
                                      const PlannedReshard& pair, int rank) {
  const RolePlan& actor = *plan.find(pair.from);
  auto reshard =
      std::make_unique<Reshard>(table, rank_map_of(plan, pair.from), rank_map_of(plan, pair.to),
                                actor.dtypes.param, pair.mode, rank, reshard_options(plan));
  if (!moves_adapters_alone(plan, pair)) check_digest(pair, reshard->plan());
  return reshard;
}

/// nullptr where no adapters are trained.
std::unique_ptr<AdapterReshard> make_adapter_reshard(const Plan& plan, const ParameterTable& table,
                                                     const PlannedReshard& pair,
                                                     const RunConfig& config, int rank) {
  const Lora& lora = config.actor.lora;
  if (!lora.used()) return nullptr;
  auto reshard = std::make_unique<AdapterReshard>(
      adapter_table(table, lora), rank_map_of(plan, pair.from), rank_map_of(plan, pair.to),
      plan.find(pair.from)->dtypes.param, rank, reshard_options(plan));
  if (moves_adapters_alone(plan, pair)) check_digest(pair, reshard->plan());
  return reshard;
}

/// What digests compare after that reshard.
WeightCertificate certificate_of(const Plan& plan, const ParameterTable& table,
                                 const PlannedReshard& pair, int rank) {
  return make_certificate(
      model_tensors(table, rank_map_of(plan, pair.from), rank_map_of(plan, pair.to),
                    plan.find(pair.from)->dtypes.param),
      rank);
}

/// The reshard's transfers, and the places of the ranks' memories between which they go.
PlacedReshard placed(const Worker& worker, const Plan& plan, const ParameterTable& table,
                     const PlannedReshard& pair) {
  if (!worker.memory.shared) return worker.reshard->placed();
  const auto training_on = [table, from = rank_map_of(plan, pair.from),
                            to = rank_map_of(plan, pair.to),
                            type = plan.find(pair.from)->dtypes.param](int rank) {
    return shared_arena_on(table, from, to, rank, type).training;
  };
  return worker.reshard->placed(training_on, worker.memory.shared->rollout);
}

/// The minimal reshard by the plan's transport: over memory that peers read, or by messages.
void make_reshard(Worker& worker, const Plan& plan, const ParameterTable& table,
                  const PlannedReshard& pair, const ReshardConfig& config, double timeout_s) {
  const RunContext& context = worker.context;
  const bool gpu = context.device.is_cuda();
  worker.copies = gpu ? make_device_copies(context.device.index(), context.stream,
                                           make_range_copies(context.device.index()))
                      : make_host_copies();
  if (gpu) worker.memory_ops = make_torch_memory_ops(context.device.index());
  const RoleWorker *actor = worker.find(pair.from), *rollout = worker.find(pair.to);
  const SharedBlock* const block = worker.memory.actor.get();
  ReshardSite site{
      .world = context.world,
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
  worker.weight_reshard =
      std::make_unique<WeightReshard>(placed(worker, plan, table, pair), site,
                                      WeightReshardOptions{.transport = config.transport,
                                                           .bucket_bytes = config.bucket_bytes,
                                                           .wire = config.wire,
                                                           .wire_from = config.wire_from_step - 1,
                                                           .incremental = config.incremental,
                                                           .verify = config.verify,
                                                           .overlap = config.overlap,
                                                           .write_order = update_order(table),
                                                           .timeout_s = timeout_s});
}

void check_world(const Plan& plan, const Communicator& world) {
  if (plan.world_size() == world.size()) return;
  throw Error(ExitCode::bad_input,
              {Problem{.file = "plan",
                       .place = "/roles",
                       .found = std::to_string(world.size()) + " ranks",
                       .expected = std::to_string(plan.world_size()) + ", as the plan places"}});
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
    return layout.cp > 1 || (layout.zero >= 1 && layout.dp > 1);
  });
}

void fill_worker(Worker& worker, const Plan& plan, const RunConfig& config,
                 const RunContext& context) {
  check_world(plan, *context.world);
  fused::set_deterministic(config.trainer.deterministic);
  const ParameterTables tables = parameter_tables(plan);
  worker.context = context;
  const bool served = config.rollout.engine == GenerationEngine::vllm;
  if (served) {
    worker.vllm = start_rollout_servers(plan, tables, config, context);
    end_stage(context, "servers");
  }
  worker.memory = served ? RoleMemory{.rank = context.world->rank(), .device = context.device}
                         : make_role_memory(plan, tables, config.reshard, context.world->rank(),
                                            context.device);
  end_stage(context, "memory");
  for (const RolePlan& role : plan.roles) {
    make_role(worker.roles[role.role], plan, tables.of(role.role), role, config, context,
              place_weights(worker.memory, plan, tables, role, config.reshard));
    if (context.memory != nullptr) context.memory->hold_limit();
  }
  if (context.world->rank() == 0) worker.base = base_of(plan, tables.of(Role::actor), config);
  if (const RoleWorker* rollout = worker.find(Role::rollout);
      rollout != nullptr && rollout->weights != nullptr) {
    worker.generation = std::make_unique<RolloutEngine>(*rollout->weights, rollout->groups,
                                                        sum_order(config.rollout));
  }
  for (const PlannedReshard& pair : plan.reshard) {
    worker.reshard = make_reshard(plan, tables.of(pair.from), pair, context.world->rank());
    worker.adapter_reshard =
        make_adapter_reshard(plan, tables.of(pair.from), pair, config, context.world->rank());
    const RolePlan& from = *worker.find(pair.from)->plan;
    if (config.rollout.verify_weights > 0 && !served) {
      worker.certificate = certificate_of(plan, tables.of(pair.from), pair, context.world->rank());
    }
    if (pair.mode == ReshardMode::minimal && !from.offload.parameters) {
      if (from.layout.dp_shard > 1) {
        share_shards(worker.memory, worker.find(pair.from)->weights.get(), *context.host);
      }
      if (served) {
        offer_weights(worker);
        continue;
      }
      make_reshard(worker, plan, tables.of(pair.from), pair, config.reshard,
                   config.trainer.timeout_s);
    }
    worker.staging =
        torch::empty({worker.reshard->staging_bytes()},
                     torch::TensorOptions().dtype(torch::kUInt8).device(context.device));
  }
  end_stage(context, "reshard");
  const AlgorithmConfig& algorithm = config.algorithm;
  worker.kl_in_reward = {.adaptive = algorithm.kl_ctrl.adaptive,
                         .coef = algorithm.kl_ctrl.kl_coef,
                         .target_kl = algorithm.kl_ctrl.target_kl,
                         .horizon = algorithm.kl_ctrl.horizon};
}

namespace {

/// The weights of the model, all of them.
ReshardReport move_model(Worker& worker, const ReshardHooks& hooks) {
  const RoleWorker *actor = worker.find(Role::actor), *rollout = worker.find(Role::rollout);
  if (actor->member()) actor->trainer->wake();
  if (worker.weight_reshard != nullptr) {
    if (worker.weight_reshard->begun()) return worker.weight_reshard->finish();
    return worker.weight_reshard->run(hooks);
  }
  const void* source = actor->member() ? actor->weights->storage.data_ptr() : nullptr;
  void* destination = rollout->member() ? rollout->weights->storage.data_ptr() : nullptr;
  const ReshardReport report = worker.reshard->run(*worker.context.world, source, destination,
                                                   worker.staging.data_ptr(), hooks);
  if (actor->member()) actor->trainer->rest();
  return report;
}

ReshardReport move_adapters(Worker& worker) {
  const RoleWorker *actor = worker.find(Role::actor), *rollout = worker.find(Role::rollout);
  if (actor->member()) actor->trainer->wake();
  const ReshardReport report = worker.adapter_reshard->run(
      *worker.context.world, actor->adapters.get(), rollout->adapters.get());
  if (actor->member()) actor->trainer->rest();
  return report;
}

/// One report of both.
ReshardReport together(ReshardReport model, const ReshardReport& adapters) {
  model.seconds += adapters.seconds;
  model.received += adapters.received;
  model.busiest += adapters.busiest;
  model.lower_bound += adapters.lower_bound;
  model.planned += adapters.planned;
  model.exposed_s += adapters.exposed_s;
  return model;
}

}  // namespace

ReshardReport move_weights(Worker& worker, const ReshardHooks& hooks) {
  if (worker.vllm != nullptr) return move_weights_to_servers(worker);
  map_rollout(worker.memory);
  if (worker.adapter_reshard == nullptr) return move_model(worker, hooks);
  if (worker.frozen_moved) return move_adapters(worker);
  const ReshardReport model = move_model(worker, hooks);
  // Memory that is given back between generations loses them.
  worker.frozen_moved = worker.memory.rollout == nullptr;
  return together(model, move_adapters(worker));
}

}  // namespace tessera
