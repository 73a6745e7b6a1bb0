#include "executor/run/worker.h"

#include <cstdio>
#include <string>
#include <utility>

#include "cost_models/spec/problem.h"

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

/// Fills `worker` where it stays: the trainer refers to its weights and groups.
void make_role(RoleWorker& worker, const Plan& plan, const RolePlan& role, const RunConfig& config,
               const RunContext& context) {
  worker.plan = &role;
  worker.map = rank_map_of(plan, role.role);
  worker.groups = make_groups(*context.world, worker.map, context.decorate);
  if (!worker.groups.member) return;
  worker.weights = std::make_unique<Weights>(make_weights(parameter_table(plan.model_of(role.role)),
                                                          role.layout, worker.groups.coord,
                                                          role.dtypes.param, context.device));
  load(worker, role.role, plan, config.trainer.seed);
  if (role.role != Role::rollout) {
    std::optional<AdamWOptions> optimizer = optimizer_options(role.role, config);
    if (optimizer) optimizer->offload = role.offload.optimizer;
    worker.trainer = std::make_unique<Trainer>(*worker.weights, worker.groups, optimizer,
                                               TrainerOptions{.recompute = role.recompute});
  }
}

/// Every rank recomputes the plan's reshard and refuses another digest.
std::unique_ptr<Reshard> make_reshard(const Plan& plan, const PlannedReshard& pair, int rank) {
  const RolePlan& actor = *plan.find(pair.from);
  auto reshard = std::make_unique<Reshard>(parameter_table(plan.model_of(pair.from)),
                                           rank_map_of(plan, pair.from), rank_map_of(plan, pair.to),
                                           actor.dtypes.param, pair.mode, rank);
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

}  // namespace

const RoleWorker* Worker::find(Role role) const {
  const auto found = roles.find(role);
  return found == roles.end() ? nullptr : &found->second;
}

RoleWorker* Worker::find(Role role) {
  return const_cast<RoleWorker*>(std::as_const(*this).find(role));
}

Worker make_worker(const Plan& plan, const RunConfig& config, const RunContext& context) {
  if (plan.world_size() != context.world->size()) {
    throw Error(ExitCode::bad_input,
                {Problem{.file = "plan",
                         .place = "/roles",
                         .found = std::to_string(context.world->size()) + " ranks",
                         .expected = std::to_string(plan.world_size()) + ", as the plan places"}});
  }
  Worker worker;
  worker.context = context;
  for (const RolePlan& role : plan.roles) {
    make_role(worker.roles[role.role], plan, role, config, context);
  }
  for (const PlannedReshard& pair : plan.reshard) {
    worker.reshard = make_reshard(plan, pair, context.world->rank());
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

ReshardReport move_weights(Worker& worker, const ReshardHooks& hooks) {
  const RoleWorker *actor = worker.find(Role::actor), *rollout = worker.find(Role::rollout);
  const void* source = actor->member() ? actor->weights->storage.data_ptr() : nullptr;
  void* destination = rollout->member() ? rollout->weights->storage.data_ptr() : nullptr;
  return worker.reshard->run(*worker.context.world, source, destination, worker.staging.data_ptr(),
                             hooks);
}

}  // namespace tessera
