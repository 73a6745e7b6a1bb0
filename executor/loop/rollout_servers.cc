#include "executor/loop/rollout_servers.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/comm/nccl_world.h"
#include "executor/loop/share.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

/// The device as CUDA_VISIBLE_DEVICES names it for programs that see all of the host's.
std::string visible_name(const torch::Device& device) {
  if (!device.is_cuda()) return {};
  const std::size_t index = static_cast<unsigned char>(device.index());
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<std::string> names;
  std::istringstream list(visible == nullptr ? "" : visible);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return index < names.size() ? names[index] : std::to_string(index);
}

NcclCalls nccl_of(const RunContext& context) {
  if (!context.device.is_cuda()) return {};
  return {.make_id = make_nccl_id,
          .make_world = [device = context.device.index(), stream = context.stream](
                            const NcclId& id, int rank, int size, double timeout_s) {
            return make_nccl_world(id, rank, size,
                                   {.device = device, .stream = stream, .timeout_s = timeout_s});
          }};
}

}  // namespace

std::unique_ptr<VllmRollout> start_rollout_servers(const Plan& plan, const ParameterTables& tables,
                                                   const RunConfig& config,
                                                   const RunContext& context) {
  const RolePlan &actor = *plan.find(Role::actor), &rollout = *plan.find(Role::rollout);
  VllmSetting setting{.table = tables.by_role.at(Role::actor),
                      .training = rank_map_of(plan, Role::actor),
                      .rollout = rank_map_of(plan, Role::rollout),
                      .dtype = actor.dtypes.param,
                      .model = plan.models.at(rollout.model).path,
                      .prompt_tokens = config.data.max_prompt_length,
                      .rollout_options = {.sampling = config.rollout.sampling,
                                          .max_response_tokens = plan.workload.response_tokens.max,
                                          .max_sequences = rollout.batching.max_sequences,
                                          .prefill_tokens = rollout.batching.prefill_tokens},
                      .device = visible_name(context.device),
                      .verify = config.reshard.verify,
                      .nccl = nccl_of(context),
                      .logs = context.logs};
  return std::make_unique<VllmRollout>(*context.host, std::move(setting), config.rollout.vllm);
}

void offer_weights(Worker& worker) {
  const bool trains = worker.find(Role::actor)->member();
  if (any_rank(*worker.context.host, trains && worker.memory.actor == nullptr)) {
    throw Error(ExitCode::missing, "vLLM's workers cannot map the actor's weights of some rank");
  }
  worker.vllm->attach(trains ? worker.memory.actor.get() : nullptr);
}

ReshardReport move_weights_to_servers(Worker& worker) {
  const RoleWorker& actor = *worker.find(Role::actor);
  if (actor.member()) actor.trainer->wake();
  if (worker.context.device.is_cuda()) {
    torch::cuda::synchronize(worker.context.device.index());
    c10::cuda::CUDACachingAllocator::emptyCache();
  }
  return worker.vllm->move_weights();
}

}  // namespace tessera
