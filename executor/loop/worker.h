// Everything one rank of a run owns: its part of every role, and how it talks to the others.
//
// Built from the plan alone, alike on every rank; no rank tells another what to do. Owned by
// run_training; one thread.
#pragma once

#include "executor/tensor/torch.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "executor/adapters/adapter_reshard.h"
#include "executor/certificate/certificate.h"
#include "executor/comm/groups.h"
#include "executor/config/run_config.h"
#include "executor/launch/device_setup.h"
#include "executor/launch/start_stages.h"
#include "executor/loop/role_memory.h"
#include "executor/reshard/reshard.h"
#include "executor/reshard/weight_reshard.h"
#include "executor/rewards/reward_workers.h"
#include "executor/rl/kl.h"
#include "executor/rollout/generate.h"
#include "executor/rollout/prompt_dealing.h"
#include "executor/train/trainer.h"
#include "executor/vllm/vllm_rollout.h"
#include "executor/weights/weights.h"

namespace tessera {

struct Plan;
struct RolePlan;

/// One role on this rank. `weights` and `trainer` are null where the rank is not a member, and of a
/// reference that is the actor without its adapters; the rollout has no trainer.
struct RoleWorker {
  const RolePlan* plan = nullptr;
  RankMap map;
  ParallelGroups groups;
  std::unique_ptr<Communicator> side_group;   // who shares parameters or gradients, on a side lane
  std::unique_ptr<Communicator> host_group;   // the same ranks on host memory
  std::unique_ptr<Communicator> tensor_host;  // the tensor-parallel ranks on host memory
  std::unique_ptr<Communicator> ring_lane;    // the cp group on a side lane
  std::unique_ptr<Weights> weights;
  std::unique_ptr<Weights> adapters;  // beside the weights, which are frozen then; else nullptr
  std::unique_ptr<Trainer> trainer;

  bool member() const { return groups.member; }
  /// The member that speaks for the role: all members hold the same results.
  bool leader() const { return groups.member && groups.index == 0; }
  /// What a trained role's optimizer writes. Precondition: member.
  const Weights& trained() const { return adapters != nullptr ? *adapters : *weights; }
};

/// How a run reaches other ranks and its device.
struct RunContext {
  Communicator* world = nullptr;  // weights and activations, in the device's memory
  Communicator* host = nullptr;   // control data, in host memory; may be `world`
  torch::Device device = torch::kCPU;
  void* stream = nullptr;               // cudaStream_t that torch computes on; nullptr on the CPU
  SideLane* side = nullptr;             // of make_side_lane; nullptr = none
  GroupDecorator decorate;              // wraps every group of a role, e.g. to time it
  const MemoryWatch* memory = nullptr;  // holds the rank to its limit as roles come; nullptr = none
  std::filesystem::path logs;     // folder of what servers write; empty = the working directory
  StartStages* stages = nullptr;  // where the start's seconds go; nullptr = not counted
  bool resumes = false;  // what is trained comes from a checkpoint, and not from its model's folder
};

/// The reward programs on this rank, by reward function (null for a rule). They
/// are dealt to ranks that generate first, which give them responses while others still grow.
struct RewardWorkersOfRank {
  struct Response {
    std::int32_t prompt_index, sample_index;
  };
  std::vector<std::unique_ptr<RewardScorer>> by_function;
  int processes = 1;            // of a program, over all ranks
  std::vector<int> ranks;       // in the order in which processes are dealt
  bool answered = false;        // some response has had its score
  std::vector<Response> begun;  // submitted to every program of this rank, and not yet asked for
  std::set<std::string> told = {};  // tracebacks and what was left out, of which a run tells once
};

struct Worker {
  RunContext context;
  RoleMemory memory;  // of the actor's and the rollout's weights
  std::map<Role, RoleWorker> roles;
  std::unique_ptr<Reshard> reshard;  // actor -> rollout
  std::unique_ptr<BlockCopies> copies;
  std::unique_ptr<MemoryOps> memory_ops;
  std::unique_ptr<WeightReshard> weight_reshard;    // carries a minimal reshard out
  std::optional<WeightCertificate> certificate;     // of the reshard, where digests verify it
  std::unique_ptr<AdapterReshard> adapter_reshard;  // where the actor trains adapters, else nullptr
  std::string base;           // digest of the weights that these stand beside, on rank 0
  bool frozen_moved = false;  // the rollout has the weights that its adapters stand beside
  std::unique_ptr<RolloutEngine> generation;  // where this rank generates; else nullptr
  std::unique_ptr<VllmRollout> vllm;          // instead, where vLLM generates
  torch::Tensor staging;                      // scratch of a full reshard
  KlController kl_in_reward;
  RewardWorkersOfRank rewards;
  std::int64_t prompts_taken = 0;  // of the source, by a run that filters groups
  KnownLengths known_lengths;      // of responses to the prompts of whole steps; on every rank
  KnownLengths new_lengths;        // of the step that runs, which is not whole before its end
  RuleState rules;
  bool owes_validation = false;  // of the last step, which a stop has cut short
  /// Of the step that runs, on this rank: the numbers of a role's first update, which reads the
  /// state that the step began with, are NaN or infinite.
  bool began_not_finite = false;

  const RoleWorker* find(Role role) const;
  RoleWorker* find(Role role);
};

/// How the rollout adds up, and the actor where it computes what the rollout has drawn.
inline SumOrder sum_order(const RolloutConfig& config) {
  return config.batch_invariant ? SumOrder::fixed : SumOrder::fastest;
}

/// Some role's collectives can run beside its computation: gradients or parameters by layer, blocks
/// of a ring.
bool shares_layers(const Plan& plan);

/// Makes groups, weights and optimizers of every role and loads the models' folders. Collective
/// over the world. Throws Error: bad_input for a plan that its own digests or the world contradict,
/// or weights that do not fit.
/// What was made stays in `worker`, which was empty, when it throws, so that the memory that is in
/// use then can be told.
void fill_worker(Worker& worker, const Plan& plan, const RunConfig& config,
                 const RunContext& context);
/// The same into a new one.
inline Worker make_worker(const Plan& plan, const RunConfig& config, const RunContext& context) {
  Worker worker;
  fill_worker(worker, plan, config, context);
  return worker;
}

/// Moves the actor's weights into the rollout's layout, or waits for the reshard that update_actor
/// began; where adapters are trained, those alone as soon as the rollout has the rest. Returns what
/// moved. Collective over the world.
ReshardReport move_weights(Worker& worker, const ReshardHooks& hooks = {});

}  // namespace tessera
